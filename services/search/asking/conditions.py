"""Filters in a URL: `country=Germany`, `tags!=retail`, `attributes.employees>=100`."""

import re
from collections.abc import Mapping, Sequence

from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter
from similarity.search.filter_text import parse_filters

FIELD = r"(?:country|industry|tags|domain|attributes\.[A-Za-z][A-Za-z0-9_]{0,63})"
_ATTRIBUTE = r"attributes\.[A-Za-z][A-Za-z0-9_]{0,63}"
_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
CONDITION = rf"^(?:{FIELD}!?=[\s\S]*|{_ATTRIBUTE}[<>]={_NUMBER})$"
"""The pattern of a condition, for the OpenAPI document."""
_BLANK = re.compile(rf"{FIELD}!?=\s*")
_PARTS = re.compile(rf"{FIELD}(!=|>=|<=|=)([\s\S]*)")


def filters_of(conditions: Sequence[str], any_of: Mapping[str, Sequence[str]] | None = None) -> list[FieldFilter]:
    """Return one filter for each field that has a condition, or values in `any_of`. Blank values are ignored.

    Raises:
        InvalidFilter: a condition does not fit the pattern, or no number is in a range.
    """
    for condition in conditions:
        parts = _PARTS.fullmatch(condition)
        if parts is None:
            raise InvalidFilter(
                f"{condition!r:.80} is not a condition; write FIELD=VALUE, FIELD!=VALUE, FIELD>=NUMBER or "
                "FIELD<=NUMBER, where FIELD is country, industry, tags, domain or attributes.NAME"
            )
        sign, value = parts.groups()
        if sign in {">=", "<="} and not re.fullmatch(_NUMBER, value):
            raise InvalidFilter(f"{value!r:.40} is not a number; write it like 100 or -2.5")
    values = [f"{name}={value}" for name, held in (any_of or {}).items() for value in held]
    return parse_filters(text for text in (*values, *conditions) if not _BLANK.fullmatch(text))
