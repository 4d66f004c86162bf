"""Filters in the compact form that fits an address: `country=Germany`, `tags!=retail`, `attributes.employees>=100`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from similarity.errors import InvalidFilter
from similarity.index.protocol import FieldFilter

FIELD = r"(?:country|industry|tags|domain|attributes\.[A-Za-z][A-Za-z0-9_]{0,63})"
_ATTRIBUTE = r"attributes\.[A-Za-z][A-Za-z0-9_]{0,63}"
_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
CONDITION = rf"^(?:{FIELD}!?=[\s\S]*|{_ATTRIBUTE}[<>]={_NUMBER})$"
"""What a condition looks like, for the OpenAPI document."""

_PARTS = re.compile(rf"({FIELD})(!=|>=|<=|=)([\s\S]*)")


@dataclass(slots=True)
class _Gathered:
    """All that is asked of one field."""

    any_of: list[str] = field(default_factory=list)
    none_of: list[str] = field(default_factory=list)
    at_least: list[float] = field(default_factory=list)
    at_most: list[float] = field(default_factory=list)


def filters_of(conditions: Iterable[str], any_of: Mapping[str, Sequence[str]] | None = None) -> list[FieldFilter]:
    """One filter for each field that is named in `conditions` or has values in `any_of`.

    Several values of one field mean any of them; of several bounds the tightest holds. A blank value
    asks for nothing.

    Raises:
        InvalidFilter: a condition cannot be read, or no number is in a range.
    """
    gathered: dict[str, _Gathered] = {}
    for name, values in (any_of or {}).items():
        gathered.setdefault(name, _Gathered()).any_of += values
    for condition in conditions:
        name, sign, value = _parts(condition)
        _gather(gathered.setdefault(name, _Gathered()), sign, value)
    return [
        FieldFilter(
            field=name,
            any_of=_said(each.any_of),
            none_of=_said(each.none_of),
            at_least=max(each.at_least, default=None),
            at_most=min(each.at_most, default=None),
        )
        for name, each in gathered.items()
        if _said(each.any_of) or _said(each.none_of) or each.at_least or each.at_most
    ]


def _parts(condition: str) -> tuple[str, str, str]:
    parts = _PARTS.fullmatch(condition)
    if parts is None:
        raise InvalidFilter(
            f"{condition!r:.80} is no condition; write FIELD=VALUE, FIELD!=VALUE, FIELD>=NUMBER or FIELD<=NUMBER, "
            "where FIELD is country, industry, tags, domain or attributes.NAME"
        )
    name, sign, value = parts.groups()
    return name, sign, value


def _gather(into: _Gathered, sign: str, value: str) -> None:
    if sign == "=":
        into.any_of.append(value)
    elif sign == "!=":
        into.none_of.append(value)
    else:
        (into.at_least if sign == ">=" else into.at_most).append(_number(value))


def _number(value: str) -> float:
    if not re.fullmatch(_NUMBER, value):
        raise InvalidFilter(f"{value!r:.40} is no number; write it like 100 or -2.5")
    return float(value) if "." in value else int(value)


def _said(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(value for value in values if value.strip())
