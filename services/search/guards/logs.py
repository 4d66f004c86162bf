"""The log of the service: one JSON object per line, or plain text."""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from .envelope import request_id

FIELDS = "similarity_fields"
"""The attribute of a log record that holds further members of its line: `extra={FIELDS: {...}}`."""

SECRET_PART = re.compile(r"(cs_[0-9a-f]{12}_)[A-Za-z0-9_-]+")
"""A key's secret (`key_file.SECRET`), or the beginning of one."""


def start_logs(stream: TextIO, *, form: Literal["json", "text"] = "json") -> None:
    """Send all log records of level INFO and above to `stream` alone."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class JsonLines(logging.Formatter):
    """A log record as one line of JSON, with the id of the request that it is about."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if identity := request_id.get():
            line["request_id"] = identity
        line.update(getattr(record, FIELDS, {}))
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=False, default=str))


class TextLines(logging.Formatter):
    """`LEVEL: message key=value ...`"""

    def __init__(self) -> None:
        super().__init__("%(levelname)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in getattr(record, FIELDS, {}).items())
        return without_secrets(super().format(record) + fields)


def without_secrets(text: str) -> str:
    """Return `text` with the secret half of each API key in it replaced by `***`."""
    return SECRET_PART.sub(r"\1***", text) if "cs_" in text else text
