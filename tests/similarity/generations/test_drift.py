"""Drift between small generations in a plane: a company is an angle, so its neighbours are known."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, Vector
from similarity.errors import InvalidInput, UnknownGeneration
from similarity.generations.drift import compare, rank_biased_overlap
from similarity.index.filters import FieldFilter
from similarity.index.protocol import SimilarCompanies
from similarity.index.sqlite import SqliteIndex
from tests.factories import ENCODER_ID, make_embedded, make_generation

# The neighbours of each, two at a time: a b | b a | c b | d e | e d | f e
DEGREES = {"a": 0.0, "b": 10.0, "c": 21.0, "d": 50.0, "e": 61.0, "f": 73.0}


def direction(degrees: float) -> Vector:
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], dtype=np.float32)


def placed(degrees: Mapping[str, float], **fields: Any) -> list[EmbeddedCompany]:
    return [make_embedded(company, vector=direction(angle), **fields) for company, angle in degrees.items()]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    yield index
    index.close()


def add(
    index: SqliteIndex,
    name: str,
    documents: Sequence[EmbeddedCompany | DeletedCompany],
    *,
    encoder_id: str = ENCODER_ID,
) -> None:
    index.create_generation(make_generation(name, dimension=2, encoder_id=encoder_id))
    index.upsert(name, documents)


def test_equal_generations_have_not_drifted(index: SqliteIndex) -> None:
    add(index, "old", placed(DEGREES))
    add(index, "new", placed(DEGREES))
    report = compare(index, old="old", new="new", k=2)
    assert (report.anchors, report.only_in_old, report.only_in_new) == (6, 0, 0)
    assert (report.overlap_mean, report.overlap_p10, report.rank_biased_overlap_mean) == (1, 1, 1)
    assert report.same_text is not None
    assert report.same_text.texts == 6
    assert report.same_text.mean == pytest.approx(1)
    assert report.old_scores == report.new_scores
    assert (report.most_changed, report.judged, report.approximate) == ((), None, False)


def test_a_moved_company_shows_in_its_own_list_and_in_others(index: SqliteIndex) -> None:
    add(index, "old", placed(DEGREES))
    add(index, "new", placed(DEGREES | {"a": 90.0}))  # new neighbours: f and e instead of b and c
    report = compare(index, old="old", new="new", k=2)
    overlaps = {anchor.id: anchor.overlap for anchor in report.most_changed}
    # a: b c -> f e. b: a c -> c d. c: b a -> b d. f: e d -> e a. d and e keep theirs.
    assert overlaps == {"a": 0, "b": 0.5, "c": 0.5, "f": 0.5}
    assert report.overlap_mean == pytest.approx((0 + 3 * 0.5 + 2) / 6)
    assert report.overlap_p10 == pytest.approx(0.25)
    worst = report.most_changed[0]
    assert (worst.id, worst.name, worst.rank_biased_overlap) == ("a", "Company a", 0)
    assert (worst.left, worst.joined) == (("Company b", "Company c"), ("Company f", "Company e"))
    assert report.same_text is not None
    assert report.same_text.mean == pytest.approx((0 + 5) / 6)
    assert report.same_text.p05 == pytest.approx(0.25)


def test_scores_are_those_of_the_last_neighbour(index: SqliteIndex) -> None:
    add(index, "old", placed({"a": 0, "b": 10, "c": 20}))
    add(index, "new", placed({"a": 0, "b": 5, "c": 10}))
    report = compare(index, old="old", new="new", k=2)
    assert report.old_scores is not None
    assert report.new_scores is not None
    # The second neighbour is 20, 10 and 20 degrees away; then half of that.
    assert report.old_scores.p50 == pytest.approx(math.cos(math.radians(20)), abs=1e-6)
    assert report.new_scores.p50 == pytest.approx(math.cos(math.radians(10)), abs=1e-6)
    assert report.new_scores.p05 < report.new_scores.p25 + 1e-6
    assert report.new_scores.p95 == pytest.approx(math.cos(math.radians(5)), abs=2e-3)


def test_a_swap_of_two_neighbours_is_seen_by_the_ranked_measure_only(index: SqliteIndex) -> None:
    add(index, "old", placed({"a": 0, "b": 10, "c": -20}))
    add(index, "new", placed({"a": 0, "b": 20, "c": -10}))
    report = compare(index, old="old", new="new", k=2)
    assert report.overlap_mean == 1
    assert {anchor.id: anchor.rank_biased_overlap for anchor in report.most_changed} == {"a": pytest.approx(0.9 / 1.9)}
    assert (report.most_changed[0].left, report.most_changed[0].joined) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", 1),
        ("abc", "def", 0),
        ("", "", 1),
        ("a", "", 0),
        ("abc", "acb", (1 + 0.9 / 2 + 0.81) / 2.71),
        ("abc", "ab", (1 + 0.9 + 0.81 * 2 / 3) / 2.71),
    ],
)
def test_rank_biased_overlap_by_hand(old: str, new: str, expected: float) -> None:
    assert rank_biased_overlap([*old], [*new]) == pytest.approx(expected)
    assert rank_biased_overlap([*new], [*old]) == pytest.approx(expected)


def test_companies_that_only_one_generation_holds_are_counted_without_tombstones(index: SqliteIndex) -> None:
    add(
        index,
        "old",
        [*placed(DEGREES), *placed({"x": 1, "y": 2, "z": 3}), DeletedCompany(id="gone", version=5)],
    )
    add(
        index,
        "new",
        [
            *placed({company: angle for company, angle in DEGREES.items() if company != "f"}),
            *placed({"x": 1}, version=4),  # newer, but there
            DeletedCompany(id="y", version=3),
            *placed({"late": 5}),
            DeletedCompany(id="unheard-of", version=5),
        ],
    )
    report = compare(index, old="old", new="new")
    assert (report.only_in_old, report.only_in_new) == (3, 1)  # f, y, z; late
    assert report.anchors == 6
    reverse = compare(index, old="new", new="old")
    assert (reverse.only_in_old, reverse.only_in_new) == (1, 3)


def test_anchors_are_companies_even_where_most_documents_are_tombstones(index: SqliteIndex) -> None:
    documents: list[EmbeddedCompany | DeletedCompany] = [
        *(DeletedCompany(id=f"t{number:03}", version=3) for number in range(400)),
        *(make_embedded(f"c{number:02}", vector=direction(number)) for number in range(40)),
    ]
    add(index, "old", documents)
    add(index, "new", documents)
    assert compare(index, old="old", new="new", anchors=20).anchors == 20
    assert compare(index, old="old", new="new", anchors=60).anchors == 40


def test_labels_say_which_generation_ranks_better(index: SqliteIndex) -> None:
    add(index, "old", placed(DEGREES))
    add(index, "new", placed(DEGREES | {"b": 30.0}))
    labels = {"a": {"b": 2, "c": 0, "elsewhere": 1}, "nobody": {"a": 2, "b": 0}}
    report = compare(index, old="old", new="new", labels=labels)
    assert report.judged is not None
    assert (report.judged.anchors, report.judged.old_ndcg) == (1, 1)
    assert report.judged.new_ndcg == pytest.approx(1 / math.log2(3))
    assert compare(index, old="old", new="new", labels={"nobody": {"a": 2}}).judged is None


class ApproximateIndex(SqliteIndex):
    def similar(
        self,
        generation: str,
        vector: Vector,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
        words: str = "",
    ) -> SimilarCompanies:
        found = super().similar(generation, vector, k=k, filters=filters, exclude=exclude)
        return SimilarCompanies(hits=found.hits, approximate=generation == "new")


def test_the_report_says_when_a_search_was_approximate(tmp_path: Path) -> None:
    index = ApproximateIndex(tmp_path / "index.db")
    add(index, "old", placed(DEGREES))
    add(index, "new", placed(DEGREES))
    assert compare(index, old="old", new="new").approximate
    assert not compare(index, old="old", new="old").approximate
    index.close()


@pytest.mark.parametrize(("anchors", "k"), [(0, 10), (200, 0)])
def test_impossible_settings_are_refused(index: SqliteIndex, anchors: int, k: int) -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        compare(index, old="old", new="new", anchors=anchors, k=k)


def test_an_unknown_generation_is_named(index: SqliteIndex) -> None:
    add(index, "old", placed(DEGREES))
    with pytest.raises(UnknownGeneration, match="nowhere"):
        compare(index, old="old", new="nowhere")


def test_only_vectors_of_one_encoder_and_one_text_are_compared(index: SqliteIndex) -> None:
    add(index, "old", placed({"a": 0, "b": 10}))
    add(index, "new", [*placed({"a": 0}), *placed({"b": 70}, description="It does other things now.", version=4)])
    same_text = compare(index, old="old", new="new").same_text
    assert same_text is not None
    assert same_text.texts == 1
    assert same_text.p05 == pytest.approx(1)
    add(index, "other", placed({"a": 0, "b": 10}, encoder_id="encoder-2"), encoder_id="encoder-2")
    report = compare(index, old="old", new="other")
    assert (report.same_text, report.overlap_mean) == (None, 1)


@pytest.mark.parametrize(("there", "anchors", "overlap", "alone"), [("b", 0, None, 1), ("a", 1, 1, 0)])
def test_what_cannot_be_compared_has_no_figures(
    index: SqliteIndex, there: str, anchors: int, overlap: float | None, alone: int
) -> None:
    """Generations without a common company, and a company without others."""
    add(index, "old", placed({"a": 0}))
    add(index, "new", placed({there: 0}))
    report = compare(index, old="old", new="new")
    assert (report.anchors, report.only_in_old, report.only_in_new) == (anchors, alone, alone)
    assert (report.overlap_mean, report.old_scores) == (overlap, None)
