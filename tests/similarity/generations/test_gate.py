"""The gate on small generations whose ranking quality is known: sixty anchors with three candidates each.

Vectors lie in a plane, so a company is an angle; the candidates of an anchor are 10, 20 and 30 degrees
away, in the right order (competitor, related, other) or in the reverse one.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, Vector
from similarity.errors import InvalidInput, UnknownGeneration
from similarity.generations import gate
from similarity.generations.gate import RECHECK_DELAYS_SECONDS, GateReport, check
from similarity.index.protocol import DocumentVersion, GenerationStats
from similarity.index.sqlite import SqliteIndex
from tests.factories import make_embedded, make_generation

ANCHORS = 60
LABELS = {f"a{n:02}": {f"c{n:02}-{grade}": grade for grade in (2, 1, 0)} for n in range(ANCHORS)}
BEST = 3 + 1 / math.log2(3)
REVERSED = (1 / math.log2(3) + 3 / 2) / BEST


def direction(degrees: float) -> Vector:
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], dtype=np.float32)


def corpus(*, reversed_anchors: int = 0, anchors: int = ANCHORS) -> list[EmbeddedCompany]:
    """All anchors and candidates; the first `reversed_anchors` have their candidates in the wrong order."""
    companies = []
    for number in range(anchors):
        companies.append(make_embedded(f"a{number:02}", vector=direction(6 * number)))
        for grade in (2, 1, 0):
            place = grade if number < reversed_anchors else 2 - grade
            companies.append(make_embedded(f"c{number:02}-{grade}", vector=direction(6 * number + 10 + 10 * place)))
    return companies


class WatchedIndex(SqliteIndex):
    """Remembers how many ids each `get` was asked for, and of which generations all versions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[int] = []
        self.streams: list[str] = []

    def versions(
        self, generation: str, *, after: str = "", batch_size: int = 10_000
    ) -> Iterator[list[DocumentVersion]]:
        self.streams.append(generation)
        return super().versions(generation, after=after, batch_size=batch_size)

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        self.asked.append(len(ids))
        return super().get(generation, ids)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "RECHECK_DELAYS_SECONDS", [0.0 for _ in RECHECK_DELAYS_SECONDS])


@pytest.fixture
def index(tmp_path: Path) -> Iterator[WatchedIndex]:
    index = WatchedIndex(tmp_path / "index.db")
    yield index
    index.close()


