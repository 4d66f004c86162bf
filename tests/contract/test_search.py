from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, Vector
from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from similarity.search.location import failed_filters
from tests.contract.steps import found
from tests.factories import make_embedded, unit_vector


def axis(*weights: float) -> Vector:
    """A unit vector along the given first coordinates."""
    vector = np.zeros(8)
    vector[: len(weights)] = weights
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def brute_force(documents: Sequence[EmbeddedCompany], vector: Vector, k: int) -> list[tuple[str, float]]:
    query = vector.astype(np.float64)
    scores = [(document.id, float((document.vector * query).sum())) for document in documents]
    return sorted(scores, key=lambda pair: (-pair[1], pair[0]))[:k]


def test_the_nearest_come_first_with_exact_cosines(index: CompanyIndex, live: str) -> None:
    index.upsert(
        live,
        [
            make_embedded("same", vector=axis(1)),
            make_embedded("near", vector=axis(4, 3)),
            make_embedded("square", vector=axis(0, 1)),
            make_embedded("opposite", vector=axis(-1)),
        ],
    )
    result = index.similar(live, axis(1), k=4)
    assert found(result) == ["same", "near", "square", "opposite"]
    assert [hit.score for hit in result.hits] == pytest.approx([1, 0.8, 0, -1], abs=1e-4)
    assert not result.approximate
    assert all(-1 <= hit.score <= 1 for hit in result.hits)


def test_a_hit_carries_what_was_written(index: CompanyIndex, live: str) -> None:
    document = make_embedded("a", version=6, language="fr", country="FR", tags=("x",))
    index.upsert(live, [document])
    [hit] = index.similar(live, document.vector, k=1).hits
    assert hit.company == document.company
    assert (hit.version, hit.embedded_at, hit.language) == (6, document.embedded_at, "fr")


