"""Which column of a file holds which field of a company."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from similarity.company import DeletedCompany
from similarity.errors import InvalidInput, NoLiveGeneration
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.ingest.files import column_names, has_late_column, is_json
from similarity.ingest.records import COMPANY_FIELDS, FALLBACK_COLUMNS, FIELD_SYNONYMS, Columns

REQUIRED = ("id", "name", "description")
SEPARATORS = re.compile(r"[\s_-]+")
SHOWN_COLUMNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttributes:
    """The attributes of an index: the declared types, and the names that stored companies have."""

    schema: AttributeSchema = field(default_factory=AttributeSchema)
    stored: Collection[str] = ()

    @classmethod
    def of_index(cls, index: CompanyIndex) -> "KnownAttributes":
        """Return the declared attributes of an index, and those of its first companies."""
        try:
            first = next(index.scan(index.live().name), [])
        except NoLiveGeneration:
            first = []
        companies = [each.company for each in first if not isinstance(each, DeletedCompany)]
        return cls(
            schema=index.attributes(), stored=dict.fromkeys(name for each in companies for name in each.attributes)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The mapping of fields to the columns of a file.

    `used`: fields with their columns, in order; an attribute is `attributes.NAME`. `ignored`: the other columns.
    """

    columns: Columns
    used: Sequence[tuple[str, str]]
    ignored: Sequence[str]

    @property
    def summary(self) -> str:
        """One line: the fields, each with its column if that has another name, and the columns that are not used."""
        used = [
            name if name in {column, f"attributes.{column}"} else f"{name} <- {column}" for name, column in self.used
        ]
        more = len(self.ignored) - SHOWN_COLUMNS
        ignored = ", ".join(self.ignored[:SHOWN_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")
        return f"columns: {', '.join(used)}" + (f"; ignored: {ignored}" if ignored else "")


def file_columns(
    path: Path, columns: Columns, *, known: KnownAttributes | None = None, others: Collection[str] = ()
) -> FileColumns:
    """Return the columns of the fields and attributes in a file.

    `columns` has those that the user named. Any other field is the column of its name, or the only one that differs
    from it in nothing but case, blanks, hyphens, underscores or a "company" in front. Attributes of `known` are found
    in the same way. `others`: columns with another use, which are not ignored.

    Raises:
        InvalidInput: the file lacks a required column or one that the user named, or several columns could be meant.
            The message lists them.
    """
    known = known or KnownAttributes()
    existing = column_names(path)
    fields: dict[str, str] = {}
    for name in (*COMPANY_FIELDS, *FIELD_SYNONYMS):
        option = f"--column {FIELD_SYNONYMS.get(name, name)}"
        if name in columns.fields:
            fields[name] = _named(path, columns.fields[name], existing, option)
        elif FIELD_SYNONYMS.get(name) not in columns.fields:
            column = _one_of(name, existing, (column_key(name), f"company{column_key(name)}"), option)
            if not column and name in REQUIRED:
                raise InvalidInput(
                    f"there is no column {name!r}; give its name with {option}=COLUMN; {_list(existing)}"
                )
            fields |= {name: column} if column else {}
    attributes = {
        name: _named(path, column, existing, f"--attribute {name}") for name, column in columns.attributes.items()
    }
    free = [column for column in existing if column not in {*fields.values(), *others}]
    for name in dict.fromkeys((*known.schema.types, *known.stored)):
        if name not in attributes and (column := _one_of(name, free, (column_key(name),), f"--attribute {name}")):
            attributes[name] = column
    # A row of JSON may have fields that the first rows lack.
    late = {name: name for name in known.schema.types} if is_json(path) else {}
    return FileColumns(
        columns=Columns(
            fields=_renamed(fields, columns.fields),
            attributes=late | attributes,
            schema=known.schema.updated(columns.schema),
        ),
        used=[
            *((FIELD_SYNONYMS.get(name, name), column) for name, column in fields.items()),
            *((f"attributes.{name}", column) for name, column in attributes.items()),
        ],
        ignored=[column for column in free if column not in attributes.values()],
    )


def _renamed(fields: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that the user named, or whose columns have other names."""
    renamed = {name: column for name, column in fields.items() if name in named or name != column}
    for name, fallback in FALLBACK_COLUMNS.items():
        if name in renamed and name not in named:
            renamed.setdefault(fallback, fallback)
    return renamed


def _named(path: Path, column: str, existing: Sequence[str], option: str) -> str:
    """Return the column that an option names."""
    found = _one_of(column, existing, (column_key(column),), option)
    if not found and not has_late_column(path, column):
        raise InvalidInput(f"there is no column {column!r} for {option.partition(' ')[2]}; {_list(existing)}")
    return found or column


def _one_of(name: str, existing: Sequence[str], keys: Collection[str], option: str) -> str:
    """Return the column `name`, else the only one with one of the keys; empty if there is none."""
    if name in existing:
        return name
    found = [column for column in existing if column_key(column) in keys]
    if len(found) > 1:
        candidates = ", ".join(map(repr, found))
        raise InvalidInput(f"more than one column could be {name}: {candidates}; choose with {option}=COLUMN")
    return next(iter(found), "")


def column_key(column: str) -> str:
    """Return the name of a column without case, blanks, hyphens and underscores."""
    return SEPARATORS.sub("", column).casefold()


def _list(existing: Sequence[str]) -> str:
    return f"the file has the columns: {', '.join(existing) or 'none'}"
