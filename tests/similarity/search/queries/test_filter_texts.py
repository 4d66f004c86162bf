import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter
from similarity.index.numbers import number_of
from similarity.search.queries.filter_texts import parse_filters

SIZE = "attributes.size"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("country=France", FieldFilter(field="country", any_of=("France",))),
        ("tags!=retail", FieldFilter(field="tags", none_of=("retail",))),
        ("attributes.size>=100", FieldFilter(field=SIZE, at_least=100)),
        ("attributes.size<=-2.5", FieldFilter(field=SIZE, at_most=-2.5)),
        ("attributes.size>5", FieldFilter(field=SIZE, above=5)),
        ("attributes.size < 1e3", FieldFilter(field=SIZE, below=1e3)),
        ("attributes.size>=large", FieldFilter(field=SIZE, at_least="large")),
        ("attributes.size < Mid Cap", FieldFilter(field=SIZE, below="Mid Cap")),
        ("  country =  United States ", FieldFilter(field="country", any_of=("United States",))),
        ("industry=Food & drink", FieldFilter(field="industry", any_of=("Food & drink",))),
        ("tags=a=b", FieldFilter(field="tags", any_of=("a=b",))),
        ("tags=>=5", FieldFilter(field="tags", any_of=(">=5",))),
        ("tags!==", FieldFilter(field="tags", none_of=("=",))),
        ("tags=two\nlines", FieldFilter(field="tags", any_of=("two\nlines",))),
        ("attributes.size=10", FieldFilter(field=SIZE, any_of=("10",))),
    ],
)
def test_each_form_is_a_filter(text: str, expected: FieldFilter) -> None:
    assert parse_filters([text]) == [expected]


def test_texts_of_one_field_are_one_filter_in_the_order_of_first_mention() -> None:
    texts = [
        "tags=a",
        "country=France",
        "tags=b",
        "tags!=c",
        "attributes.size>=5",
        "country=Spain",
        "attributes.size<=9",
        "attributes.size>=7",
        "attributes.size<=20",
        "attributes.size!=8",
    ]
    assert parse_filters(texts) == [
        FieldFilter(field="tags", any_of=("a", "b"), none_of=("c",)),
        FieldFilter(field="country", any_of=("France", "Spain")),
        FieldFilter(field=SIZE, none_of=("8",), at_least=7, at_most=9),
    ]


def test_no_texts_are_no_filters() -> None:
    assert parse_filters([]) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write FIELD=VALUE, FIELD!=VALUE, or FIELD>=LIMIT"),
        ("country", "'country' is not a filter"),
        ("country=", "has no value"),
        ("country!=  ", "has no value"),
        ("attributes.size>=", "has no value"),
        ("=France", "unknown filter field ''; use country"),
        ("size>=5", r"unknown filter field 'size'; use .* or attributes\.<name>"),
        ("attributes.size>=1e999", "not a finite number"),
        ("country>=5", "country is text and has no range"),
    ],
)
def test_a_text_that_is_no_filter_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(InvalidFilter, match=message):
        parse_filters([text])


def test_a_range_that_no_number_is_in_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="at_least=10 is greater than at_most=5; swap them"):
        parse_filters(["attributes.size>=10", "attributes.size<=5"])
    with pytest.raises(InvalidFilter, match="above=10 is greater than below=5; swap them"):
        parse_filters(["attributes.size>10", "attributes.size<5"])


def test_several_levels_as_one_limit_are_refused() -> None:
    assert parse_filters(["attributes.size>=large"] * 2) == [FieldFilter(field=SIZE, at_least="large")]
    with pytest.raises(InvalidFilter, match=r"several limits of one kind \(large, 5\)"):
        parse_filters(["attributes.size>=large", "attributes.size>=5"])


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-Infinity", "1_000", "1,000", "0x10", "٣", "1 000", "", ".", "e5", "1e"]
)
def test_only_plain_numbers_are_taken(text: str) -> None:
    assert number_of(text) is None
    if text:
        [made] = parse_filters([f"attributes.size>={text}"])
        with pytest.raises(InvalidFilter, match="is not a number"):
            made.key_range()


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="not a finite number"):
        parse_filters(["attributes.size>=" + "9" * 100_000])


@given(st.integers(-(2**1000), 2**1000) | st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_exactly(number: float) -> None:
    read = number_of(str(number))
    assert (read, type(read)) == (number, type(number))


@given(st.sampled_from(["country", "tags", SIZE]), st.sampled_from(["=", "!="]), st.text())
def test_any_value_is_read_as_it_stands_without_spaces_around(field: str, comparison: str, value: str) -> None:
    assume(value.strip())
    [made] = parse_filters([f"{field}{comparison}{value}"])
    assert (made.any_of if comparison == "=" else made.none_of) == (value.strip(),)
