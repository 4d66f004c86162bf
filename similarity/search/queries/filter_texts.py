"""Filters written as short texts, for a command line or a URL.

    country=France   tags!=retail   attributes.employees>=100   attributes.founded<1999.5   attributes.size>=large

Ranges compare numbers, or the levels of an ordinal attribute.
For one field, several `=` match any of the values, several `!=` none of them, and the narrowest range applies.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter, Limit
from similarity.index.numbers import number_of

FORMS = "FIELD=VALUE, FIELD!=VALUE, or FIELD>=LIMIT (also <=, > and <), where LIMIT is a number or a level"
FILTER_PATTERN = re.compile(r"\s*(?P<field>[^=!<>]*?)\s*(?P<comparison>!=|>=|<=|=|>|<)(?P<value>.*)", re.DOTALL)

LIMITS = {">=": "at_least", "<=": "at_most", ">": "above", "<": "below"}


@dataclass(slots=True)
class _Conditions:
    """The conditions on one field."""

    any_of: list[str] = field(default_factory=list)
    none_of: list[str] = field(default_factory=list)
    limits: dict[str, list[Limit]] = field(default_factory=dict)

    def add(self, comparison: str, value: str) -> None:
        if comparison == "=":
            self.any_of.append(value)
        elif comparison == "!=":
            self.none_of.append(value)
        else:
            number = number_of(value)
            self.limits.setdefault(LIMITS[comparison], []).append(value if number is None else number)


def parse_filters(texts: Iterable[str]) -> list[FieldFilter]:
    """Return one filter per field, in the order of their first mention.

        >>> [filter.any_of for filter in parse_filters(["country=France", "country=Italy"])]
        [('France', 'Italy')]

    Raises:
        InvalidFilter: a text has none of the forms or an invalid value, or a field has several limits of one kind,
            not all of them numbers.
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
        **{limit: _narrowest(name, limit, given) for limit, given in conditions.limits.items()},
    )


def _narrowest(name: str, limit: str, given: Sequence[Limit]) -> Limit:
    """Return the narrowest of several limits of one kind. Different levels are refused: only the index orders them."""
    numbers = [each for each in given if not isinstance(each, str)]
    if len(numbers) == len(given):
        return max(numbers) if limit in {"at_least", "above"} else min(numbers)
    if len(set(given)) > 1:
        listed = ", ".join(map(str, given))
        raise InvalidFilter(f"the filter on {name} has several limits of one kind ({listed:.80}); give one of them")
    return given[0]
