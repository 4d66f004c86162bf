"""Messages about companies, as bytes of a Kafka record or of a line of a file.

    key    the company's id in UTF-8; may be absent if the value has it
    value  a JSON object with the fields of a record (`similarity.ingest.records.COMPANY_FIELDS`),
           `attributes` and optionally `schema`: 1 and `follows_version`; an empty value or none deletes the company

`follows_version` is the stored version that the sender replaces: the change gets the lowest version above it, or
the version of its event time if that is higher. The service adds `follows_version` to a write without an event
time if the stored version is ahead of the clock.

A message keeps its bytes from the source to the index or to the dead letters, so that an undecodable message is
not lost.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime

from similarity.company import DeletedCompany, time_of_version, version_above, version_of
from similarity.errors import InvalidCompany
from similarity.formats.json_text import read_json
from similarity.ingest.records import Change, Columns, ParsedRecord, parse_record

SCHEMA = 1
FOLLOWS_VERSION = "follows_version"
MAX_FOLLOWED_VERSION = 2**62
"""Half of the highest version that an index can store: newer versions are still possible after any message."""
MAX_BYTES = 2_000_000
"""Limit of a value: ten times the size of the longest description in ASCII."""
NO_COLUMNS = Columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One undecoded message.

    `position`: where it was read. It identifies the message: it is unique in a source, and the same when the message
    is read again. `time`: the version of a message without an event time; when it was written to its topic, or the
    start of the run that reads a file. `unreadable`: the reason if the source could not read it as a record.
    """

    position: str
    value: bytes | None
    time: datetime
    key: bytes | None = None
    unreadable: str = ""


def decode(message: Message, *, columns: Columns = NO_COLUMNS) -> ParsedRecord:
    """Return the change in a message; the result is the same each time.

    Raises:
        InvalidCompany: the message cannot be decoded, or breaks a rule; the error names the field.
    """
    if message.unreadable:
        raise InvalidCompany("value", message.unreadable)
    key = _key_of(message)
    if not message.value:
        if not key:
            raise InvalidCompany("key", "an empty value deletes the company that the key names, but there is no key")
        deleted_at = version_of(message.time, now=message.time, deleted=True)
        return ParsedRecord(change=DeletedCompany(id=key, version=deleted_at))
    record = _record_of(message.value)
    follows = record.pop(FOLLOWS_VERSION, None)
    _check_attributes(record.get("attributes"))
    if key and columns.value(record, "id") is None:
        record[columns.fields.get("id", "id")] = key
    parsed = parse_record(record, columns=columns, now=message.time)
    if key and parsed.change.id != key:
        raise InvalidCompany("id", f"the key is {key!r:.140}, but the id is {parsed.change.id!r}; send the same id")
    # A message that is read again must not get a version above later writes.
    return replace(parsed, change=following(replace(parsed.change, untimed=False), follows))


def following(change: Change, stored: object) -> Change:
    """Return the change with its own version or, if higher, the lowest version above `stored` (None: no version).

    Raises:
        InvalidCompany: `stored` is not a version that a message may follow.
    """
    if stored is None:
        return change
    if not isinstance(stored, int) or isinstance(stored, bool) or not 0 <= stored <= MAX_FOLLOWED_VERSION:
        raise InvalidCompany(FOLLOWS_VERSION, f"{stored!r:.40} must be a whole number from 0 to 2^62")
    version = version_above(stored, deleted=isinstance(change, DeletedCompany))
    return replace(change, version=max(change.version, version))


def encode(change: Change, *, follows: int | None = None) -> tuple[bytes, bytes]:
    """Return key and value of a message that `decode` turns into `following(change, follows)`."""
    record: dict[str, object] = {
        "schema": SCHEMA,
        "id": change.id,
        "event_time": time_of_version(change.version).isoformat(),
    }
    if follows is not None:
        record[FOLLOWS_VERSION] = follows
    if isinstance(change, DeletedCompany):
        record["deleted"] = True
    else:
        record |= {name: value for name, value in change.company.content().items() if value}
    return change.id.encode(), json.dumps(record, ensure_ascii=False).encode()


def _key_of(message: Message) -> str:
    try:
        return (message.key or b"").decode()
    except UnicodeDecodeError:
        raise InvalidCompany("key", f"{message.key!r:.140} is not UTF-8") from None


def _record_of(value: bytes) -> dict[str, object]:
    if len(value) > MAX_BYTES:
        raise InvalidCompany("value", f"has {len(value):,} bytes; the limit is {MAX_BYTES:,}")
    try:
        record = read_json(value, parse_constant=_refuse)
    except ValueError as error:
        raise InvalidCompany("value", f"is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise InvalidCompany("value", f"must be a JSON object, not {type(record).__name__}")
    schema = record.pop("schema", SCHEMA)
    if schema != SCHEMA:
        raise InvalidCompany("schema", f"is {schema!r:.40}; this release reads {SCHEMA}: upgrade the pipeline first")
    return record


def _refuse(constant: str) -> None:
    """Refuse NaN and Infinity, which Python's parser accepts but JSON does not have."""
    raise ValueError(f"{constant} is not a number in JSON")


def _check_attributes(attributes: object) -> None:
    """Refuse attributes that cannot be stored: a message with them is a dead letter, as it has no file of warnings."""
    if attributes is None:
        return
    if not isinstance(attributes, dict):
        raise InvalidCompany("attributes", f"must be a JSON object, not {type(attributes).__name__}")
    for name, value in attributes.items():
        if isinstance(value, list | dict):
            raise InvalidCompany(f"attributes.{name}", f"must be text, not {type(value).__name__}")