def add(index: SqliteIndex, name: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> None:
    index.create_generation(make_generation(name, dimension=2))
    index.upsert(name, documents)


def compare(index: SqliteIndex, **options: object) -> GateReport:
    settings: dict[str, object] = {"old": "old", "new": "new", "labels": LABELS}
    return check(index, **(settings | options))  # type: ignore[arg-type]  # options are those of check


def test_an_identical_generation_passes_with_difference_zero(index: SqliteIndex) -> None:
    add(index, "old", corpus(reversed_anchors=7))
    add(index, "new", corpus(reversed_anchors=7))
    report = compare(index)
    assert (report.passed, report.reasons, report.anchors) == (True, (), ANCHORS)
    assert (report.difference, report.lower_bound, report.upper_bound) == (0, 0, 0)
    assert report.old_ndcg == report.new_ndcg == pytest.approx((53 + 7 * REVERSED) / 60)


def test_a_better_generation_passes(index: SqliteIndex) -> None:
    add(index, "old", corpus(reversed_anchors=30))
    add(index, "new", corpus())
    report = compare(index)
    assert report.passed
    assert report.old_ndcg == pytest.approx((1 + REVERSED) / 2)
    assert report.new_ndcg == pytest.approx(1)
    assert report.difference == pytest.approx((1 - REVERSED) / 2)
    assert report.lower_bound == pytest.approx(0.155, abs=0.01)
    assert report.upper_bound == pytest.approx(0.258, abs=0.01)


def test_a_worse_generation_is_refused_with_its_numbers(index: SqliteIndex) -> None:
    add(index, "old", corpus())
    add(index, "new", corpus(reversed_anchors=10))
    report = compare(index)
    assert not report.passed
    assert report.difference == pytest.approx(10 * (REVERSED - 1) / 60)
    [reason] = report.reasons
    assert f"from 1.0000 to {report.new_ndcg:.4f}" in reason
    assert f"2.5th percentile of the difference is {report.lower_bound:+.4f}, under the limit of -0.0100" in reason


def test_a_small_loss_that_may_be_a_large_one_is_refused(index: SqliteIndex) -> None:
    add(index, "old", corpus())
    add(index, "new", corpus(reversed_anchors=1))
    report = compare(index)
    assert report.difference is not None
    assert -0.01 < report.difference < 0
    # Of 60 draws with replacement, the one bad anchor is drawn three times in the 2.5th percentile.
    assert report.lower_bound == pytest.approx(3 * (REVERSED - 1) / 60)
    assert not report.passed


def test_too_few_usable_anchors_are_refused(index: SqliteIndex) -> None:
    add(index, "old", corpus(anchors=49))
    add(index, "new", corpus(anchors=49))
    report = compare(index)
    assert (report.passed, report.anchors, report.difference) == (False, 49, 0)
    assert "49 of 60 labelled anchors are usable, fewer than 50" in report.reasons[0]


def test_an_empty_pair_of_generations_is_refused_without_figures(index: SqliteIndex) -> None:
    add(index, "old", [])
    add(index, "new", [])
    report = compare(index)
    assert (report.passed, report.anchors, report.new_ndcg, report.lower_bound) == (False, 0, None, None)


@pytest.mark.parametrize(("missing", "usable"), [("a05", 59), ("c05-2", 60)])
def test_what_one_generation_lacks_is_left_out_of_both(index: SqliteIndex, missing: str, usable: int) -> None:
    add(index, "old", corpus(reversed_anchors=6))
    add(index, "new", [company for company in corpus(reversed_anchors=6) if company.id != missing])
    for old, new in (("old", "new"), ("new", "old")):
        report = compare(index, old=old, new=new)
        assert (report.anchors, report.difference) == (usable, 0)


def test_an_anchor_needs_candidates_of_two_grades(index: SqliteIndex) -> None:
    add(index, "old", corpus())
    add(index, "new", corpus())
    labels = LABELS | {"a00": {"c00-2": 2}, "a01": {"c01-2": 1, "c01-1": 1}, "a02": {"c02-2": 2, "gone": 0}}
    assert compare(index, labels=labels).anchors == 57


def test_anchors_that_were_trained_on_are_left_out_and_counted(index: SqliteIndex) -> None:
    add(index, "old", corpus())
    add(index, "new", corpus(reversed_anchors=10))
    report = compare(index, trained_on=[f"a{number:02}" for number in range(10)] + ["c40-1", "elsewhere"])
    assert (report.passed, report.trained_on, report.anchors, report.difference) == (True, 10, 50, 0)
    assert compare(index, trained_on=list(LABELS)[:11]).anchors == 49


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            [make_embedded("x", vector=direction(5)), make_embedded("y", vector=direction(5))],
            "companies: new has 2 more than old,",
        ),
        (
            [DeletedCompany(id="x", version=3), DeletedCompany(id="y", version=3)],
            "tombstones: new has 2 more than old,",
        ),
    ],
)
def test_counts_must_not_differ(index: SqliteIndex, more: list[EmbeddedCompany | DeletedCompany], reason: str) -> None:
    add(index, "old", corpus())
    add(index, "new", [*corpus(), *more])
    [found] = compare(index).reasons
    assert reason in found
    assert "writes in progress do not explain the difference; run the re-embed again" in found
    assert not compare(index, old="new", new="old").passed


