"""From bodies to changes: JSON checked member by member, then parsed as every other source's records are."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from similarity.errors import InvalidCompany
from similarity.ingest.messages import FOLLOWS_VERSION
from similarity.ingest.records import Columns, ParsedRecord, parse_record

from ..wire import problems
from ..wire.problem_documents import Offence, Problem
from ..wire.strict_json import strict_json
from .write_schemas import CompanyBody, CompanyLine, DeletionLine

OFFENCES_SHOWN = 20
MEMBER_CHARACTERS = 80
ID_CHARACTERS = 128
REASONS = {
    "extra_forbidden": "there is no such member; free facts belong under attributes",
    "missing": "is missing",
}


class BadRecord(Exception):
    """A record that breaks rules; `offences` are members and reasons, `id` is the company's where it was told."""

    def __init__(self, *offences: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{member}: {reason}" if member else reason for member, reason in offences))
        self.offences = offences
        self.id: str | None = None

    def problem(self, where: str = "body") -> Problem:
        """The problem of a request that holds this record alone."""
        shown = [Offence(parameter=member, where=where, reason=reason) for member, reason in self.offences]
        return Problem(problems.INVALID_REQUEST, str(self), errors=shown)


def company_of_body(raw: bytes, company_id: str, *, now: datetime) -> ParsedRecord:
    """The company that `raw` describes, as of its event time or else `now`.

    Raises:
        BadRecord: it breaks a rule, or names another id.
    """
    record = _object(raw)
    _check(CompanyBody, record)
    if record.get("id") not in {None, company_id}:
        raise BadRecord(("id", f"the path says {company_id!r}, the body {record['id']!r}; send both alike"))
    return _parsed({**record, "id": company_id}, now=now)


def deletion(company_id: str, event_time: str | None, *, now: datetime) -> ParsedRecord:
    """The deletion of a company, as of `event_time` or else `now`.

    Raises:
        BadRecord: the time breaks a rule.
    """
    return _parsed({"id": company_id, "deleted": True, "event_time": event_time}, now=now)


def change_of_line(raw: bytes, *, now: datetime) -> ParsedRecord:
    """The change that a line of NDJSON asks for: a company, or with `"deleted": true` its deletion.

    Raises:
        BadRecord: it breaks a rule.
    """
    record = _object(raw)
    if record.get("schema") == 1:  # so that the messages of a topic can be uploaded as they are
        del record["schema"]
        record.pop(FOLLOWS_VERSION, None)  # its event time decides here
    try:
        _check(DeletionLine if record.get("deleted") is True else CompanyLine, record)
        return _parsed(record, now=now)
    except BadRecord as bad:
        told = record.get("id")
        bad.id = told[:ID_CHARACTERS] if isinstance(told, str) else None
        raise


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = strict_json(raw)
    except ValueError as error:
        raise BadRecord(("", f"the JSON cannot be used: {error}")) from None
    if not isinstance(value, dict):
        raise BadRecord(("", f"must be a JSON object, not {type(value).__name__}"))
    return value


def _check(model: type[BaseModel], record: dict[str, Any]) -> None:
    try:
        model.model_validate(record)
    except ValidationError as error:
        raise BadRecord(*map(_offence, error.errors(include_url=False)[:OFFENCES_SHOWN])) from None


def _offence(error: Any) -> tuple[str, str]:
    member = ".".join(str(part) for part in error["loc"][:2])[:MEMBER_CHARACTERS]
    return member, REASONS.get(error["type"]) or str(error["msg"]).replace("Input should be", "must be", 1)


def _parsed(record: dict[str, Any], *, now: datetime) -> ParsedRecord:
    attributes = record.pop("attributes", None) or {}
    columns = Columns(attributes={name: f"attributes.{name}" for name in attributes})
    flat = {f"attributes.{name}": value for name, value in attributes.items()}
    try:
        return parse_record({**record, **flat}, columns=columns, now=now)
    except InvalidCompany as error:
        raise BadRecord((error.field, error.reason)) from None
