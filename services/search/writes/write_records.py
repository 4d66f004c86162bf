"""From bodies to changes: the JSON is validated, then parsed like the records of every other source."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from similarity.errors import InvalidCompany
from similarity.index.attributes import AttributeSchema
from similarity.ingest.messages import FOLLOWS_VERSION
from similarity.ingest.records import Columns, ParsedRecord, parse_record

from ..wire import problems
from ..wire.problem_documents import Problem, invalid_request
from ..wire.strict_json import strict_json
from .write_schemas import MAX_COMPANY_BYTES, CompanyBody, CompanyLine, DeletionLine

MAX_ID_CHARACTERS = 128
Declared: TypeAlias = Callable[[], AttributeSchema]
UNKNOWN_MEMBER = "there is no such member; put a website into domain, and free facts under attributes"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bulk upload: its change, or the reason why it has none."""

    number: int
    id: str | None
    parsed: ParsedRecord | None = None
    reason: str = ""


def company_of_body(
    raw: bytes, company_id: str, *, now: datetime, declared: Declared = AttributeSchema
) -> ParsedRecord:
    """Return the company that `raw` describes, as of its event time or else `now`.

    `declared`: returns the declared types of attributes; called if the company has attributes.

    Raises:
        Problem: the record is invalid, or has another id.
    """
    record = _object(raw)
    _validate(CompanyBody, record)
    if record.get("id") not in {None, company_id}:
        raise _invalid("id", f"the path has {company_id!r}, the body {record['id']!r}; send the same id in both")
    return _parsed({**record, "id": company_id}, now=now, declared=declared)


def deletion(company_id: str, event_time: str | None, *, now: datetime) -> ParsedRecord:
    """Return the deletion of a company, as of `event_time` or else `now`.

    Raises:
        Problem: the time is invalid.
    """
    return _parsed({"id": company_id, "deleted": True, "event_time": event_time}, now=now, where="query")


def read_line(number: int, raw: bytes, *, now: datetime, declared: Declared = AttributeSchema) -> Line:
    """Return the change in a line of NDJSON: a company, or with `"deleted": true` its deletion.

    `declared`: as for `company_of_body`.
    """
    company_id = None
    try:
        record = _object(raw)
        if isinstance(given := record.get("id"), str):
            company_id = given[:MAX_ID_CHARACTERS]
        if record.get("schema") == 1:  # so that the messages of a topic can be uploaded unchanged
            del record["schema"]
            record.pop(FOLLOWS_VERSION, None)  # its event time decides here
        _validate(DeletionLine if record.get("deleted") is True else CompanyLine, record)
        parsed = _parsed(record, now=now, declared=declared)
    except Problem as problem:
        return Line(number, company_id, reason=str(problem).removeprefix("body: "))
    return Line(number, parsed.change.id, parsed)


def _object(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_COMPANY_BYTES:
        raise Problem(
            problems.BODY_TOO_LARGE,
            f"a company has at most {MAX_COMPANY_BYTES:,} bytes of JSON, and this has {len(raw):,}; shorten its "
            "description, of which only the beginning becomes a vector, or load it from a file",
        )
    try:
        value = strict_json(raw)
    except ValueError as error:
        raise _invalid("", f"the JSON cannot be used: {error}") from None
    if not isinstance(value, dict):
        raise _invalid("", f"must be a JSON object, not {type(value).__name__}")
    return value


def _validate(model: type[BaseModel], record: dict[str, Any]) -> None:
    try:
        model.model_validate(record)
    except ValidationError as error:
        # Two parts name a member or an item; a third is the type that pydantic tried.
        errors = [{**each, "loc": ("body", *each["loc"][:2])} for each in error.errors()]
        raise invalid_request(errors, unknown=UNKNOWN_MEMBER) from None


def _parsed(
    record: dict[str, Any], *, now: datetime, where: str = "body", declared: Declared = AttributeSchema
) -> ParsedRecord:
    columns = Columns(schema=declared() if record.get("attributes") else AttributeSchema())
    try:
        return parse_record(record, columns=columns, now=now)
    except InvalidCompany as error:
        raise _invalid(error.field, error.reason, where) from None


def _invalid(member: str, reason: str, where: str = "body") -> Problem:
    return invalid_request([{"loc": [where, *([member] if member else [])], "msg": reason}])
