"""Ranges of numbers: by value, exactly, and of numbers alone."""

import pytest

from similarity.company import DeletedCompany
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from tests.contract.steps import found
from tests.contract.test_search import brute_force
from tests.factories import make_embedded, unit_vector

SIZES: dict[str, float | str | bool] = {
    "lowest": -1e300,
    "int-lowest": -(2**63),
    "debt": -12,
    "below-zero": -5e-324,
    "minus-zero": -0.0,
    "zero": 0,
    "above-zero": 5e-324,
    "tenth": 0.1,
    "nine": 9,
    "ten": 10,
    "ten-float": 10.0,
    "ten-and-half": 10.5,
    "hundred": 100,
    "2**53": 2**53,
    "2**53+1": 2**53 + 1,
    "2**53+2": 2**53 + 2,
    "int-highest": 2**63 - 1,
    "2.0**63": 2.0**63,
    "highest": 1e300,
    "text": "10",
    "word": "many",
    "true": True,
    "false": False,
}
NUMBERS = {name: size for name, size in SIZES.items() if not isinstance(size, str | bool)}


@pytest.fixture
def sizes(index: CompanyIndex, live: str) -> str:
    companies = [make_embedded(f"c{place}", name=name, attributes={"size": SIZES[name]}) for place, name in names()]
    other = make_embedded("other", name="other", attributes={"weight": 10, "number": 11, "size_number": 12})
    index.upsert(live, [*companies, other, make_embedded("bare", name="bare"), DeletedCompany(id="gone", version=3)])
    return live


def names() -> list[tuple[int, str]]:
    return list(enumerate(SIZES))


def names_found(index: CompanyIndex, generation: str, *filters: FieldFilter) -> set[str]:
    """The names of all companies that pass."""
    hits = index.similar(generation, unit_vector(1), k=50, filters=filters).hits
    assert len({hit.company.id for hit in hits}) == len(hits)
    return {hit.company.name for hit in hits}


def size(at_least: float | None = None, at_most: float | None = None) -> FieldFilter:
    return FieldFilter(field="attributes.size", at_least=at_least, at_most=at_most)


RANGES: dict[str, tuple[FieldFilter, set[str]]] = {
    "between": (size(9.5, 100), {"ten", "ten-float", "ten-and-half", "hundred"}),
    "not as texts compare": (size(9, 10), {"nine", "ten", "ten-float"}),
    "both ends are included": (size(10.5, 10.5), {"ten-and-half"}),
    "a whole number is its float": (size(10, 10.0), {"ten", "ten-float"}),
    "negative": (size(-100, -1), {"debt"}),
    "zero is minus zero": (size(0, 0), {"zero", "minus-zero"}),
    "minus zero is zero": (size(-0.0, -0.0), {"zero", "minus-zero"}),
    "around zero": (size(-5e-324, 5e-324), {"below-zero", "minus-zero", "zero", "above-zero"}),
    "what no float tells apart": (size(2**53 + 1, 2**53 + 1), {"2**53+1"}),
    "from what no float tells apart": (size(2**53 + 1, 2**60), {"2**53+1", "2**53+2"}),
    "up to what no float tells apart": (size(1000, 2**53 + 1), {"2**53", "2**53+1"}),
    "the highest whole number": (size(2**63 - 1, 2**63 - 1), {"int-highest"}),
    "a bound of more than 64 bits": (size(2**63 - 1, 2**70 + 1), {"int-highest", "2.0**63"}),
    "a huge one": (size(1e300, 1e300), {"highest"}),
    "just below a huge one": (size(1e299, int(1e300) - 1), set()),
    "open above": (size(at_least=2**63), {"2.0**63", "highest"}),
    "open below": (size(at_most=-5e-324), {"lowest", "int-lowest", "debt", "below-zero"}),
    "above": (FieldFilter(field="attributes.size", above=10, at_most=2**53), {"ten-and-half", "hundred", "2**53"}),
    "below": (FieldFilter(field="attributes.size", above=-0.0, below=9), {"above-zero", "tenth"}),
    "above what no float tells apart": (
        FieldFilter(field="attributes.size", above=2**53, below=2**53 + 2),
        {"2**53+1"},
    ),
    "every number": (size(at_least=-1e308), set(NUMBERS)),
    "nothing": (size(20, 30), set()),
    "an attribute nobody has": (FieldFilter(field="attributes.nothing", at_least=-1e308), set()),
    "an attribute called number": (FieldFilter(field="attributes.number", at_least=11, at_most=11), {"other"}),
    "another attribute": (FieldFilter(field="attributes.weight", at_least=1), {"other"}),
}


