"""Filters in a URL, called conditions: `country=Germany`, `tags!=retail`, `attributes.employees>=100`."""

import re
from collections.abc import Mapping, Sequence

from similarity.company import ATTRIBUTE_NAME_PATTERN
from similarity.errors import InvalidFilter
from similarity.index.filters import FILTER_FIELDS, FieldFilter
from similarity.search.queries.filter_texts import FORMS, LIMITS, parse_filters

_ATTRIBUTE = rf"attributes\.{ATTRIBUTE_NAME_PATTERN.pattern}"
FIELD = f"(?:{'|'.join(FILTER_FIELDS)}|{_ATTRIBUTE})"
"""The pattern of the fields that a filter may name."""
FIELD_NAMES = f"{', '.join(f'`{name}`' for name in FILTER_FIELDS)} or `attributes.NAME`"
"""The same fields for people, in Markdown."""
_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_LEVEL = r"[^\s0-9<>=+.-][^<>=]*"
CONDITION = rf"^(?:{FIELD}!?=[\s\S]*|{_ATTRIBUTE}[<>]=?(?:{_NUMBER}|{_LEVEL}))$"
"""The pattern of a condition, for the OpenAPI document."""
_BLANK = re.compile(rf"{FIELD}!?=\s*")
_PARTS = re.compile(rf"{FIELD}(!=|>=|<=|=|>|<)([\s\S]*)")


def filters_of(conditions: Sequence[str], any_of: Mapping[str, Sequence[str]] | None = None) -> list[FieldFilter]:
    """Return one filter for each field that has a condition, or values in `any_of`. Blank values are ignored.

    Raises:
        InvalidFilter: a condition does not match CONDITION, or the lower limit of a range is above its upper limit.
    """
    for condition in conditions:
        parts = _PARTS.fullmatch(condition)
        if parts is None:
            raise InvalidFilter(
                f"{condition!r:.80} is not a condition; write {FORMS}, and FIELD is {FIELD_NAMES.replace('`', '')}"
            )
        sign, value = parts.groups()
        if sign in LIMITS and not re.fullmatch(f"{_NUMBER}|{_LEVEL}", value):
            raise InvalidFilter(
                f"{value!r:.40} is not a number or a level; write it like 100 or large, and of a date its year"
            )
    values = [f"{name}={value}" for name, held in (any_of or {}).items() for value in held]
    return parse_filters(text for text in (*values, *conditions) if not _BLANK.fullmatch(text))
