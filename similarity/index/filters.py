"""Filters on the fields of companies, and the values of a company that they compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from similarity.company import ATTRIBUTE_NAME_PATTERN, Company, name_key
from similarity.errors import InvalidFilter, UnknownField
from similarity.index.numbers import is_finite, is_number, key_range

LANGUAGE = "language"
FILTER_FIELDS = ("country", "industry", "tags", "domain", LANGUAGE)
value_key = lru_cache(maxsize=4096)(name_key)
"""`company.name_key` with a cache: a corpus has a few hundred countries and industries, which many companies share."""
Limit: TypeAlias = float | str
"""A limit of a range: a number, or a level of an ordinal attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFilter:
    """A filter for companies whose `field` has any of `any_of`, none of `none_of`, and is in the range.

    `field`: one of `FILTER_FIELDS` or `attributes.<name>`. Values are compared as text, case-folded
    (`company.name_key`); a list field (tags) matches if any of its values does. `language` is the detected language of
    the description (`EmbeddedCompany.language`), not a field of the company.

    `at_least`, `at_most`: inclusive limits for attributes, which compare numbers exactly; `above`, `below`: the same
    limits, exclusive. Text, true/false and missing attributes are in no range. For an attribute that is declared as
    an ordinal, limits are levels. `Searcher` replaces levels, and countries in any spelling, by the values that
    companies have (`search.queries`).

    Raises:
        InvalidFilter: the field is unknown, there are no values and no limits, or the range is invalid.
    """

    field: str
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    at_least: Limit | None = None
    at_most: Limit | None = None
    above: Limit | None = None
    below: Limit | None = None

    def __post_init__(self) -> None:
        prefix, _, name = self.field.partition(".")
        if self.field not in FILTER_FIELDS and not (prefix == "attributes" and ATTRIBUTE_NAME_PATTERN.fullmatch(name)):
            known = ", ".join(FILTER_FIELDS)
            raise UnknownField(f"unknown filter field {self.field!r}; use {known} or attributes.<name>", self.field)
        if not self.any_of and not self.none_of and not self.has_range:
            raise InvalidFilter(f"the filter on {self.field} has no values; give any_of, none_of or a limit")
        if self.has_range:
            self._check_range(of_attribute=bool(name))

    @property
    def has_range(self) -> bool:
        """Whether the filter has a range."""
        return bool(self.limits)

    @property
    def limits(self) -> dict[str, Limit]:
        """The limits of the range by their names, without those that are None."""
        limits = {"at_least": self.at_least, "at_most": self.at_most, "above": self.above, "below": self.below}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def key_range(self) -> tuple[str, str]:
        """Return the lowest and the highest key (`index.numbers`) of the range, both inclusive.

        Raises:
            InvalidFilter: a limit is a level.
        """
        numbers: dict[str, float] = {}
        for name, limit in self.limits.items():
            if isinstance(limit, str):
                raise InvalidFilter(f"the filter on {self.field} has the limit {limit!r:.80}, which is not a number")
            numbers[name] = limit
        return key_range(
            numbers.get("at_least"), numbers.get("at_most"), above=numbers.get("above"), below=numbers.get("below")
        )

    def _check_range(self, *, of_attribute: bool) -> None:
        if not of_attribute:
            raise InvalidFilter(
                f"{self.field} is text and has no range; at_least and at_most are for attributes.<name>"
            )
        for name, limit in self.limits.items():
            is_usable = limit.strip() if isinstance(limit, str) else is_number(limit) and is_finite(limit)
            if not is_usable:
                raise InvalidFilter(
                    f"{name} of the filter on {self.field} is not a finite number; give a number such as 10.5, or a "
                    "level of an ordinal attribute"
                )
        numbers = {name: limit for name, limit in self.limits.items() if not isinstance(limit, str)}
        for lower, upper in product(("at_least", "above"), ("at_most", "below")):
            if lower in numbers and upper in numbers and numbers[lower] > numbers[upper]:
                raise InvalidFilter(
                    f"in the filter on {self.field}, {lower}={numbers[lower]} is greater than "
                    f"{upper}={numbers[upper]}; swap them"
                )


def filter_values(company: Company) -> Mapping[str, tuple[str, ...]]:
    """Return the values of a company by filter field, as the company has them (not case-folded).

    `language` is missing: it belongs to the document (`EmbeddedCompany.language`).
    """
    values: dict[str, tuple[str, ...]] = {
        "country": _known(company.country),
        "industry": _known(company.industry),
        "domain": _known(company.domain),
        "tags": company.tags,
    }
    for name, value in company.attributes.items():
        values[f"attributes.{name}"] = _known(attribute_text(value))
    return values


def _known(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def attribute_text(value: str | int | float | bool) -> str:
    """Return an attribute as text, not case-folded: `true`/`false`, numbers as `str` writes them (1 and 1.0 differ)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
