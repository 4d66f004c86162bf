"""Filters on the fields of companies, and the values of a company that they compare."""

from collections.abc import Mapping
from dataclasses import dataclass

from similarity.company import ATTRIBUTE_NAME_PATTERN, Company
from similarity.errors import InvalidFilter
from similarity.index.numbers import is_finite, is_number

FILTER_FIELDS = ("country", "industry", "tags", "domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFilter:
    """A filter for companies whose `field` has any of `any_of`, none of `none_of`, and is in the range.

    `field`: one of `FILTER_FIELDS` or `attributes.<name>`. Values are compared as text, case-folded
    (`company.name_key`); a list field (tags) matches if any of its values does.

    `at_least`, `at_most`: inclusive limits for attributes, which compare numbers exactly. Text, true/false and
    missing attributes are in no range.

    Raises:
        InvalidFilter: the field is unknown, there are no values, or the range is invalid.
    """

    field: str
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        prefix, _, name = self.field.partition(".")
        if self.field not in FILTER_FIELDS and not (prefix == "attributes" and ATTRIBUTE_NAME_PATTERN.fullmatch(name)):
            known = ", ".join(FILTER_FIELDS)
            raise InvalidFilter(f"unknown filter field {self.field!r}; use {known} or attributes.<name>")
        if not self.any_of and not self.none_of and not self.has_range:
            raise InvalidFilter(f"the filter on {self.field} has no values; give any_of, none_of, at_least or at_most")
        if self.has_range:
            self._check_range(of_attribute=bool(name))

    @property
    def has_range(self) -> bool:
        """Whether the filter has a range of numbers."""
        return self.at_least is not None or self.at_most is not None

    def _check_range(self, *, of_attribute: bool) -> None:
        if not of_attribute:
            raise InvalidFilter(
                f"{self.field} is text and has no range; at_least and at_most are for attributes.<name>"
            )
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if bound is not None and not (is_number(bound) and is_finite(bound)):
                raise InvalidFilter(
                    f"{name} of the filter on {self.field} is not a finite number; give a number such as 10.5"
                )
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise InvalidFilter(
                f"the filter on {self.field} has at_least {self.at_least} above at_most {self.at_most}; swap them"
            )


def filter_values(company: Company) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each filter field of a company, as stored (not case-folded)."""
    values: dict[str, tuple[str, ...]] = {
        "country": (company.country,),
        "industry": (company.industry,),
        "domain": (company.domain,),
        "tags": company.tags,
    }
    for name, value in company.attributes.items():
        values[f"attributes.{name}"] = (attribute_text(value),)
    return {field: tuple(value for value in held if value) for field, held in values.items()}


def attribute_text(value: str | int | float | bool) -> str:
    """Return an attribute as filters compare it: `true`/`false`, numbers in their shortest form, text unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