@pytest.mark.parametrize(("asked", "expected"), RANGES.values(), ids=RANGES)
def test_a_range_keeps_the_numbers_in_it(
    index: CompanyIndex, sizes: str, asked: FieldFilter, expected: set[str]
) -> None:
    assert names_found(index, sizes, asked) == expected


def test_each_number_parts_what_is_above_it_from_what_is_below(index: CompanyIndex, sizes: str) -> None:
    for bound in NUMBERS.values():
        above = {name for name, number in NUMBERS.items() if number >= bound}
        below = {name for name, number in NUMBERS.items() if number <= bound}
        assert names_found(index, sizes, size(at_least=bound)) == above, f"from {bound}"
        assert names_found(index, sizes, size(at_most=bound)) == below, f"up to {bound}"
        exclusive = FieldFilter(field="attributes.size", above=bound)
        assert names_found(index, sizes, exclusive) == set(NUMBERS) - below, f"above {bound}"


def test_values_and_a_range_must_both_hold(index: CompanyIndex, sizes: str) -> None:
    any_of = FieldFilter(field="attributes.size", any_of=("10", "9", "-12"), at_least=0)
    assert names_found(index, sizes, any_of) == {"nine", "ten"}
    none_of = FieldFilter(field="attributes.size", none_of=("10", "100"), at_least=9, at_most=100)
    assert names_found(index, sizes, none_of) == {"nine", "ten-float", "ten-and-half"}
    neither = FieldFilter(field="attributes.size", any_of=("10",), none_of=("10.0",), at_least=11)
    assert names_found(index, sizes, neither) == set()


def test_several_ranges_must_all_hold(index: CompanyIndex, sizes: str) -> None:
    index.upsert(
        sizes,
        [
            make_embedded("x", name="x", attributes={"size": 10, "age": 3, "listed": True}, country="FR"),
            make_embedded("y", name="y", attributes={"size": 10, "age": 30}, country="FR"),
            make_embedded("z", name="z", attributes={"size": 10, "age": 3}, country="DE"),
        ],
    )
    young = FieldFilter(field="attributes.age", at_most=5)
    assert names_found(index, sizes, size(9, 11), young) == {"x", "z"}
    assert names_found(index, sizes, size(at_least=9), size(at_most=11), young) == {"x", "z"}
    french = FieldFilter(field="country", any_of=("fr",))
    assert names_found(index, sizes, size(9, 11), french) == {"x", "y"}
    assert names_found(index, sizes, size(9, 11), young, french) == {"x"}


def test_the_keys_of_numbers_are_no_values(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded("a", attributes={"size": 10, "number": "x", "numbers": "kept"})])
    for name, values in {"size": ("10",), "number": ("X",), "numbers": ("kept",)}.items():
        assert found(index.similar(live, unit_vector(1), k=5, filters=[any_of(name, *values)])) == ["a"]
    for name in ("size", "number", "numbers", "kept"):
        keys = any_of(name, "c024000000000000000", "true")
        assert found(index.similar(live, unit_vector(1), k=5, filters=[keys])) == []


def any_of(name: str, *values: str) -> FieldFilter:
    return FieldFilter(field=f"attributes.{name}", any_of=values)


def test_ranges_see_the_newest_numbers(index: CompanyIndex, sizes: str) -> None:
    assert names_found(index, sizes, size(9, 10)) == {"nine", "ten", "ten-float"}
    ids = {name: f"c{place}" for place, name in names()}
    index.upsert(
        sizes,
        [
            make_embedded(ids["nine"], version=4, name="nine", attributes={"size": "9"}),
            make_embedded(ids["ten"], version=4, name="ten"),
            make_embedded(ids["word"], version=4, name="word", attributes={"size": 9.5}),
            make_embedded("bare", version=4, name="bare", attributes={"size": 10}),
            DeletedCompany(id=ids["ten-float"], version=5),
        ],
    )
    assert names_found(index, sizes, size(9, 10)) == {"word", "bare"}


@pytest.mark.parametrize("highest", [199, 19])
def test_search_in_a_range_ranks_as_brute_force_does(index: CompanyIndex, live: str, highest: int) -> None:
    documents = [
        make_embedded(f"c{number}", vector=unit_vector(number), attributes={"size": number - 100})
        for number in range(400)
    ]
    index.upsert(live, documents)
    inside = documents[: highest + 1]
    expected = brute_force(inside[1:], unit_vector(999), 10)
    result = index.similar(live, unit_vector(999), k=10, filters=[size(-100, highest - 100)], exclude={inside[0].id})
    assert found(result) == [company_id for company_id, _ in expected]
    assert [hit.score for hit in result.hits] == pytest.approx([score for _, score in expected], abs=1e-4)
    assert not result.approximate