def test_many_companies_are_ranked_as_brute_force_ranks_them(index: CompanyIndex, live: str) -> None:
    documents = [make_embedded(f"c{number}", vector=unit_vector(number)) for number in range(500)]
    index.upsert(live, documents)
    for seed in range(1000, 1010):
        expected = brute_force(documents, unit_vector(seed), 20)
        hits = index.similar(live, unit_vector(seed), k=20).hits
        assert [hit.company.id for hit in hits] == [company_id for company_id, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_equal_scores_are_ordered_by_id(index: CompanyIndex, live: str) -> None:
    ids = [f"c{number:02}" for number in range(40)]
    index.upsert(live, [make_embedded(company_id, vector=axis(3, 1)) for company_id in reversed(ids)])
    index.upsert(live, [make_embedded(f"far{number}", vector=axis(1, 3)) for number in range(40)])
    for k in (1, 7, 40):
        assert found(index.similar(live, axis(1), k=k)) == ids[:k]


@pytest.mark.parametrize(
    "vector",
    [
        unit_vector(1, 7),
        unit_vector(1).astype(np.float64),
        unit_vector(1) * np.float32(2),
        np.full(8, np.nan, np.float32),
    ],
    ids=["dimension", "float64", "norm", "not finite"],
)
def test_an_unusable_query_vector_is_refused(index: CompanyIndex, live: str, vector: Any) -> None:
    with pytest.raises(InvalidInput, match="vector"):
        index.similar(live, vector, k=1)


def test_asking_for_no_neighbours_is_refused(index: CompanyIndex, live: str) -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        index.similar(live, unit_vector(1), k=0)


@pytest.fixture
def filtered(index: CompanyIndex, live: str) -> str:
    index.upsert(
        live,
        [
            make_embedded("1", country="France", industry="Mining", tags=("Alpha", "Beta"), attributes={"size": 10}),
            make_embedded("2", country="france", tags=("BETA",), attributes={"size": 10.5, "listed": True}),
            make_embedded("3", country="Straße", domain="three.com", attributes={"size": "10"}),
            make_embedded("4", tags=("ﬁne",), attributes={"listed": False}, language="de"),
            DeletedCompany(id="5", version=3),
        ],
    )
    return live


FILTERS: dict[str, tuple[list[FieldFilter], str]] = {
    "any of one": ([FieldFilter(field="country", any_of=("FRANCE",))], "12"),
    "spaces and case": ([FieldFilter(field="country", any_of=("  fRance ",))], "12"),
    "case folding": ([FieldFilter(field="country", any_of=("STRASSE",))], "3"),
    "compatibility form": ([FieldFilter(field="tags", any_of=("fine",))], "4"),
    "any of two": ([FieldFilter(field="country", any_of=("france", "straße"))], "123"),
    "any of a list field": ([FieldFilter(field="tags", any_of=("beta",))], "12"),
    "none of": ([FieldFilter(field="tags", none_of=("alpha",))], "234"),
    "none of keeps companies without a value": ([FieldFilter(field="country", none_of=("france",))], "34"),
    "both in one": ([FieldFilter(field="tags", any_of=("beta",), none_of=("alpha",))], "2"),
    "all filters together": (
        [FieldFilter(field="country", any_of=("france",)), FieldFilter(field="industry", any_of=("mining",))],
        "1",
    ),
    "domain": ([FieldFilter(field="domain", any_of=("three.com",))], "3"),
    "language": ([FieldFilter(field="language", any_of=("DE",))], "4"),
    "not this language": ([FieldFilter(field="language", none_of=("de", "ja"))], "123"),
    "number": ([FieldFilter(field="attributes.size", any_of=("10",))], "13"),
    "fraction": ([FieldFilter(field="attributes.size", any_of=("10.5",))], "2"),
    "true": ([FieldFilter(field="attributes.listed", any_of=("True",))], "2"),
    "unknown attribute": ([FieldFilter(field="attributes.nothing", any_of=("x",))], ""),
    "nothing excluded": ([FieldFilter(field="attributes.nothing", none_of=("x",))], "1234"),
    "awkward value": ([FieldFilter(field="country", any_of=("' OR 1=1 --", "\ud800", "\0", ""))], ""),
}


@pytest.mark.parametrize(("filters", "expected"), FILTERS.values(), ids=FILTERS)
def test_filters_keep_what_they_name(
    index: CompanyIndex, filtered: str, filters: list[FieldFilter], expected: str
) -> None:
    assert sorted(found(index.similar(filtered, unit_vector(1), k=10, filters=filters))) == list(expected)


@pytest.mark.parametrize(("filters", "expected"), FILTERS.values(), ids=FILTERS)
def test_a_company_that_fails_a_filter_is_known_without_a_search(
    index: CompanyIndex, filtered: str, filters: list[FieldFilter], expected: str
) -> None:
    stored = index.get(filtered, "1234")
    passed = [each for each, held in stored.items() if not failed_filters(held.company, held.language, filters)]
    assert sorted(passed) == list(expected)


def test_nearer_companies_are_counted_exactly(index: CompanyIndex, live: str) -> None:
    documents = [
        make_embedded(f"c{number}", vector=unit_vector(number), country="in" if number % 3 == 0 else "out")
        for number in range(300)
    ]
    index.upsert(live, [*documents, DeletedCompany(id="gone", version=3)])
    query, inside = unit_vector(1000), [FieldFilter(field="country", any_of=("in",))]
    ranking = brute_force(documents, query, len(documents))
    for place in (0, 1, 40, 299):
        company_id, score = ranking[place]
        nearer = {each for each, _ in ranking[:place]}
        assert index.count_nearer(live, query, score=score, exclude={company_id}) == place
        among = index.count_nearer(live, query, score=score, filters=inside, exclude={company_id, *ranking[0][:1]})
        filtered = {f"c{number}" for number in range(0, 300, 3)} - {ranking[0][0]}
        assert among == len(nearer & filtered)
    assert index.count_nearer(live, query, score=-1.0) == 300
    assert index.count_nearer(live, query, score=1.0) == 0


def test_equal_scores_are_not_nearer(index: CompanyIndex, live: str) -> None:
    index.upsert(live, [make_embedded(f"c{number}", vector=axis(3, 1)) for number in range(5)])
    score = float((axis(3, 1).astype(np.float64) * axis(1)).sum())
    assert index.count_nearer(live, axis(1), score=score) == 0


def test_an_unusable_vector_is_refused_where_nearer_companies_are_counted(index: CompanyIndex, live: str) -> None:
    with pytest.raises(InvalidInput, match="vector"):
        index.count_nearer(live, unit_vector(1, 7), score=0.5)


@pytest.mark.parametrize("share", [2, 20])
def test_filtered_search_ranks_as_brute_force_does(index: CompanyIndex, live: str, share: int) -> None:
    documents = [
        make_embedded(f"c{number}", vector=unit_vector(number), country="in" if number % share == 0 else "out")
        for number in range(400)
    ]
    index.upsert(live, documents)
    inside = [document for document in documents if document.company.country == "in"]
    expected = [company_id for company_id, _ in brute_force(inside[1:], unit_vector(999), 10)]
    kept = [FieldFilter(field="country", any_of=("in",))]
    result = index.similar(live, unit_vector(999), k=10, filters=kept, exclude={inside[0].id})
    assert found(result) == expected


def test_the_values_of_a_field_are_listed_the_most_frequent_first(index: CompanyIndex, live: str) -> None:
    kept = [
        make_embedded("a", country="France", tags=("Retail", "Shoes"), attributes={"size": "Large", "staff": 12}),
        make_embedded("b", country="FRANCE", tags=("retail",), attributes={"size": "small", "listed": True}),
        make_embedded("c", country="Chad", attributes={"size": "large"}, language="de"),
    ]
    index.upsert(live, [*kept, make_embedded("gone", country="Peru")])
    index.upsert(live, [DeletedCompany(id="gone", version=3)])
    index.stats(live)
    expected = {
        "country": ["france", "chad"],
        "tags": ["retail", "shoes"],
        "language": ["en", "de"],
        "attributes.size": ["large", "small"],
        "attributes.staff": ["12"],
        "attributes.listed": ["true"],
        "attributes.nothing": [],
    }
    assert {field: index.field_values(live, field) for field in expected} == expected
    assert index.field_values(live, "tags", ["SHOES", "boats"]) == ["shoes"]
    assert index.field_values(live, "attributes.size", ["Small", "tiny"]) == ["small"]
    assert index.field_values(live, "country", ["Peru"]) == []
