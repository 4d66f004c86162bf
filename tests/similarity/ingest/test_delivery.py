"""Every change ends in the index or rejected, whatever encoder and store do on the way."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import EncodingFailed, IndexUnavailable
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.dead_letters import Stage
from similarity.ingest.delivery import Delivery, DeliveryResult
from similarity.ingest.records import VersionedCompany
from similarity.ingest.writer_leases import WriterLease
from tests.contract.steps import add_live
from tests.factories import ENCODER_ID, make_company
from tests.fakes import CountingEncoder

POISON = "Sells strong poison."


class TouchyEncoder(CountingEncoder):
    """Fails on any batch that holds the poison, and counts its calls."""

    def __init__(self, *, broken: bool = False, error: BaseException | None = None) -> None:
        super().__init__()
        self.calls = 0
        self.broken = broken
        self.error = error or RuntimeError("cannot read this")

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        self.calls += 1
        if self.broken or any(POISON in text for text in texts):
            raise self.error
        return super().encode(texts)


class Flaky:
    """An index whose writes can be made to fail; everything else is the real one's."""

    def __init__(self, index: SqliteIndex, fails: Callable[[str], bool]) -> None:
        self._index = index
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        failing = [document for document in documents if self._fails(document.id)]
        written = iter(self._index.upsert(generation, [each for each in documents if each not in failing]))
        return [
            WriteResult(id=document.id, outcome=WriteOutcome.FAILED, reason="busy")
            if document in failing
            else next(written)
            for document in documents
        ]


class Clock:
    """Time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        yield index


def changes(count: int, *, poison: Sequence[int] = ()) -> list[VersionedCompany]:
    return [
        VersionedCompany(
            company=make_company(f"c{n}", description=POISON if n in poison else f"Makes part {n}."), version=2
        )
        for n in range(count)
    ]


def deliver(
    index: Any, encoder: CountingEncoder, batch: Sequence[VersionedCompany | DeletedCompany], **options: Any
) -> list[DeliveryResult]:
    clock = Clock()
    with WriterLease(index) as writer:
        delivery = Delivery(writer, {ENCODER_ID: encoder}, clock=clock, sleep=clock.sleep, **options)
        return delivery.deliver(batch)


def test_a_batch_without_trouble_is_one_call_of_the_encoder(index: SqliteIndex) -> None:
    encoder = TouchyEncoder()
    ends = deliver(index, encoder, [*changes(8), DeletedCompany(id="gone", version=3)])
    assert {end.outcome for end in ends} == {WriteOutcome.APPLIED}
    assert [end.id for end in ends] == [*(f"c{n}" for n in range(8)), "gone"]
    assert encoder.calls == 1


def test_nothing_to_deliver_is_nothing_delivered(index: SqliteIndex) -> None:
    assert deliver(index, CountingEncoder(), []) == []


def test_one_poison_costs_one_rejection_and_few_calls(index: SqliteIndex) -> None:
    encoder = TouchyEncoder()
    ends = deliver(index, encoder, changes(512, poison=[77]))
    assert [end.id for end in ends if end.outcome is not WriteOutcome.APPLIED] == ["c77"]
    assert ends[77].stage is Stage.EMBED
    assert "cannot read this" in ends[77].reason
    # Two calls for each of the nine halvings, the first, and the probe.
    assert encoder.calls <= 2 * 9 + 2


@pytest.mark.parametrize("poison", [{0}, {39}, {0, 39}, {7, 8}, {3, 19, 20, 21, 33}, set(range(40))])
def test_exactly_the_poison_is_rejected(index: SqliteIndex, poison: set[int]) -> None:
    ends = deliver(index, TouchyEncoder(), changes(40, poison=sorted(poison)))
    assert {n for n, end in enumerate(ends) if end.stage is Stage.EMBED} == poison
    assert set(index.get("first", [end.id for end in ends])) == {f"c{n}" for n in range(40) if n not in poison}


def test_a_text_on_which_the_tokenizer_panics_is_rejected_alone(index: SqliteIndex) -> None:
    class Panic(BaseException):
        """What a fault of the tokenizer's Rust code becomes in Python (pyo3_runtime.PanicException)."""

    ends = deliver(index, TouchyEncoder(error=Panic("cannot read this")), changes(3, poison=[1]))
    assert [end.id for end in ends if end.outcome is not WriteOutcome.APPLIED] == ["c1"]


def test_a_broken_encoder_rejects_nothing(index: SqliteIndex) -> None:
    with pytest.raises(EncodingFailed, match="harmless text too"):
        deliver(index, TouchyEncoder(broken=True), changes(3))


def test_what_the_store_did_not_take_is_sent_again(index: SqliteIndex) -> None:
    random = np.random.default_rng(0)
    retried: list[int] = []
    flaky = Flaky(index, lambda _: bool(random.random() < 0.2))
    ends = deliver(flaky, CountingEncoder(), changes(200), on_retry=lambda count, _: retried.append(count))
    assert {end.outcome for end in ends} <= {WriteOutcome.APPLIED, WriteOutcome.UNCHANGED}
    assert len(index.get("first", [end.id for end in ends])) == 200
    assert retried[0] < 100
    assert retried == sorted(retried, reverse=True)


def test_a_store_that_comes_back_in_time_is_waited_for(index: SqliteIndex) -> None:
    attempts = iter([True] * 10)
    flaky = Flaky(index, lambda _: next(attempts, False))
    assert {end.outcome for end in deliver(flaky, CountingEncoder(), changes(1))} == {WriteOutcome.APPLIED}


def test_patience_ends(index: SqliteIndex) -> None:
    with pytest.raises(IndexUnavailable, match="none of 2 changes for 60 seconds \\(busy\\)"):
        deliver(Flaky(index, lambda _: True), CountingEncoder(), changes(2), patience=60)


def test_a_contradiction_is_rejected_by_the_store(index: SqliteIndex) -> None:
    deliver(index, CountingEncoder(), changes(1))
    other = VersionedCompany(company=make_company("c0", description="Makes something else."), version=2)
    [end] = deliver(index, CountingEncoder(), [other])
    assert (end.outcome, end.stage) == (WriteOutcome.REJECTED, Stage.WRITE)
