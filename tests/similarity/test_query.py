from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from similarity.company import DeletedCompany
from similarity.errors import InvalidInput
from similarity.export import export_neighbours
from similarity.index.sqlite import SqliteIndex
from similarity.neighbours import all_neighbours
from similarity.query import similar_to_companies, similar_to_text
from tests.factories import make_embedded, make_generation, unit_vector
from tests.fakes import CountingEncoder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    index.create_generation(make_generation("first"))
    index.register_candidate("first")
    index.promote("first")
    companies = [
        make_embedded("a", name="Alpha", domain="alpha.com"),
        make_embedded("b", name="Beta", aliases=("Bee",)),
        make_embedded("c", name="Gamma", aliases=("Bee",)),
    ]
    index.upsert("first", [*companies, DeletedCompany(id="gone", version=3)])
    yield index
    index.close()


@pytest.mark.parametrize("reference", ["a", "alpha.com", "ALPHA"])
def test_a_company_is_found_by_id_domain_or_name_and_not_among_its_own_answers(
    index: SqliteIndex, reference: str
) -> None:
    [anchor], found = similar_to_companies(index, [reference], k=10)
    assert anchor.id == "a"
    assert {hit.company.id for hit in found.hits} == {"b", "c"}


def test_a_contested_name_lists_its_companies(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match="several companies; say one of the ids b, c"):
        similar_to_companies(index, ["bee"], k=10)


def test_several_companies_together_and_those_to_be_unlike_are_left_out(index: SqliteIndex) -> None:
    anchors, found = similar_to_companies(index, ["a", "Beta"], k=10)
    assert [anchor.id for anchor in anchors] == ["a", "b"]
    assert [hit.company.id for hit in found.hits] == ["c"]
    _, found = similar_to_companies(index, ["a"], unlike=["b"], k=10)
    assert [hit.company.id for hit in found.hits] == ["c"]
    assert similar_to_companies(index, ["a"], exclude=["b", "c"], k=10)[1].hits == ()


@pytest.mark.parametrize("typed", ["Alpho", "Alphas", "alpha.net"])
def test_a_misspelt_name_is_answered_with_what_may_be_meant(index: SqliteIndex, typed: str) -> None:
    with pytest.raises(InvalidInput, match=r"no company goes by '.*'; did you mean Alpha \(a\)\?"):
        similar_to_companies(index, [typed], k=10)
    with pytest.raises(InvalidInput, match=r"no company goes by 'Xyz'$"):
        similar_to_companies(index, ["Xyz"], k=10)


def test_a_description_in_the_place_of_a_name_is_told_where_it_goes(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match=r"no company goes by 'sells gloves'; a description .* goes with --text$"):
        similar_to_companies(index, ["sells gloves"], k=10)


def test_nothing_can_be_near_and_far_at_once(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match="'a' is to be near and far at once"):
        similar_to_companies(index, ["a", "b"], unlike=["Alpha"], k=10)


def test_hybrid_ranks_the_words_of_the_first_anchor_too(index: SqliteIndex) -> None:
    _, found = similar_to_companies(index, ["a"], k=10, words=True)
    assert {hit.company.id for hit in found.hits} == {"b", "c"}


def test_an_unknown_company_brings_suggestions(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match=r"did you mean Alpha \(a\)"):
        similar_to_companies(index, ["alph"], k=10)
    with pytest.raises(InvalidInput, match=r"no company goes by 'zzz'$"):
        similar_to_companies(index, ["zzz"], k=10)


def test_a_text_is_encoded_and_compared(index: SqliteIndex) -> None:
    found = similar_to_text(index, CountingEncoder(), "anvils", k=2)
    assert len(found.hits) == 2


def test_a_text_needs_words_and_the_right_encoder(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match="the text is empty"):
        similar_to_text(index, CountingEncoder(), " ", k=2)
    other = CountingEncoder()
    other.encoder_id = "other"
    with pytest.raises(InvalidInput, match="made with encoder encoder-1, the bundle holds other"):
        similar_to_text(index, other, "anvils", k=2)


def test_all_neighbours_are_those_of_single_searches(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded(f"n{number:03}", vector=unit_vector(number % 90)) for number in range(200)])
    together = dict(all_neighbours(index, "first", k=5))
    assert len(together) == 203
    for company_id, neighbours in together.items():
        alone = index.similar("first", index.get("first", [company_id])[company_id].vector, k=5, exclude=[company_id])
        assert [other for other, _ in neighbours] == [hit.company.id for hit in alone.hits]
        assert np.allclose([score for _, score in neighbours], [hit.score for hit in alone.hits], atol=1e-5)


def test_the_export_is_a_complete_parquet_file(index: SqliteIndex, tmp_path: Path) -> None:
    rows = export_neighbours(index, index.live(), tmp_path / "n.parquet", k=10)
    table = pq.read_table(tmp_path / "n.parquet")
    assert rows == table.num_rows == 6
    assert table.column_names == ["company_id", "rank", "similar_id", "score"]
    assert (pq.read_metadata(tmp_path / "n.parquet").metadata or {})[b"generation"] == b"first"
    assert [path.name for path in tmp_path.glob("*.part")] == []