class WrittenIndex(WatchedIndex):
    """Another process writes all the while: whenever one looks, something else is in the candidate and not yet live."""

    def __init__(self, path: Path, make: Callable[[str], EmbeddedCompany | DeletedCompany]) -> None:
        super().__init__(path)
        self.make = make
        self.looks = 0

    def stats(self, generation: str) -> GenerationStats:
        self.write_on(generation)
        return super().stats(generation)

    def versions(
        self, generation: str, *, after: str = "", batch_size: int = 10_000
    ) -> Iterator[list[DocumentVersion]]:
        self.write_on(generation)
        return super().versions(generation, after=after, batch_size=batch_size)

    def write_on(self, generation: str) -> None:
        if generation == "old":
            self.upsert("old", [self.make(f"late{look}") for look in range(self.looks)])
            self.upsert("new", [self.make(f"late{self.looks}")])
            self.looks += 1


def arriving(company_id: str) -> EmbeddedCompany:
    return make_embedded(company_id, vector=direction(7))


def deleted(company_id: str) -> DeletedCompany:
    """Of the companies that were there before, those whose turn it is."""
    return DeletedCompany(id=company_id.replace("late", "there"), version=5)


THERE = [make_embedded(f"there{number}", vector=direction(7)) for number in range(9)]


@pytest.mark.parametrize("make", [arriving, deleted])
def test_what_others_write_while_the_gate_looks_is_no_reason(
    tmp_path: Path, make: Callable[[str], EmbeddedCompany | DeletedCompany]
) -> None:
    with closing(WrittenIndex(tmp_path / "index.db", make)) as index:
        add(index, "old", [*corpus(), *THERE])
        add(index, "new", [*corpus(), *THERE])
        report = compare(index)
        assert index.looks >= 3
    assert (report.reasons, report.passed) == ((), True)


@pytest.mark.parametrize("make", [arriving, deleted])
def test_what_others_write_while_the_gate_looks_hides_nothing(
    tmp_path: Path, make: Callable[[str], EmbeddedCompany | DeletedCompany]
) -> None:
    with closing(WrittenIndex(tmp_path / "index.db", make)) as index:
        more: list[EmbeddedCompany | DeletedCompany] = [arriving("x"), arriving("y"), DeletedCompany(id="z", version=3)]
        add(index, "old", [*corpus(), *THERE, *more])
        add(index, "new", [*corpus(), *THERE])
        reasons = compare(index).reasons
    # The counts of the stores differ by more: the writes in flight are among them.
    assert [reason.split(",")[0] for reason in reasons] == [
        "companies: new has 2 fewer than old",
        "tombstones: new has 1 fewer than old",
    ]


def test_a_company_that_one_generation_has_deleted_differs_in_both_counts(index: SqliteIndex) -> None:
    add(index, "old", [*corpus(), arriving("x")])
    add(index, "new", [*corpus(), DeletedCompany(id="x", version=3)])
    companies, tombstones = compare(index).reasons
    assert companies.startswith("companies: new has 1 fewer than old,")
    assert tombstones.startswith("tombstones: new has 1 more than old,")


def test_where_the_counts_agree_nothing_else_is_read(index: WatchedIndex) -> None:
    add(index, "old", corpus())
    add(index, "new", corpus())
    assert compare(index).passed
    assert index.streams == []


@pytest.mark.parametrize(("most", "looks"), [(20, 1), (21, 1 + len(RECHECK_DELAYS_SECONDS))])
def test_more_than_can_be_on_its_way_is_looked_at_once(
    index: WatchedIndex, monkeypatch: pytest.MonkeyPatch, most: int, looks: int
) -> None:
    monkeypatch.setattr(gate, "MAX_IN_FLIGHT_DOCUMENTS", most)
    add(index, "old", [*corpus(), *(arriving(f"x{number:02}") for number in range(21))])
    add(index, "new", corpus())
    [reason] = compare(index).reasons
    assert "companies: new has 21 fewer than old" in reason
    assert index.streams == ["old", "new"] * looks


