"""Dead letters: messages that could not be processed, with their bytes and the reason, so that they can be replayed.

A dead letter is one line of JSON. A message that failed twice (in a retried Beam bundle) has two lines with one
identity: its position and its content.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from similarity.errors import InvalidInput
from similarity.formats.json_text import read_json
from similarity.ingest.messages import Message


class Stage(StrEnum):
    """The step at which a message failed."""

    DECODE = "decode"
    """It cannot be decoded to a valid change of a company."""
    EMBED = "embed"
    """The encoder fails on its text, but not on others."""
    WRITE = "write"
    """The index cannot store it; for example, the stored company has the same version and other content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that failed, with the stage and the reason."""

    message: Message
    stage: Stage
    reason: str

    @property
    def identity(self) -> bytes:
        """32 bytes that are equal for all dead letters of one message, and for no others.

        The position alone is not unique: a recreated topic or a replaced file gives it to other messages.
        """
        message = self.message
        # Names of files that are not UTF-8 contain lone surrogates.
        position, unreadable = (text.encode(errors="surrogatepass") for text in (message.position, message.unreadable))
        parts = (position, message.key, message.value, unreadable)
        return hashlib.sha256(repr(parts).encode()).digest()

    def to_line(self) -> str:
        """Return one line of JSON without a newline. Key and value are text if they are UTF-8, else base64."""
        message = self.message
        entry = {
            "position": message.position,
            "stage": self.stage.value,
            "reason": self.reason,
            "time": message.time.isoformat(),
            **_json_members("key", message.key),
            **_json_members("value", message.value),
        }
        if message.unreadable:
            entry["unreadable"] = message.unreadable
        return json.dumps(entry)

    @classmethod
    def from_line(cls, line: str) -> "DeadLetter":
        """Return the dead letter that `to_line` wrote.

        Raises:
            InvalidInput: the line is not a dead letter.
        """
        try:
            entry = read_json(line)
            message = Message(
                position=_text(entry["position"]),
                key=_bytes_member(entry, "key"),
                value=_bytes_member(entry, "value"),
                time=_time(entry["time"]),
                unreadable=_text(entry.get("unreadable", "")),
            )
            return cls(message=message, stage=Stage(entry["stage"]), reason=_text(entry["reason"]))
        except (ValueError, KeyError, TypeError) as error:
            reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidInput(
                f"{line[:80]!r} is not a dead letter: {reason}; use the file as the stream wrote it"
            ) from None


def _json_members(name: str, content: bytes | None) -> dict[str, str]:
    if content is None:
        return {}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _bytes_member(entry: dict[str, object], name: str) -> bytes | None:
    if (encoded := entry.get(f"{name}_base64")) is not None:
        return base64.b64decode(_text(encoded), validate=True)
    text = entry.get(name)
    return None if text is None else _text(text).encode()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not a string")
    return value


def _time(value: object) -> datetime:
    time = datetime.fromisoformat(_text(value))
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone")
    return time
