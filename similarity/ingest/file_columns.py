"""Finds the column of a file that holds each field of a company."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from similarity.company import Company, DeletedCompany
from similarity.errors import InvalidInput, NoLiveGeneration
from similarity.formats.excel_files import sheet_advice, sheet_note
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.ingest.encodings import is_unicode
from similarity.ingest.files import columns_and_sheets, in_an_object, is_json, late_columns, read_rows
from similarity.ingest.records import (
    COMPANY_FIELDS,
    FALLBACK_COLUMNS,
    FIELD_SYNONYMS,
    OPTIONAL_FIELDS,
    REQUIRED,
    UNUSED,
    Columns,
    column_key,
    column_names_of,
)
from similarity.ingest.rows import Row

ATTRIBUTE = "attributes."
SHOWN_COLUMNS = 20
NO_IDS = (
    ", or add a column with a short id for each company, such as a ticker or a row number: letters, digits and . _ : - "
    "without spaces (docs/command-line.md)"
)
ONLY_WHOLE = " (a row is a whole company; to add a column to stored ones see docs/writing.md, Files)"
IS_TITLE = "; if this is a title, remove the lines above the column names"
NOT_UTF_8 = (
    "; these names are not UTF-8: save the file as UTF-8 (in Excel: CSV UTF-8; in a shell, for Japanese: "
    "iconv -f SHIFT_JIS -t UTF-8 FILE)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttributes:
    """The attributes of an index: the declared types, and the names that stored companies have.

    `fields`: the optional fields of a company that stored companies have.
    """

    schema: AttributeSchema = field(default_factory=AttributeSchema)
    stored: Collection[str] = ()
    fields: Collection[str] = ()

    @classmethod
    def of_index(cls, index: CompanyIndex) -> "KnownAttributes":
        """Return the declared attributes of an index, and the attributes of its `first_companies`."""
        companies = first_companies(index)
        return cls(
            schema=index.attributes(),
            stored=dict.fromkeys(name for each in companies for name in each.attributes),
            fields=[name for name in OPTIONAL_FIELDS if any(getattr(each, name) for each in companies)],
        )

    def without_column(self, used: Collection[str]) -> list[str]:
        """Return the fields and attributes of stored companies that are not among the `used` of a file."""
        stored = (*self.fields, *(f"{ATTRIBUTE}{name}" for name in self.stored))
        return [name for name in stored if name not in used]

    def added_to(self, columns: Columns) -> Columns:
        """Return `columns` with these attributes too, each in the column of its name, and with their types.

        Use it for files whose columns are not known yet. The column of a field is not taken for an attribute.
        """
        fields = {*COMPANY_FIELDS, *FIELD_SYNONYMS, *columns.fields.values()}
        names = (name for name in (*self.schema.types, *self.stored) if name not in fields)
        return replace(
            columns,
            attributes={**{name: name for name in names}, **columns.attributes},
            schema=self.schema.updated(columns.schema),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The mapping of fields to the columns of a file.

    `used`: fields with their columns, in order; an attribute is `attributes.NAME`. `ignored`: the other columns.
    `sheets`: the names of the sheets of an Excel file; only the first sheet is read.
    """

    columns: Columns
    used: Sequence[tuple[str, str]]
    ignored: Sequence[str]
    sheets: Sequence[str] = ()

    @property
    def summary(self) -> str:
        """One line: the fields, each with its column if that has another name, and the columns that are not used.

        If a file has several sheets, the line also says which of them is read.
        """
        used = [
            # The file may also have a column that is called like the attribute.
            name
            if column == name or (name == f"{ATTRIBUTE}{column}" and name not in self.ignored)
            else f"{name} <- {column}"
            for name, column in self.used
        ]
        sheets = f"; {sheet_note(self.sheets)}" if len(self.sheets) > 1 else ""
        return f"columns: {', '.join(used)}" + (f"; ignored: {self.ignored_text}" if self.ignored else "") + sheets

    @property
    def ignored_text(self) -> str:
        """The first of the columns that are not used, and how many more there are."""
        more = len(self.ignored) - SHOWN_COLUMNS
        return ", ".join(self.ignored[:SHOWN_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")


def first_companies(index: CompanyIndex) -> list[Company]:
    """Return the companies of the first batch of the live generation; empty if there is no live generation."""
    try:
        first = next(index.scan(index.live().name), [])
    except NoLiveGeneration:
        first = []
    return [each.company for each in first if not isinstance(each, DeletedCompany)]


def file_columns(
    path: Path, columns: Columns, *, known: KnownAttributes | None = None, others: Collection[str] = ()
) -> FileColumns:
    """Return the columns of the fields and attributes in a file.

    `columns` holds the columns that the user named. Any other field has the column of its name, or the only one whose
    name differs only in case, blanks, hyphens, underscores or a leading "company". Attributes of `known` are found in
    the same way (without "company"), and a column `attributes.NAME` is the attribute NAME. `others`: columns with
    another use; the result does not list them as ignored.

    Raises:
        InvalidInput: the file lacks a required column or one that the user named, or several columns could be meant.
            The message lists the columns. A file with a column `deleted` needs no names and descriptions.
    """
    first, sheets = columns_and_sheets(path)
    known = known or KnownAttributes()
    late = late_columns(path, set(first))
    # The members of an object `attributes` are no columns.
    existing = [*first, *(column for column, is_member in late.items() if not is_member)]
    try:
        found = match_columns(existing, columns, known=known, others=others)
        advice = in_an_object(path) or _of_objects(path) if is_json(path) else IS_TITLE if len(first) == 1 else ""
        _check_columns(found, existing, late, advice=advice)
        _refuse_mixed(found, columns, set(late))
    except InvalidInput as error:
        raise InvalidInput(f"{error}{sheet_advice(sheets)}") from None
    declared = {name: name for name in known.schema.types} if is_json(path) else {}
    attributes = declared | dict(found.columns.attributes)
    return replace(found, columns=replace(found.columns, attributes=attributes), sheets=sheets)


def columns_of_rows(rows: Iterable[Row], columns: Columns, *, known: KnownAttributes) -> FileColumns:
    """Return the columns of the fields and attributes in the first rows of a file; raises as `file_columns`."""
    existing = list(dict.fromkeys(name for row in rows if not row.unreadable for name in column_names_of(row.record)))
    found = match_columns(existing, columns, known=known)
    _check_columns(found, existing, (), advice="")
    return found


def command_option(kind: str, name: str) -> str:
    """Return the option of the command line that names a column; `kind` is "column" or "attribute"."""
    return f"--{kind} {name}=COLUMN"


def match_columns(
    existing: Sequence[str],
    columns: Columns,
    *,
    known: KnownAttributes,
    others: Collection[str] = (),
    option: Callable[[str, str], str] = command_option,
) -> FileColumns:
    """Return which of the `existing` columns holds which field or attribute, as `file_columns` finds them.

    Required columns may be missing. `option`: returns how the user names a column, for error messages.

    Raises:
        InvalidInput: several columns could be meant.
    """
    fields: dict[str, str] = {}
    for name in (*COMPANY_FIELDS, *FIELD_SYNONYMS):
        synonym = FIELD_SYNONYMS.get(name, name)
        if columns.fields.get(name) == UNUSED:
            continue
        if name in columns.fields:
            fields[name] = _named(columns.fields[name], existing, option("column", synonym))
        elif synonym == name or synonym not in columns.fields:
            column = _one_of(
                name, existing, (column_key(name), f"company{column_key(name)}"), option("column", synonym)
            )
            fields |= {name: column} if column else {}
    attributes = {
        name: _named(column, existing, option("attribute", name)) for name, column in columns.attributes.items()
    }
    free = [column for column in existing if column not in {*fields.values(), *others}]
    for name in dict.fromkeys((*known.schema.types, *known.stored)):
        keys = column_key(name), column_key(f"{ATTRIBUTE}{name}")
        if name not in attributes and (column := _one_of(name, free, keys, option("attribute", name))):
            attributes[name] = column
    for column in free:
        name = column.removeprefix(ATTRIBUTE)
        if column.startswith(ATTRIBUTE) and name and column not in attributes.values():
            attributes.setdefault(name, column)
    return FileColumns(
        columns=Columns(
            fields=_renamed(fields, columns.fields)
            | {name: UNUSED for name, column in columns.fields.items() if column == UNUSED},
            attributes=attributes,
            schema=known.schema.updated(columns.schema),
        ),
        used=[
            *((FIELD_SYNONYMS.get(name, name), column) for name, column in fields.items()),
            *((f"{ATTRIBUTE}{name}", column) for name, column in attributes.items()),
        ],
        ignored=[column for column in free if column not in attributes.values()],
    )


def _check_columns(found: FileColumns, existing: Sequence[str], late: Collection[str], *, advice: str) -> None:
    """Raise InvalidInput if the file lacks a required column or one that the user named.

    `advice`: what may be wrong with the file.
    """
    used = dict(found.used)
    required = ("id",) if "deleted" in used else REQUIRED  # a row that deletes a company needs only its id
    if missing := [name for name in required if name not in used]:
        options = " ".join(command_option("column", name) for name in missing)
        names = " or ".join(map(repr, missing))
        raise InvalidInput(
            f"there is no column {names}; give {'its name' if len(missing) == 1 else 'their names'} with {options}"
            f"{NO_IDS if 'id' in missing else ONLY_WHOLE}; {_list(existing, advice)}"
        )
    for name, column in found.used:
        is_member = name.startswith(ATTRIBUTE) and f"{ATTRIBUTE}{column}" in late
        if column not in existing and column not in late and not is_member:
            field_name = name.removeprefix(ATTRIBUTE)
            raise InvalidInput(f"there is no column {column!r} for {field_name}; {_list(existing, advice)}")


def _refuse_mixed(found: FileColumns, columns: Columns, late: Collection[str]) -> None:
    """Raise InvalidInput if a later row of a JSON file spells a column in another way than the first rows."""
    ignored = {_bare_key(column): column for column in found.ignored}
    for name, column in found.used:
        other = ignored.get(_bare_key(column))
        is_named = column in columns.fields.values() or column in columns.attributes.values()
        if other is not None and not is_named and (column in late or other in late):
            kind = "attribute" if name.startswith(ATTRIBUTE) else "column"
            raise InvalidInput(
                f"rows have different columns for {name}: {column!r} and {other!r}; rename one of them, or choose with "
                f"{command_option(kind, name.removeprefix(ATTRIBUTE))}"
            )


def _of_objects(path: Path) -> str:
    """Return how to read JSON whose first row has objects besides `attributes`; empty if it has none."""
    first, *others = [row.record for row in islice(read_rows(path), 2)] or [{}]
    nested = [name for name, value in first.items() if isinstance(value, dict) and name != "attributes"]
    if not nested:
        return ""
    if len(nested) == len(first) and not {"id", "name", "description"}.isdisjoint(nested):
        return '; the file is written column by column: in pandas, write it with df.to_json(FILE, orient="records")'
    with path.open("rb") as file:
        rows = ".[] | " if file.read(1) == b"[" else ""
    is_keyed = not others and not rows and len(nested) == len(first)
    taken = "to_entries[] | {id: .key} + .value" if is_keyed else f"{rows}. + .{json.dumps(nested[0])}"
    return f"; take members out of objects first: jq -c '{taken}' FILE > FLAT.jsonl"


def _bare_key(column: str) -> str:
    return column_key(column.removeprefix(ATTRIBUTE)).removeprefix("company")


def _renamed(fields: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that the user named or that are in columns of other names, and their fallbacks."""
    renamed = {name: column for name, column in fields.items() if name in named or name != column}
    for name, fallback in FALLBACK_COLUMNS.items():
        if name in renamed and name not in named:
            renamed.setdefault(fallback, fallback)
    return renamed


def _named(column: str, existing: Sequence[str], option: str) -> str:
    """Return the existing column that a user means by `column`; `column` itself if there is none."""
    return _one_of(column, existing, (column_key(column), column_key(f"{ATTRIBUTE}{column}")), option) or column


def _one_of(name: str, existing: Sequence[str], keys: Collection[str], option: str) -> str:
    """Return the column `name`, else the only one with one of the keys; empty if there is none."""
    if name in existing:
        return name
    found = [column for column in existing if column_key(column) in keys]
    if len(found) > 1:
        candidates = ", ".join(map(repr, found))
        raise InvalidInput(f"more than one column could be {name}: {candidates}; choose with {option}")
    return next(iter(found), "")


def _list(existing: Sequence[str], advice: str) -> str:
    advice = advice or ("" if all(map(is_unicode, existing)) else NOT_UTF_8)
    return f"the file has the columns: {', '.join(existing) or 'none'}{advice}"
