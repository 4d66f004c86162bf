"""Messages about companies: what a topic or a line of a file carries, as bytes.

    key    the company's id in UTF-8; may be missing where the value names it
    value  a JSON object with the fields of a record (`similarity.ingest.COMPANY_FIELDS`), free
           `attributes` and optionally `schema`: 1 and `follows_version`; null or nothing: the company
           is deleted

`follows_version` is the stored version that the sender replaces, whatever the event time: the change gets
the lowest version above it. The service adds it to a write without an event time where the stored version
lies ahead of the clock.

A message keeps its bytes from the source to the index or the dead letters, so that nothing of what
could not be understood is lost.
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
"""Half of what an index can store: whatever a message says, there is room for newer versions."""
MAX_BYTES = 2_000_000
"""Of a value: ten times what the longest description takes in ASCII."""
NO_COLUMNS = Columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as it came.

    `position` says where it was read and is its identity: no two messages of a source share one, and
    reading again gives the same. `time` is the version of a message that carries no event time: when
    it was written to its topic, or the start of the run that reads a file. `unreadable` is set where
    the source itself could not make a record of it.
    """

    position: str
    value: bytes | None
    time: datetime
    key: bytes | None = None
    unreadable: str = ""


def decode(message: Message, *, columns: Columns = NO_COLUMNS) -> ParsedRecord:
    """The change that a message asks for. The same message always gives the same change.

    Raises:
        InvalidCompany: it cannot be understood, or breaks a rule; the message names the field.
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
    columns = _with_attributes(record, columns)
    if key and columns.value(record, "id") is None:
        record[columns.fields.get("id", "id")] = key
    parsed = parse_record(record, columns=columns, now=message.time)
    if key and parsed.change.id != key:
        raise InvalidCompany("id", f"the key says {key!r:.140}, the value {parsed.change.id!r}; send both alike")
    # A message that is read again must not be raised above what was written since.
    return replace(parsed, change=following(replace(parsed.change, untimed=False), follows))


def following(change: Change, stored: object) -> Change:
    """Return the change at its own version or, if higher, the lowest version above `stored`; None: nothing is stored.

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
    """Key and value of a message that `decode` turns into `following(change, follows)`, whenever it is read."""
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
    """Python reads NaN and Infinity, JSON has neither; as a field they would become the word."""
    raise ValueError(f"{constant} is no number of JSON")


def _with_attributes(record: dict[str, object], columns: Columns) -> Columns:
    """Moves the attributes of a record to columns of their own; returns which."""
    attributes = record.pop("attributes", None)
    if attributes is None:
        return columns
    if not isinstance(attributes, dict):
        raise InvalidCompany("attributes", f"must be a JSON object, not {type(attributes).__name__}")
    named = {name: f"attributes.{name}" for name in attributes}
    record |= {named[name]: value for name, value in attributes.items()}
    return replace(columns, attributes={**columns.attributes, **named})
