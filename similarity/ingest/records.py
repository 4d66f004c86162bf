"""Parse raw records into validated changes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from similarity.company import (
    ATTRIBUTE_NAME_PATTERN,
    AttributeValue,
    Company,
    DeletedCompany,
    check_id,
    normalize_domain,
    version_of,
)
from similarity.errors import InvalidCompany, InvalidInput
from similarity.formats.plain_values import UnreadableValue, plain_value
from similarity.index.attributes import TEXT, AttributeSchema, AttributeType, parse_type
from similarity.ingest.encodings import before_wrong_decoding
from similarity.ingest.field_values import (
    FieldValue,
    attribute_value,
    clean_list,
    clean_text,
    comma_warning,
    id_warning,
    kind_of,
)

Record: TypeAlias = Mapping[str, object]
REQUIRED = ("id", "name", "description")
TEXT_FIELDS = (*REQUIRED, "country", "industry")
LIST_FIELDS = ("aliases", "tags")
UNUSED = "\0"  # the column of a field that is left out (`--column event_time=`): no file has it
OPTIONAL_FIELDS = (*LIST_FIELDS, "domain", "country", "industry")
COMPANY_FIELDS = (*TEXT_FIELDS, *LIST_FIELDS, "domain", "event_time", "deleted")
# The second column to try if the column named like the field is missing or empty.
FALLBACK_COLUMNS = {"domain": "website"}
FIELD_SYNONYMS = {column: name for name, column in FALLBACK_COLUMNS.items()}
SEPARATORS = re.compile(r"[\s_-]+")
NESTED = "attributes."


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedCompany:
    """A company as of one event, not yet embedded.

    `untimed`: the record had no event time, so `version` is the time of receipt. If the index holds a higher
    version, `write_changes` may replace it by the next higher one.
    """

    company: Company
    version: int
    untimed: bool = field(default=False, compare=False)

    @property
    def id(self) -> str:
        return self.company.id


Change: TypeAlias = VersionedCompany | DeletedCompany


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Maps fields to the columns of a record; a field that is not listed is read from the column of its name.

    The domain is also read from the website, unless only `domain` is listed.

    `attributes` maps attribute names to columns, and `schema` holds the declared types of attributes. Values of the
    type number are parsed: range filters match numbers only, and every cell of a CSV file is text. The members of an
    object `attributes` in a record need no columns (`attribute_values`).
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    schema: AttributeSchema = field(default_factory=AttributeSchema)

    @classmethod
    def from_pairs(cls, columns: Sequence[str], attributes: Sequence[str], size: str = "") -> "Columns":
        """Parse options of the forms FIELD=COLUMN (FIELD= leaves the field out) and NAME[:TYPE][=COLUMN].

        TYPE is `number`, `ordinal=LOW,...,HIGH`, or `text`, which withdraws the type that an index has declared.
        `size`: the name of the attribute that is the size of a company.

        Raises:
            InvalidInput: an option does not have this form or names an unknown field, or the size has no type.
        """
        fields: dict[str, str] = {}
        for pair in columns:
            name, equals, column = pair.partition("=")
            if not (name and equals and (column or name not in REQUIRED)):
                raise InvalidInput(f"--column {pair!r} must read FIELD=COLUMN, for example --column id=ticker")
            name = FIELD_SYNONYMS.get(name, name)
            if name not in COMPANY_FIELDS:
                raise InvalidInput(f"--column {pair!r}: no field {name!r}; the fields are {', '.join(COMPANY_FIELDS)}")
            fields[name] = column or UNUSED
        named: dict[str, str] = {}
        types: dict[str, AttributeType | None] = {}
        for pair in attributes:
            name, type_text, column = _parts_of(pair)
            if not name or pair.endswith("="):
                raise InvalidInput(f"--attribute {pair!r} must read NAME[:TYPE][=COLUMN], for example employees:number")
            if not ATTRIBUTE_NAME_PATTERN.fullmatch(name):
                usable = re.sub(r"\W+", "_", name).strip("_")
                usable = usable if ATTRIBUTE_NAME_PATTERN.fullmatch(usable) else "NAME"
                typed = f"{usable}:{type_text}" if type_text else usable
                raise InvalidInput(
                    f"--attribute {pair!r}: {name!r:.80} is not an attribute name of letters, digits and '_'; choose "
                    f"one, and give the column after it: --attribute '{typed}={column or name}'"
                )
            named[name] = column or name
            if type_text is not None:
                types[name] = None if type_text == TEXT else parse_type(name, type_text)
        schema = AttributeSchema(
            {name: each for name, each in types.items() if each is not None},
            size,
            frozenset(name for name, each in types.items() if each is None),
        )
        return cls(fields=fields, attributes=named, schema=schema)

    def value(self, record: Record, field_name: str) -> object:
        """Return the raw value of a field; None if the record has no such column."""
        return record.get(self.column_of(record, field_name))

    def column_of(self, record: Record, field_name: str) -> str:
        """Return the column that holds a field or, as `attributes.NAME`, an attribute of a record."""
        if field_name.startswith(NESTED):
            return self.attributes.get(field_name.removeprefix(NESTED), field_name)
        column = self.fields.get(field_name, field_name)
        fallback = self._fallback(field_name)
        return fallback if fallback != UNUSED and _is_empty(record.get(column)) else column

    def has(self, record: Record, field_name: str) -> bool:
        """Return whether a record has a column for a field, perhaps an empty one."""
        return not record.keys().isdisjoint((self.fields.get(field_name, field_name), self._fallback(field_name)))

    def _fallback(self, field_name: str) -> str:
        """Return the column that is read if that of a field is missing or empty; UNUSED if there is none."""
        fallback = FALLBACK_COLUMNS.get(field_name, UNUSED)
        is_only = field_name in self.fields and fallback not in self.fields
        return UNUSED if is_only else self.fields.get(fallback, fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRecord:
    """A parsed change, and one warning for each value that was ignored because it was invalid, or is ambiguous.

    `ambiguous`: the fields whose values were not ignored, but may be misread. `decimal_commas`: the texts of numbers
    whose decimal sign is certainly a comma, such as "1.234,50", by field.
    """

    change: Change
    warnings: tuple[str, ...] = ()
    ambiguous: frozenset[str] = frozenset()
    decimal_commas: Mapping[str, str] = field(default_factory=dict)

    @property
    def warned_fields(self) -> tuple[str, ...]:
        """The field of each warning."""
        return tuple(warning.partition(":")[0] for warning in self.warnings)


def column_key(column: str) -> str:
    """Return the name of a column without case, blanks, hyphens and underscores."""
    return SEPARATORS.sub("", column).casefold()


def column_names_of(record: Record) -> list[str]:
    """Return the columns of a record; each member of its object `attributes` is a column `attributes.NAME`."""
    names: list[str] = []
    for name, value in record.items():
        if name == "attributes" and isinstance(value, Mapping):
            names += [f"attributes.{each}" for each in value]
        else:
            names.append(str(name))
    return names


def attribute_values(record: Record, columns: Columns) -> dict[str, object]:
    """Return the raw values of the attributes of a record: the members of its object `attributes`, and its columns.

    A member whose name differs from that of a declared attribute only in case, blanks, hyphens and underscores is that
    attribute, if no other member has its name. A column `attributes.NAME` is a member, and an empty column counts only
    where there is no member.
    """
    nested = record.get("attributes")
    members = {str(name): value for name, value in nested.items()} if isinstance(nested, Mapping) else {}
    types = columns.schema.types
    declared = {column_key(name): name for name in types if name not in members}
    names = {each: each if each in types else declared.pop(column_key(each), each) for each in members}
    names |= {column.removeprefix(NESTED): name for name, column in columns.attributes.items() if column not in record}
    values = {names[member]: value for member, value in members.items()}
    for name, column in columns.attributes.items():
        if column in record and not (name in values and _is_empty(record[column])):
            values[name] = record[column]
    return values


def parse_record(record: Record, *, columns: Columns, now: datetime) -> ParsedRecord:
    """Return the change of a raw record: texts stripped and in Unicode NFC, the website as a bare domain.

    `now`: the version of a record without `event_time` (the start of a batch run, or the time of receipt). A record
    whose `deleted` is true needs only its id. A website without a host name, and an attribute that does not have its
    declared type, are ignored with a warning; the company is still accepted. A declared number like "1.200" is read as
    a decimal with a warning. Other values that get a warning are an id like "nan" or 1.0, tags with commas, a number
    with a leading zero, and a text in a wrong encoding.

    Raises:
        InvalidCompany: the record breaks a rule; the message names the field.
    """
    text = {name: clean_text(columns.value(record, name), name) for name in TEXT_FIELDS}
    if text["country"] == "NA" and sum(value == "NA" for value in record.values()) > 1:  # as R writes it: not Namibia
        text["country"] = ""
    deleted = _parse_bool(columns.value(record, "deleted"))
    event_time = _event_time(columns.value(record, "event_time"))
    version = version_of(event_time or now, now=now, deleted=deleted)
    untimed = event_time is None
    for name in ("id",) if deleted else REQUIRED:
        if not text[name]:
            raise InvalidCompany(name, f"is empty{_why_empty(record, columns, name)}")
    if deleted:
        return ParsedRecord(change=DeletedCompany(id=text["id"], version=version, untimed=untimed))
    check_id(text["id"])
    domain, warnings = _domain(columns.value(record, "domain"))
    attributes, remarkable = _attributes(record, columns)
    ambiguous = {name for name, each in remarkable.items() if each.ambiguous}
    tags = clean_list(columns.value(record, "tags"), "tags")
    company = Company(
        **text,
        aliases=clean_list(columns.value(record, "aliases"), "aliases"),
        tags=tags,
        domain=domain,
        attributes=attributes,
    )
    change = VersionedCompany(company=company, version=version, untimed=untimed)
    for name in TEXT_FIELDS:
        if meant := before_wrong_decoding(text[name]):
            warnings += (f"{name}: {text[name]!r:.40} looks like {meant!r:.40} in a wrong encoding; save as UTF-8",)
            ambiguous.add(name)
    if warning := id_warning(text["id"]):
        warnings += (warning,)
        ambiguous.add("id")
    # Names of companies have commas, so aliases get no warning.
    if warning := comma_warning(columns.value(record, "tags"), tags, "tags"):
        warnings += (warning,)
        ambiguous.add("tags")
    return ParsedRecord(
        change=change,
        warnings=warnings + tuple(f"{name}: {each.warning}" for name, each in remarkable.items() if each.warning),
        ambiguous=frozenset(ambiguous),
        decimal_commas={name: each.decimal_comma for name, each in remarkable.items() if each.decimal_comma},
    )


def _parts_of(pair: str) -> tuple[str, str | None, str]:
    """Return name, type and column of NAME[:TYPE][=COLUMN]; the type of an ordinal has a "=" of its own."""
    head, _, column = pair.partition("=")
    name, colon, kind = head.partition(":")
    if kind == "ordinal":
        levels, _, column = column.partition("=")
        kind = f"ordinal={levels}"
    return name, kind if colon else None, column


def _domain(value: object) -> tuple[str, tuple[str, ...]]:
    try:
        return normalize_domain(clean_text(value, "domain")), ()
    except InvalidCompany as error:
        return "", (f"{error}; left empty",)


def _attributes(record: Record, columns: Columns) -> tuple[dict[str, AttributeValue], dict[str, FieldValue]]:
    """Return the attributes, and the value of each field with a warning or a decimal comma."""
    attributes: dict[str, AttributeValue] = {}
    remarkable: dict[str, FieldValue] = {}
    nested = record.get("attributes")
    if isinstance(nested, list | bool | int | float) and "attributes" not in columns.attributes.values():
        remarkable["attributes"] = FieldValue(warning=f"must be an object, not {kind_of(nested)}; ignored")
    if isinstance(nested, UnreadableValue):
        remarkable["attributes"] = FieldValue(warning=f"{nested.reason}; ignored")
    for name, raw in attribute_values(record, columns).items():
        found = attribute_value(raw, columns.schema.types.get(name))
        if found.value is not None:
            attributes[name] = found.value
        if found.warning or found.decimal_comma:
            remarkable[f"attributes.{name}"] = found
    return attributes, remarkable


def _why_empty(record: Record, columns: Columns, field_name: str) -> str:
    """Return why a text is empty although its cell may not be; nothing if the cell is empty."""
    if not columns.has(record, field_name):
        return f": the record has no {columns.column_of(record, field_name)!r:.80}"
    value = columns.value(record, field_name)
    return f": {value!r:.40} is a missing value, or only markup" if isinstance(value, str) and value.strip() else ""


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple) and not value)


def _parse_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = clean_text(value, "deleted").casefold()
    if text in {"", "0", "false", "f", "no", "n"}:
        return False
    if text in {"1", "true", "t", "yes", "y"}:
        return True
    raise InvalidCompany("deleted", f"{value!r:.40} is neither true nor false")


def _event_time(value: object) -> datetime | None:
    if isinstance(value, datetime) and plain_value(value) is not None:
        return value
    text = clean_text(value, "event_time")
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidCompany("event_time", f"{text!r:.60} is not ISO 8601 such as 2026-01-31T12:00:00Z") from None


def lost_to_invalid_values(before: Company, parsed: ParsedRecord) -> list[str]:
    """Return the fields and attributes of `before` whose new value was ignored because it is invalid."""
    had = {"domain"} if before.domain else set()
    had.update(f"attributes.{name}" for name in before.attributes)
    return [name for name in parsed.warned_fields if name in had - parsed.ambiguous]


def removed_fields(before: Company, after: Company, record: Record, columns: Columns) -> list[str]:
    """Return the fields and attributes of `before` that `after` lacks because its row has no column for them."""
    lost = (name for name in OPTIONAL_FIELDS if getattr(before, name) and not getattr(after, name))
    fields = [name for name in lost if not columns.has(record, name)]
    named = {*after.attributes, *attribute_values(record, columns)}
    return fields + [f"attributes.{name}" for name in before.attributes if name not in named]