class TamperedIndex(SqliteIndex):
    """Gives other documents of generation `new` than its record says, as no index should."""

    encoder_id = "encoder-1"
    vector = direction(0)

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        found = super().get(generation, ids)
        if generation == "new" and "a03" in found:
            found["a03"] = make_embedded("a03", encoder_id=self.encoder_id, vector=self.vector)
        return found


@pytest.mark.parametrize(
    ("encoder_id", "vector", "problem"),
    [
        ("encoder-2", direction(0), "it is of encoder encoder-2, not encoder-1"),
        ("encoder-1", np.array([1, 0, 0], dtype=np.float32), r"the vector has shape [3]; this generation holds [2]"),
        ("encoder-1", np.array([2, 0], dtype=np.float32), "norm 2"),
    ],
)
def test_vectors_that_are_not_what_the_generation_says_are_refused(
    tmp_path: Path, encoder_id: str, vector: Vector, problem: str
) -> None:
    index = TamperedIndex(tmp_path / "tampered.db")
    index.encoder_id, index.vector = encoder_id, vector
    add(index, "old", corpus())
    add(index, "new", corpus())
    report = compare(index)
    index.close()
    [reason] = report.reasons
    assert "1 of 240 labelled companies in new have an invalid vector, for example a03" in reason
    assert problem in reason
    assert report.anchors == 59


def test_a_first_generation_meets_a_floor(index: SqliteIndex) -> None:
    add(index, "new", corpus(reversed_anchors=60))
    report = compare(index, old=None, floor=REVERSED - 0.001)
    assert (report.passed, report.old_ndcg, report.difference) == (True, None, None)
    assert report.new_ndcg == report.lower_bound == report.upper_bound == pytest.approx(REVERSED)
    refused = compare(index, old=None, floor=0.6)
    assert not refused.passed
    assert f"nDCG@10 is {REVERSED:.4f}, under the floor of 0.6000" in refused.reasons[0]


def test_an_encoder_that_gives_every_text_one_vector_does_not_look_perfect(index: SqliteIndex) -> None:
    same = [make_embedded(company.id, vector=direction(45)) for company in corpus()]
    add(index, "new", same)
    report = compare(index, old=None, floor=0.9)
    mean_gain = (3 + 1 + 0) / 3
    assert report.new_ndcg == pytest.approx(mean_gain * (1 + 1 / math.log2(3) + 1 / 2) / BEST)
    assert not report.passed


def test_every_reason_is_given_at_once(index: SqliteIndex) -> None:
    add(index, "old", corpus(anchors=40))
    add(index, "new", corpus(anchors=30, reversed_anchors=30))
    assert [reason.split()[-1] for reason in compare(index).reasons] == ["gate", "--without-gate", "wide"]


def test_vectors_are_asked_for_in_batches(index: WatchedIndex) -> None:
    documents = [*corpus(), *(make_embedded(f"more-{number}", vector=direction(50)) for number in range(300))]
    add(index, "old", documents)
    add(index, "new", documents)
    labels = LABELS | {"a00": {f"more-{number}": number % 3 for number in range(300)}}
    assert compare(index, labels=labels).passed
    assert index.asked == [500, 37, 500, 37]


@pytest.mark.parametrize("floor", [1.5, math.nan])
def test_an_impossible_floor_is_refused(index: SqliteIndex, floor: float) -> None:
    with pytest.raises(InvalidInput, match=r"nDCG@10 is between 0 and 1"):
        compare(index, floor=floor)


@pytest.mark.parametrize("names", [{"old": "gone"}, {"new": "gone"}])
def test_an_unknown_generation_is_named(index: SqliteIndex, names: dict[str, object]) -> None:
    add(index, "old", corpus())
    add(index, "new", corpus())
    with pytest.raises(UnknownGeneration, match="gone"):
        compare(index, **names)
