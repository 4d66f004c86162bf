"""The searcher on a real embedded index: what it answers, and what it refuses."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from similarity.company import Company, DeletedCompany
from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter
from similarity.index.sqlite import SqliteIndex
from similarity.model.calibration import Calibration
from similarity.model.ranker import Ranker
from similarity.search.duplicates import WIDELY_SHARED
from similarity.search.errors import (
    AmbiguousCompany,
    EncoderNotLoaded,
    NotCalibrated,
    RankingExpired,
    UnknownCompany,
)
from similarity.search.export import export_neighbours, part_of
from similarity.search.names.resolver import Resolver
from similarity.search.neighbours import all_neighbours
from similarity.search.queries.question import Anchor, Question
from similarity.search.queries.resolution import Role, resolve_question
from similarity.search.ranking import Ranking
from similarity.search.reranking.rank import Rank
from similarity.search.searcher import Searcher
from tests.contract.steps import add_candidate, add_live
from tests.factories import make_company, make_embedded, unit_vector
from tests.fakes import CountingEncoder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    companies = [
        make_embedded("a", name="Alpha", domain="alpha.com"),
        make_embedded("b", name="Beta", aliases=("Bee",)),
        make_embedded("c", name="Gamma", aliases=("Bee",)),
    ]
    index.upsert("first", [*companies, DeletedCompany(id="gone", version=3)])
    yield index
    index.close()


@pytest.fixture
def searcher(index: SqliteIndex) -> Searcher:
    return Searcher(index)


def about(*references: str, unlike: tuple[str, ...] = (), exclude: tuple[str, ...] = (), k: int = 10) -> Question:
    return Question(
        anchors=[Anchor(company=each) for each in references],
        negatives=[Anchor(company=each) for each in unlike],
        exclude=exclude,
        k=k,
    )


def ids(ranking: Ranking) -> list[str]:
    return [hit.company.id for hit in ranking.hits]


@pytest.mark.parametrize("reference", ["a", "alpha.com", "ALPHA"])
def test_a_company_is_found_by_id_domain_or_name_and_is_no_hit_itself(searcher: Searcher, reference: str) -> None:
    ranking = searcher.search(reference)
    assert [anchor.document.id for anchor in ranking.anchors if anchor.document] == ["a"]
    assert set(ids(ranking)) == {"b", "c"}
    assert [hit.rank for hit in ranking.hits] == [1, 2]


def test_an_ambiguous_name_lists_its_candidates(searcher: Searcher) -> None:
    with pytest.raises(AmbiguousCompany, match=r"match 'bee'; use one of the ids: b \(Beta\), c \(Gamma\)$") as error:
        searcher.search("bee")
    assert [each.id for each in error.value.candidates] == ["b", "c"]


def test_an_ambiguous_name_says_how_many_candidates_it_does_not_list() -> None:
    candidates = [make_company(f"c{number}", name="Bee") for number in range(12)]
    assert str(AmbiguousCompany("bee", candidates, count=21)).endswith("c9 (Bee); or type more of the name (11 more)")


def test_other_companies_of_the_name_are_named_in_a_warning(index: SqliteIndex, searcher: Searcher) -> None:
    index.upsert("first", [make_embedded("alpha-ltd", name="Alpha Ltd", domain="alpha.co.uk", country="Malta")])
    ranking = searcher.search("alpha")
    assert ranking.anchors[0].confidence < 1
    assert ranking.warnings[0] == (
        "'alpha' is read as Alpha (a); it may also mean alpha-ltd (Alpha Ltd, Malta): use an id to choose"
    )
    assert searcher.locate(about("b"), "alpha").warnings[0] == ranking.warnings[0]


def test_anchors_negatives_and_exclusions_are_no_hits(searcher: Searcher) -> None:
    assert ids(searcher.search(about("a", "Beta"))) == ["c"]
    assert ids(searcher.search(about("a", unlike=("b",)))) == ["c"]
    assert ids(searcher.search(about("a", exclude=("b", "c")))) == []


@pytest.mark.parametrize("typed", ["Alpho", "Alphas", "alpha.net", "alph"])
def test_a_misspelt_name_is_refused_with_suggestions(searcher: Searcher, typed: str) -> None:
    with pytest.raises(UnknownCompany, match=r"did you mean Alpha \(a\)\?"):
        searcher.search(typed)


def test_an_unknown_name_without_similar_ones_has_no_suggestions(searcher: Searcher) -> None:
    with pytest.raises(UnknownCompany, match=r"'Xyz', or a similar one; describe what it does in a text instead, or"):
        searcher.search("Xyz")


def test_an_unknown_anchor_beside_a_known_one_is_reported(searcher: Searcher) -> None:
    ranking = searcher.search(about("a", "Xyz", unlike=("nobody",), exclude=("nowhere",)))
    assert [(each.role, each.reference) for each in ranking.unresolved] == [
        (Role.ANCHOR, "Xyz"),
        (Role.NEGATIVE, "nobody"),
        (Role.EXCLUDE, "nowhere"),
    ]
    assert set(ids(ranking)) == {"b", "c"}


def test_nothing_can_be_near_and_far_at_once(searcher: Searcher) -> None:
    with pytest.raises(InvalidInput, match=r"'a' is both an anchor and a negative \(as 'Alpha'\)"):
        searcher.search(about("a", "b", unlike=("Alpha",)))


def test_filters_hold(searcher: Searcher) -> None:
    only = [FieldFilter(field="domain", any_of=("alpha.com",))]
    assert ids(searcher.search(Question(anchors=[Anchor(company="b")], filters=only))) == ["a"]


def test_a_text_is_encoded_and_explained(index: SqliteIndex) -> None:
    encoder = CountingEncoder()
    searcher = Searcher(index, {encoder.encoder_id: encoder})
    ranking = searcher.search(Question(anchors=[Anchor(text="makes iron anvils")], k=2, explain=1))
    assert len(ranking.hits) == 2
    assert (ranking.hits[0].phrases is None, ranking.hits[1].phrases is None) == (False, True)


def test_a_text_needs_the_encoder_of_the_generation(index: SqliteIndex) -> None:
    other = CountingEncoder()
    other.encoder_id = "other"
    question = Question(anchors=[Anchor(text="makes iron anvils")])
    for searcher in (Searcher(index), Searcher(index, {"other": other})):
        with pytest.raises(EncoderNotLoaded, match="bundle of encoder encoder-1, which generation first needs"):
            searcher.search(question)


def test_phrases_that_nobody_can_compute_are_a_warning(searcher: Searcher) -> None:
    ranking = searcher.search(Question(anchors=[Anchor(company="a")], explain=1))
    assert ranking.hits[0].phrases is None
    assert "no phrases were computed" in ranking.warnings[0]


def test_a_least_probability_needs_a_calibration(index: SqliteIndex, searcher: Searcher) -> None:
    question = Question(anchors=[Anchor(company="a")], min_probability=0.5)
    with pytest.raises(NotCalibrated, match="generation first has no probabilities for rank=business"):
        searcher.search(question)
    add_candidate(index, "second", calibration=Calibration(slope=0.0, intercept=0.0))
    index.upsert("second", [make_embedded("a"), make_embedded("b")])
    index.promote("second")
    assert [hit.probability for hit in searcher.search(question).hits] == [0.5]


def test_a_least_probability_of_rank_cosine_needs_a_calibration_beside_a_ranker(
    index: SqliteIndex, searcher: Searcher
) -> None:
    add_candidate(index, "second", ranker=Ranker(encoder_id="encoder-1", cosine=1.0, intercept=0.0))
    index.upsert("second", [make_embedded("a"), make_embedded("b")])
    index.promote("second")
    with pytest.raises(NotCalibrated, match="generation second has no probabilities for rank=cosine"):
        searcher.search(Question(anchors=[Anchor(company="a")], min_probability=0.5, rank=Rank.COSINE))


def test_pages_go_on_where_the_last_one_ended_until_their_generation_is_gone(
    index: SqliteIndex, searcher: Searcher
) -> None:
    first = searcher.search(about("a", k=1))
    second = searcher.search(about("a", k=1), after=first.next)
    assert ids(first) + ids(second) == ids(searcher.search("a"))
    assert second.next is None
    add_live(index, "second")
    index.retire("first")
    with pytest.raises(RankingExpired, match="generation first of the previous page was retired"):
        searcher.search(about("a", k=1), after=first.next)


def test_several_questions_are_answered_from_one_generation(searcher: Searcher) -> None:
    live, answers = searcher.search_all([about("a"), about("Xyz")])
    assert live.name == "first"
    assert [type(each) for each in answers] == [Ranking, UnknownCompany]


def test_a_batch_ends_where_its_answers_hold_too_much_text(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("similarity.search.searcher.MAX_BATCH_CHARACTERS", 10)
    _, (first, second) = searcher.search_all([about("a"), about("b")])
    assert isinstance(first, Ranking)
    assert isinstance(second, InvalidInput)
    assert "send the queries in several batches" in str(second)


def test_a_ranking_that_reads_too_much_text_is_refused(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("similarity.index.validation.MAX_CHARACTERS_FOUND", 10)
    with pytest.raises(InvalidInput, match="use a smaller k"):
        searcher.search(about("a"))
    with pytest.raises(InvalidInput, match="use a smaller k"):
        searcher.locate(about("a"), "b")


def test_what_is_excluded_is_kept_without_its_description_and_removes_its_duplicates(index: SqliteIndex) -> None:
    text = "Makes anvils and sells them to people who catch birds. " * 100
    index.upsert("first", [make_embedded(each, description=text) for each in ("anvils", "anvils-2")])
    named = replace(about("a"), exclude=("anvils",))
    listed = replace(about("a"), exclude_lists={"mine": ("anvils",)})
    resolver = Resolver(index, index.live())
    for question in (named, listed):
        assert not {"anvils", "anvils-2"} & {hit.company.id for hit in Searcher(index).search(question).hits}
        excluded = resolve_question(question, resolver, lambda _: {}, lambda _: []).excluded
        assert len(repr(excluded)) < 200


def test_all_texts_of_a_company_count_in_a_batch(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {f"a{number}": "x" * 500 for number in range(100)}
    index.upsert("first", [make_embedded("d", aliases=("x" * 500,) * 100, tags=("x" * 500,) * 100, attributes=facts)])
    monkeypatch.setattr("similarity.search.searcher.MAX_BATCH_CHARACTERS", 100_000)
    _, (first, second) = Searcher(index).search_all([about("a"), about("b")])
    assert isinstance(first, Ranking)
    assert isinstance(second, InvalidInput)


@pytest.mark.parametrize("anchor", [{}, {"company": "a", "text": "b"}, {"text": " "}, {"company": "a", "weight": 0.0}])
def test_an_anchor_is_one_thing_with_a_weight(anchor: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Anchor(**anchor)  # type: ignore[arg-type]  # wrong on purpose


def test_a_question_needs_an_anchor() -> None:
    with pytest.raises(InvalidInput, match="at least one company"):
        Question(anchors=[])


def test_all_neighbours_are_those_of_single_searches(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded(f"n{number:03}", vector=unit_vector(number % 90)) for number in range(200)])
    together = {each: neighbours for each, _, neighbours in all_neighbours(index, index.live(), k=5)}
    assert len(together) == 203
    for company_id, neighbours in together.items():
        alone = index.similar("first", index.get("first", [company_id])[company_id].vector, k=5, exclude=[company_id])
        assert [each.id for each in neighbours] == [hit.company.id for hit in alone.hits]
        assert np.allclose([each.score for each in neighbours], [hit.score for hit in alone.hits], atol=1e-5)


def test_the_parts_of_an_export_are_the_whole_one(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.upsert("first", [make_embedded(f"n{number:03}", vector=unit_vector(number % 90)) for number in range(200)])
    whole = list(all_neighbours(index, index.live(), k=5))
    monkeypatch.setattr("similarity.search.neighbours.BLOCK_BYTES", 7 * 4 * len(whole))
    sizes: list[int] = []
    parts = [list(all_neighbours(index, index.live(), k=5, part=(n, 3), on_rows=sizes.append)) for n in (1, 2, 3)]
    assert max(sizes) == 7
    assert all(30 < len(part) < 110 for part in parts)
    by_id = {found[0]: found for part in parts for found in part}
    assert len(by_id) == sum(map(len, parts)) == len(whole)
    assert [[hit.id for hit in by_id[each][2]] for each, _, _ in whole] == [
        [hit.id for hit in hits] for *_, hits in whole
    ]


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/", "/2", "a/b", "1/0", "-1/2", ""])
def test_a_part_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="such as 3/16"):
        part_of(text)


def test_a_domain_of_many_companies_folds_only_those_with_one_name(index: SqliteIndex) -> None:
    shared = [
        make_embedded(f"s{number:02}", name=f"Bank Number {number}", domain="rh.com", vector=unit_vector(1))
        for number in range(WIDELY_SHARED - 1)
    ]
    listing = make_embedded("s00.F", name="Bank Number 0 Ltd", domain="rh.com", vector=unit_vector(1))
    group = [make_embedded(f"g{number}", domain="group.com", vector=unit_vector(1)) for number in range(2)]
    index.upsert("first", [*shared, listing, *group])
    ranking = Searcher(index).search(about("s00", k=30))
    duplicates = {hit.company.id: hit.duplicates for hit in ranking.hits}
    assert {each.id for each in shared[1:]} <= duplicates.keys()
    assert (ranking.anchors[0].duplicates, duplicates["g0"]) == (("s00.F",), ("g1",))
    exported = {each: found for each, _, found in all_neighbours(index, index.live(), k=30)}["s00"]
    assert {each.id: tuple(each.duplicates) for each in exported} == duplicates
    places = {each: Searcher(index).locate(about("s00"), each).place for each in ("s01", "s00.F")}
    assert [bool(place.removals) for place in places.values()] == [False, True]


def test_the_export_is_a_complete_parquet_file(index: SqliteIndex, tmp_path: Path) -> None:
    rows = export_neighbours(index, index.live(), tmp_path / "n.parquet", k=10)
    table = pq.read_table(tmp_path / "n.parquet")
    assert rows == table.num_rows == 6
    facts = ["company_id", "rank", "similar_id", "score", "probability", "duplicates"]
    assert table.column_names == [*facts, "company_name", "similar_name"]
    assert (pq.read_metadata(tmp_path / "n.parquet").metadata or {})[b"generation"] == b"first"
    assert (pq.read_metadata(tmp_path / "n.parquet").metadata or {})[b"part"] == b"1/1"
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_similar_names_are_searched_for_few_references(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def find_misspelled(_: str, query: str, **__: int) -> list[Company]:
        searched.append(query)
        return []

    monkeypatch.setattr(searcher.index, "find_misspelled", find_misspelled)
    searcher.search(Question(anchors=[Anchor(company="a")], exclude=[f"Nobody {number}" for number in range(500)]))
    assert searched == []
    anchors = [Anchor(company=name) for name in ("a", "Nobody One", "Nobody Two", "Nobody Three")]
    searcher.search_all([Question(anchors=anchors)] * 100)
    assert len(searched) == 100
