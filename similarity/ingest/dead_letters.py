"""Messages that could not be taken, kept with their bytes and the reason, so that they can be replayed.

A dead letter is one line of JSON. A message that died twice (a bundle was tried again) has two lines and
one identity: its position and its content.
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
    """Where a message ended."""

    DECODE = "decode"
    """It is no change of a company that could be understood."""
    EMBED = "embed"
    """The encoder fails on its text, and on its text alone."""
    WRITE = "write"
    """The index cannot store it: the same version is there with other content, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message, where it ended, and why."""

    message: Message
    stage: Stage
    reason: str

    @property
    def identity(self) -> bytes:
        """32 bytes that the dead letters of one message share, and no others.

        The position alone does not tell messages apart: a topic that was made anew and a file that was replaced give
        the old positions to other messages.
        """
        message = self.message
        parts = (message.position.encode(), message.key, message.value, message.unreadable.encode())
        return hashlib.sha256(repr(parts).encode()).digest()

    def to_line(self) -> str:
        """One line of JSON, without its end. Key and value are shown as text where they are UTF-8, else in base64."""
        message = self.message
        entry = {
            "position": message.position,
            "stage": self.stage.value,
            "reason": self.reason,
            "time": message.time.isoformat(),
            **_shown("key", message.key),
            **_shown("value", message.value),
        }
        if message.unreadable:
            entry["unreadable"] = message.unreadable
        return json.dumps(entry)

    @classmethod
    def from_line(cls, line: str) -> "DeadLetter":
        """What `to_line` made a line of.

        Raises:
            InvalidInput: the line is no dead letter.
        """
        try:
            entry = read_json(line)
            message = Message(
                position=_text(entry["position"]),
                key=_held(entry, "key"),
                value=_held(entry, "value"),
                time=_time(entry["time"]),
                unreadable=_text(entry.get("unreadable", "")),
            )
            return cls(message=message, stage=Stage(entry["stage"]), reason=_text(entry["reason"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{line[:80]!r} is no dead letter ({error!r}): keep lines as written") from None


def _shown(name: str, content: bytes | None) -> dict[str, str]:
    if content is None:
        return {}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _held(entry: dict[str, object], name: str) -> bytes | None:
    if (encoded := entry.get(f"{name}_base64")) is not None:
        return base64.b64decode(_text(encoded), validate=True)
    text = entry.get(name)
    return None if text is None else _text(text).encode()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _time(value: object) -> datetime:
    time = datetime.fromisoformat(_text(value))
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone")
    return time
