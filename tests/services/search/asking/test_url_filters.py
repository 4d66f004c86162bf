"""Filters as an address writes them."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.asking.url_filters import CONDITION, filters_of
from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter


def test_conditions_on_one_field_become_one_filter() -> None:
    conditions = ["country=Spain", "country!=Chad", "attributes.n>=2", "attributes.n<=9.5", "attributes.n>=3"]
    assert filters_of(conditions, {"country": ["Italy"], "industry": []}) == [
        FieldFilter(field="country", any_of=("Italy", "Spain"), none_of=("Chad",)),
        FieldFilter(field="attributes.n", at_least=3, at_most=9.5),
    ]


@pytest.mark.parametrize("condition", ["country=", "country!= ", "tags=\t"])
def test_a_blank_value_asks_for_nothing(condition: str) -> None:
    assert filters_of([condition]) == []


def test_a_value_may_hold_signs() -> None:
    assert filters_of(["industry=a>=b!=c=d"]) == [FieldFilter(field="industry", any_of=("a>=b!=c=d",))]


@pytest.mark.parametrize("condition", ["", "country", "=Spain", "attributes.=1", "name=x", "Country=x"])
def test_what_is_no_condition_is_refused(condition: str) -> None:
    with pytest.raises(InvalidFilter, match="is not a condition; write FIELD=VALUE"):
        filters_of([condition])
    assert not re.fullmatch(CONDITION, condition)


def test_a_date_as_a_limit_is_told_to_be_written_as_its_year() -> None:
    with pytest.raises(InvalidFilter, match=r"'2026-01-01' is not a number or a level; .* of a date its year"):
        filters_of(["attributes.founded>=2026-01-01"])


def test_a_new_filter_field_is_in_the_pattern_the_message_and_the_description() -> None:
    program = """
from similarity.index import filters
filters.FILTER_FIELDS += ("region",)
from services.search.asking.url_filters import filters_of
from services.search.asking.question_schemas import Filter, SimilarQuery
assert filters_of(["region=Bavaria"]) == [filters.FieldFilter(field="region", any_of=("Bavaria",))]
assert Filter(field="region", any_of=["Bavaria"])
assert all("`region`" in str(each.model_json_schema()) for each in (Filter, SimilarQuery))
filters_of(["colour=red"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "tags, domain, language, region or attributes.NAME" in ended.stderr.splitlines()[-1]


@given(st.from_regex(CONDITION, fullmatch=True))
def test_what_looks_like_a_condition_is_one(condition: str) -> None:
    assert len(filters_of([condition])) <= 1


@given(st.text(max_size=30) | st.from_regex(r"attributes\.[a-z]{1,3}[<>]=[0-9.e+-]{0,6}", fullmatch=True))
def test_a_condition_is_read_or_refused_as_its_pattern_says(condition: str) -> None:
    try:
        filters_of([condition])
    except InvalidFilter:
        assert not re.fullmatch(CONDITION, condition)
    else:
        assert re.fullmatch(CONDITION, condition)
