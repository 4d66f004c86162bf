"""Filters written as short texts, for a command line or a URL.

    country=France   tags!=retail   attributes.employees>=100   attributes.founded<=1999.5

For one field, several `=` match any of the values, several `!=` none of them, and the narrowest range applies.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter
from similarity.index.numbers import number_of

FORMS = "FIELD=VALUE, FIELD!=VALUE, FIELD>=NUMBER or FIELD<=NUMBER"
FILTER_PATTERN = re.compile(r"\s*(?P<field>[^=!<>]*?)\s*(?P<comparison>!=|>=|<=|=)(?P<value>.*)", re.DOTALL)


@dataclass(slots=True)
class _Conditions:
    """The conditions on one field."""

    any_of: list[str] = field(default_factory=list)
    none_of: list[str] = field(default_factory=list)
    at_least: list[float] = field(default_factory=list)
    at_most: list[float] = field(default_factory=list)

    def add(self, comparison: str, value: str) -> None:
        if comparison == "=":
            self.any_of.append(value)
        elif comparison == "!=":
            self.none_of.append(value)
        else:
            (self.at_least if comparison == ">=" else self.at_most).append(_number(value))


def parse_filters(texts: Iterable[str]) -> list[FieldFilter]:
    """Return one filter per field, in the order of their first mention.

        >>> [filter.any_of for filter in parse_filters(["country=France", "country=Italy"])]
        [('France', 'Italy')]

    Raises:
        InvalidFilter: a text has none of the forms, or an invalid value.
    """
    fields: dict[str, _Conditions] = {}
    for text in texts:
        parts = FILTER_PATTERN.fullmatch(text)
        if not parts:
            raise InvalidFilter(f"{text!r:.80} is not a filter; write {FORMS}")
        name, value = parts["field"], parts["value"].strip()
        if not value:
            raise InvalidFilter(f"the filter {text!r:.80} has no value; write {FORMS}")
        fields.setdefault(name, _Conditions()).add(parts["comparison"], value)
    return [_filter(name, conditions) for name, conditions in fields.items()]


def _filter(name: str, conditions: _Conditions) -> FieldFilter:
    return FieldFilter(
        field=name,
        any_of=tuple(conditions.any_of),
        none_of=tuple(conditions.none_of),
        at_least=max(conditions.at_least, default=None),
        at_most=min(conditions.at_most, default=None),
    )


def _number(text: str) -> float:
    number = number_of(text)
    if number is None:
        raise InvalidFilter(f"{text!r:.80} is not a number; write a number such as 100, -2.5 or 1e6")
    return number
