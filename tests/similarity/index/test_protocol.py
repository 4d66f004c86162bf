import math
from typing import Any

import pytest

from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter


@pytest.mark.parametrize(
    "values",
    [
        {"any_of": ("a",)},
        {"none_of": ("a",)},
        {"at_least": 0},
        {"at_most": -1.5},
        {"at_least": 3, "at_most": 3.0},
        {"any_of": ("a",), "none_of": ("b",), "at_least": -1e300, "at_most": 2**64},
    ],
    ids=str,
)
def test_a_filter_asks_for_values_or_a_range_or_both(values: dict[str, Any]) -> None:
    made = FieldFilter(field="attributes.size", **values)
    assert made.has_range is bool(values.keys() & {"at_least", "at_most"})


@pytest.mark.parametrize("field", ["size", "id", "attributes", "attributes.", "attributes.a.b", "attributes.1a", ""])
def test_an_unknown_field_is_refused_with_those_there_are(field: str) -> None:
    with pytest.raises(InvalidFilter, match=r"use country, industry, tags, domain, language or attributes\.<name>"):
        FieldFilter(field=field, any_of=("x",))


def test_a_filter_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="the filter on country has no values; give any_of, none_of or a limit"):
        FieldFilter(field="country")


@pytest.mark.parametrize("field", ["country", "industry", "tags", "domain"])
def test_only_attributes_have_ranges(field: str) -> None:
    with pytest.raises(InvalidFilter, match=f"{field} is text and has no range"):
        FieldFilter(field=field, any_of=("x",), at_least=0)


@pytest.mark.parametrize(
    "bound", [math.nan, math.inf, -math.inf, True, False, " ", pytest.param(10**5000, id="10**5000")]
)
@pytest.mark.parametrize("end", ["at_least", "at_most"])
def test_a_bound_is_a_finite_number(end: str, bound: Any) -> None:
    with pytest.raises(InvalidFilter, match=rf"{end} of the filter on attributes\.size is not a finite number"):
        FieldFilter(field="attributes.size", **{end: bound})


@pytest.mark.parametrize(("at_least", "at_most"), [(2, 1), (0.1, 0), (2**53 + 1, 2.0**53)])
def test_a_range_that_no_number_is_in_is_refused(at_least: float, at_most: float) -> None:
    with pytest.raises(InvalidFilter, match=r"at_least=\S+ is greater than at_most=\S+; swap them"):
        FieldFilter(field="attributes.size", at_least=at_least, at_most=at_most)
