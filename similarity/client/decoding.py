"""Decode JSON into frozen dataclasses, by their annotations.

Unknown JSON members are ignored, so that answers of a newer service can be read. A field with a default may be
absent, so that answers of an older service can be read.
"""

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")
Decoder: TypeAlias = Callable[[Any], Any]

JSON_NAMES = {"dict": "an object", "list": "a list", "str": "text", "int": "a whole number", "float": "a number"}


class Undecodable(ValueError):
    """A JSON value of the wrong type; `place` is its position, such as `.hits[3].score`."""

    def __init__(self, expected: str, value: object, place: str = "") -> None:
        super().__init__(f"{place.lstrip('.') or 'the answer'} is {value!r:.60}, not {expected}")
        self.expected = expected
        self.value = value
        self.place = place

    def inside(self, place: str) -> "Undecodable":
        """Return the same error with its position inside the enclosing value."""
        return Undecodable(self.expected, self.value, place + self.place)


def decode(record: type[Record], value: object) -> Record:
    """Return the `record` (a dataclass) decoded from a JSON object.

    Raises:
        Undecodable: a member is missing or has the wrong type.
    """
    kind: Any = record
    decoded: Record = _decoder(kind)(value)
    return decoded


@cache
def _decoder(kind: Any) -> Decoder:
    if get_origin(kind) is not None or isinstance(kind, types.UnionType):
        return _generic(kind)
    if is_dataclass(kind):
        return _record(kind)
    known: dict[Any, Decoder] = {datetime: _time, float: _number, Any: lambda value: value}
    return known.get(kind) or partial(_expect, kind)


def _generic(kind: Any) -> Decoder:
    kinds = get_args(kind)
    if get_origin(kind) in {Union, types.UnionType}:
        return _one_of(kinds)
    return _items(_decoder(kinds[0])) if get_origin(kind) is tuple else _members(_decoder(kinds[1]))


def _record(kind: Any) -> Decoder:
    annotations = get_type_hints(kind)
    known = tuple(
        (each.name, _decoder(annotations[each.name]), each.default is MISSING and each.default_factory is MISSING)
        for each in fields(kind)
    )

    def decode_record(value: Any) -> Any:
        given = _expect(dict, value)
        members = {}
        for name, decode_member, required in known:
            if name in given:
                try:
                    members[name] = decode_member(given[name])
                except Undecodable as error:
                    raise error.inside(f".{name}") from None
            elif required:
                raise Undecodable("there as it should be", None, f".{name}")
        return kind(**members)

    return decode_record


def _items(decode_item: Decoder) -> Decoder:
    def decode_items(value: Any) -> Any:
        items = []
        for position, item in enumerate(_expect(list, value)):
            try:
                items.append(decode_item(item))
            except Undecodable as error:
                raise error.inside(f"[{position}]") from None
        return tuple(items)

    return decode_items


def _members(decode_member: Decoder) -> Decoder:
    def decode_members(value: Any) -> Any:
        members = {}
        for name, member in _expect(dict, value).items():
            try:
                members[name] = decode_member(member)
            except Undecodable as error:
                raise error.inside(f".{name}") from None
        return members

    return decode_members


def _one_of(kinds: tuple[Any, ...]) -> Decoder:
    decoders = [_decoder(kind) for kind in kinds if kind is not type(None)]
    may_be_none = type(None) in kinds
    names = " or ".join(JSON_NAMES.get(kind.__name__, kind.__name__) for kind in kinds if kind is not type(None))

    def decode_one(value: Any) -> Any:
        if value is None and may_be_none:
            return None
        if len(decoders) == 1:
            return decoders[0](value)
        for decoder in decoders:
            try:
                return decoder(value)
            except Undecodable:
                continue
        raise Undecodable(names, value)

    return decode_one


def _expect(kind: type, value: Any) -> Any:
    # In Python, True is an int; in JSON it is not a number.
    if not isinstance(value, kind) or (value is True or value is False) is not (kind is bool):
        raise Undecodable(JSON_NAMES.get(kind.__name__, kind.__name__), value)
    return value


def _number(value: Any) -> float:
    return float(value) if type(value) is int else _expect(float, value)


def _time(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(_expect(str, value))
    except Undecodable:
        raise
    except ValueError:
        raise Undecodable("a time such as 2026-01-31T12:00:00Z", value) from None
