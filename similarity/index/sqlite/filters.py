"""Filters in the form in which they are compared with `lookups`: for the rows of a matrix, and as SQL."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from similarity.company import Company
from similarity.index.filters import LANGUAGE, FieldFilter
from similarity.index.numbers import number_name
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.rows import lookup_values
from similarity.index.validation import filter_key

ANY_OF, BETWEEN = "IN (SELECT value FROM json_each(?))", "BETWEEN ? AND ?"


class KeyRange(NamedTuple):
    """A range of keys (`index.numbers`), both limits inclusive, and the field of `lookups` with the keys."""

    field: str
    lowest: str
    highest: str


class Condition(NamedTuple):
    """A filter with its values in stored form, sorted and distinct; conditions of equal meaning are equal."""

    field: str
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    range: KeyRange | None = None


Conditions: TypeAlias = tuple[Condition, ...]


def conditions(filters: Sequence[FieldFilter]) -> Conditions:
    """Return the conditions of these filters."""
    return tuple(
        Condition(held.field, _stored(held.any_of), _stored(held.none_of), _key_range(held)) for held in filters
    )


def require_passing(asked: Sequence[Condition], hits: Iterable[Company]) -> None:
    """Raise DamagedRow if the profile of a hit does not match a condition, so that `lookups` is damaged."""
    # The language has no lookups: it is read from the documents themselves.
    looked_up = [condition for condition in asked if condition.field != LANGUAGE]
    for company in hits if looked_up else ():
        held = lookup_values(company)
        if not all(_passes(condition, held) for condition in looked_up):
            raise DamagedRow(f"lookups hold a value that company {company.id!r} does not have")


def _passes(condition: Condition, held: Collection[tuple[str, str]]) -> bool:
    field, any_of, none_of, keys = condition
    return (
        (not any_of or any((field, value) in held for value in any_of))
        and not any((field, value) in held for value in none_of)
        and (keys is None or any(_lies_in(keys, name, value) for name, value in held))
    )


def _lies_in(keys: KeyRange, field: str, value: str) -> bool:
    return field == keys.field and keys.lowest <= value <= keys.highest


def _key_range(held: FieldFilter) -> KeyRange | None:
    return KeyRange(number_name(held.field), *held.key_range()) if held.has_range else None


def _stored(values: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({filter_key(value) for value in values}))
