"""Decode JSON into frozen dataclasses, by their annotations.

Unknown JSON members are ignored, so that answers of a newer service can be read. A field with a default may be
absent, so that answers of an older service can be read.
"""

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

Record = TypeVar("Record")


class Undecodable(ValueError):
    """JSON that is not of the expected type, or no JSON."""


def decode_json(record: type[Record], text: bytes) -> Record:
    """Return the `record` (a dataclass) decoded from JSON text.

    Raises:
        Undecodable: it is not JSON, it is nested too deeply, or a member is missing or has the wrong type.
    """
    try:
        kind: Any = record
        decoded: Record = _adapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise Undecodable(_message(error.errors(include_url=False)[0], text)) from None
    return decoded


def decode(record: type[Record], value: object) -> Record:
    """Return the `record` (a dataclass) decoded from a value that was parsed from JSON.

    Raises:
        Undecodable: a member is missing or has the wrong type.
    """
    try:
        kind: Any = record
        decoded: Record = _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise Undecodable(_message(error.errors(include_url=False)[0], b"")) from None
    return decoded


@cache
def _adapter(record: Any) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def _message(error: ErrorDetails, text: bytes) -> str:
    if error["type"] == "json_invalid":
        return f"{error['msg']}: {text[:100]!r}; is this the URL of the search service?"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    return f"{place or 'JSON'}: {error['msg']}; found {error['input']!a:.60}"
