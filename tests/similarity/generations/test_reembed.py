"""A re-embed on a real index: what ends up where, what a kill at any point changes (nothing), who is waited for."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import GenerationConflict, IndexUnavailable, InvalidInput, LeaseHeld, LeaseLost
from similarity.generations.filling import Pace
from similarity.generations.gate import GateReport
from similarity.generations.plan import copy_of, plan
from similarity.generations.reembed import ReembedReport, copy_generation, reembed
from similarity.index.comparing import lagging
from similarity.index.protocol import CompanyIndex, GenerationState, WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Change
from similarity.ingest.write_path import embed_changes, write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.model.calibration import Calibration
from tests.contract.clock import Clock
from tests.contract.steps import add_candidate
from tests.factories import make_embedded, make_generation
from tests.fakes import CountingEncoder
from tests.similarity.generations.staging import (
    COMPANIES,
    DELETED,
    NOW,
    WANTED,
    Dead,
    Mortal,
    SecondEncoder,
    Watched,
    change,
    expected,
    fill_first,
    names,
    opened,
    options,
    states,
    stored,
    write,
)

LIVE_COMPANIES = COMPANIES - len(DELETED)
DONE = [("encoder-1", "previous"), ("encoder-2", "live")]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def index(tmp_path: Path, clock: Clock) -> Iterator[SqliteIndex]:
    with closing(opened(tmp_path, clock)) as index:
        fill_first(index)
        yield index


def run(index: Any, clock: Clock, *, encoder: CountingEncoder | None = None, **changes: Any) -> ReembedReport:
    return reembed(index, WANTED, encoder=encoder or SecondEncoder(), now=NOW, options=options(clock, **changes))


def test_a_reembed_replaces_the_live_generation_with_the_new_encoders_vectors(index: SqliteIndex, clock: Clock) -> None:
    wanted = expected(index)
    report = run(index, clock)
    assert states(index) == DONE
    assert stored(index, "second") == wanted
    assert (report.promoted, report.documents, report.encoded) == (True, COMPANIES, LIVE_COMPANIES)
    assert index.leases() == []


def test_a_kill_at_any_point_and_a_second_run_give_the_same_end(tmp_path: Path, clock: Clock) -> None:
    survived = False
    for number in count(1):
        for after in (False, True):
            with closing(opened(tmp_path / f"{number}{after}", clock)) as index:
                fill_first(index)
                wanted = expected(index)
                encoder = SecondEncoder()
                try:
                    run(Mortal(index, number, after=after), clock, encoder=encoder)
                    survived = True
                except Dead:
                    clock.advance(61)  # its lease ends
                run(index, clock, encoder=encoder)
                assert states(index) == DONE, number
                assert stored(index, "second") == wanted, number
                assert len(encoder.texts) <= LIVE_COMPANIES + 4, "at most one chunk is encoded again"
        if survived:
            break
    assert number > 20


@pytest.mark.parametrize("meanwhile", ["write", "delete", "revive", "both"])
def test_what_is_written_at_any_point_is_in_the_new_generation(tmp_path: Path, clock: Clock, meanwhile: str) -> None:
    changes: dict[str, list[Any]] = {
        "write": [change("c05", 8, description="Makes something else."), change("new", 8)],
        "delete": [DeletedCompany(id="c05", version=9)],
        "revive": [change("c03", 8)],
    }
    changes["both"] = [*changes["write"], DeletedCompany(id="c05", version=9)]
    quiet = False
    for number in count(1):
        with closing(opened(tmp_path / str(number), clock)) as index:
            fill_first(index)
            written: list[int] = []

            def disturb(call: int, number: int = number, index: CompanyIndex = index, log: list[int] = written) -> None:
                if call == number:
                    log.append(call)
                    write(index, *changes[meanwhile])

            run(Watched(index, disturb), clock)
            quiet = not written
            assert stored(index, "second") == expected(index), number
            assert stored(index, "first").keys() == stored(index, "second").keys()
        if quiet:
            break
    assert number > 20


def test_a_writer_that_knows_only_the_old_generation_is_waited_for(index: SqliteIndex, clock: Clock) -> None:
    """Its batch is on the way to the live generation alone; the copy must not pass it by."""
    late = change("a-late-one", 8)
    with ExitStack() as stack:
        writer = stack.enter_context(WriterLease(index))
        targets = writer.targets()
        assert names(targets) == ["first"]

        def sleep(seconds: float) -> None:
            clock.advance(seconds)
            if "a-late-one" not in index.get("first", ["a-late-one"]):
                assert index.stats("second").companies == 0
                index.upsert("first", embed_changes([late], {}, CountingEncoder(), now=NOW))
                assert names(writer.targets()) == ["first", "second"]

        run(index, clock, sleep=sleep)
    assert stored(index, "second") == expected(index)
    assert "a-late-one" in index.get("second", ["a-late-one"])


def test_a_writer_that_slept_through_everything_is_made_good_after_the_promote(
    index: SqliteIndex, clock: Clock
) -> None:
    def disturb(call: int) -> None:
        # A batch that was meant for the live generation alone lands after the promote.
        if index.live().name == "second" and not index.get("first", ["sleeper"]):
            index.upsert("first", embed_changes([change("sleeper", 8)], {}, CountingEncoder(), now=NOW))

    run(Watched(index, disturb), clock)
    assert "sleeper" in index.get("second", ["sleeper"])


@pytest.mark.parametrize("enters", [True, False], ids=["with", "at the first batch"])
def test_a_writer_that_sleeps_past_its_lease_at_any_point_writes_to_the_new_generation(
    tmp_path: Path, clock: Clock, *, enters: bool
) -> None:
    """A whole re-embed runs meanwhile, as if the writer's process or container was paused."""
    for number in count(1):
        with closing(opened(tmp_path / str(number), clock)) as index, ExitStack() as stack:
            fill_first(index)
            wakes: list[int] = []

            def sleep(call: int, number: int = number, index: SqliteIndex = index, log: list[int] = wakes) -> None:
                if call == number:
                    log.append(call)
                    clock.advance(200)
                    run(index, clock)

            writer = WriterLease(Watched(index, sleep), clock=lambda: clock().timestamp())
            if enters:
                stack.enter_context(writer)
            encoders = {"encoder-1": CountingEncoder(), "encoder-2": SecondEncoder()}
            changes: list[Change] = [change("c05", 8), DeletedCompany(id="c06", version=9)]
            before: dict[str, EmbeddedCompany] = {}
            results = write_changes(writer, encoders, changes, now=NOW, on_stored=before.update)
            assert [result.outcome for result in results] == [WriteOutcome.APPLIED] * 2, number
            assert {each.version for each in before.values()} == {2}, number
            assert index.stored_versions(index.live().name, ["c05", "c06"]) == {"c05": 8, "c06": 9}, number
        if not wakes:
            break
    assert number > 8


def test_a_writer_that_never_answers_stops_the_run_before_anything_is_copied(index: SqliteIndex, clock: Clock) -> None:
    index.take_lease("writer.slow", holder="slow", seconds=3_600)
    with pytest.raises(LeaseHeld, match="1 writers have not acknowledged the new candidate after 600 seconds: slow"):
        run(index, clock)
    assert index.stats("second").companies == 0


def test_one_reembed_runs_at_a_time(index: SqliteIndex, clock: Clock) -> None:
    index.take_lease("reembed", holder="another", seconds=60)
    with pytest.raises(LeaseHeld, match="another"):
        run(index, clock)
    assert names(index.generations()) == ["first"]


def test_a_run_that_lost_its_lease_promotes_nothing(index: SqliteIndex, clock: Clock) -> None:
    def disturb(call: int) -> None:
        if index.stats("second").companies and index.leases()[0].holder != "usurper":
            clock.advance(61)
            index.take_lease("reembed", holder="usurper", seconds=60)

    def gate(old: str | None, new: str) -> GateReport:
        disturb(0)
        return GateReport(passed=True)

    with pytest.raises(LeaseLost):
        run(index, clock, gate=gate)
    assert index.live().name == "first"


def test_a_run_during_which_another_generation_went_live_promotes_nothing(index: SqliteIndex, clock: Clock) -> None:
    run(index, clock)

    def gate(old: str | None, new: str) -> GateReport:
        index.rollback()
        return GateReport(passed=True)

    wanted = replace(WANTED, name="third", bundle_id="bundle-3")
    with pytest.raises(GenerationConflict, match="first went live while this run copied second"):
        reembed(index, wanted, encoder=None, now=NOW, options=options(clock, gate=gate))
    assert index.live().name == "first"


def test_a_second_run_has_nothing_left_to_do(index: SqliteIndex, clock: Clock) -> None:
    run(index, clock)
    encoder = SecondEncoder()
    report = run(index, clock, encoder=encoder)
    assert (report.promoted, report.documents, encoder.texts, states(index)) == (True, 0, [], DONE)


def test_a_run_of_the_live_bundle_brings_nothing_back_from_a_generation_that_was_rolled_back(
    index: SqliteIndex, clock: Clock
) -> None:
    run(index, clock)
    before = stored(index, "first")
    index.upsert("second", [make_embedded("c05", version=8, encoder_id="encoder-2")])
    index.rollback(force=True)
    wanted = replace(index.live(), name="third")
    report = reembed(index, wanted, encoder=CountingEncoder(), now=NOW, options=options(clock))
    assert (report.promoted, report.replaces, report.documents) == (True, "", 0)
    assert stored(index, "first") == before


def test_nothing_comes_back_from_an_import_that_was_rolled_back_before_the_live_generation_was_made(
    index: SqliteIndex, clock: Clock
) -> None:
    index.create_generation(make_generation("import", encoder_id="external", bundle_id="imported"))
    index.upsert("import", [make_embedded("only-imported", version=9, encoder_id="external")])
    index.register_candidate("import")
    index.promote("import")
    index.rollback(force=True)
    assert run(index, clock).promoted
    index.retire("first")
    report = run(index, clock)
    assert (report.promoted, report.documents) == (True, 0)
    assert "only-imported" not in stored(index, "second")


def test_a_run_without_promote_stops_before_it_and_the_next_one_goes_on(index: SqliteIndex, clock: Clock) -> None:
    assert not run(index, clock, promote=False).promoted
    assert states(index) == [("encoder-1", "live"), ("encoder-2", "candidate")]
    encoder = SecondEncoder()
    assert run(index, clock, encoder=encoder).promoted
    assert encoder.texts == []


def test_the_gate_judges_the_full_candidate_and_its_word_holds(index: SqliteIndex, clock: Clock) -> None:
    seen = []

    def gate(old: str | None, new: str) -> GateReport:
        seen.append((old, new, index.stats(new).companies))
        return GateReport(passed=False, reasons=("worse",))

    report = run(index, clock, gate=gate)
    assert seen == [("first", "second", LIVE_COMPANIES)]
    assert not report.promoted
    assert report.gate == GateReport(passed=False, reasons=("worse",))
    assert index.live().name == "first"


def test_a_candidate_of_another_bundle_is_in_the_way(index: SqliteIndex, clock: Clock) -> None:
    add_candidate(index, "other", encoder_id="encoder-3", bundle_id="bundle-3")
    with pytest.raises(GenerationConflict, match=r"candidate other of bundle bundle-3; .* generations retire other"):
        run(index, clock)


def test_the_wrong_encoder_is_noticed_before_anything_is_made(index: SqliteIndex, clock: Clock) -> None:
    with pytest.raises(InvalidInput, match="needs encoder encoder-2, but encoder-1 was given"):
        run(index, clock, encoder=CountingEncoder())
    assert names(index.generations()) == ["first"]


def test_a_new_bundle_of_the_same_encoder_copies_the_vectors(index: SqliteIndex, clock: Clock) -> None:
    wanted = make_generation("recalibrated", bundle_id="bundle-2")
    report = reembed(index, wanted, encoder=None, now=NOW, options=options(clock))
    assert report.encoded == 0
    assert stored(index, "recalibrated") == stored(index, "first")
    assert index.live().bundle_id == "bundle-2"


def test_a_copy_encodes_nothing_and_holds_the_same(index: SqliteIndex, clock: Clock) -> None:
    report = copy_generation(index, now=NOW, options=options(clock))
    assert (report.promoted, report.encoded, report.documents) == (True, 0, COMPANIES)
    assert stored(index, report.generation) == stored(index, "first")
    assert index.live().name == report.generation == "20260101-000000-encoder-"


@pytest.mark.parametrize("is_copy", [True, False])
def test_an_unfinished_import_of_the_same_bundle_is_left_alone(
    index: SqliteIndex, clock: Clock, *, is_copy: bool
) -> None:
    bundle = index.live() if is_copy else WANTED
    fields: dict[str, Any] = {
        "encoder_id": bundle.encoder_id,
        "bundle_id": bundle.bundle_id,
        "dimension": bundle.dimension,
    }
    index.create_generation(make_generation("empty-import", **fields))
    index.create_generation(make_generation("import", **fields))
    index.upsert("import", [make_embedded("draft", encoder_id=bundle.encoder_id)])
    target = copy_of(index, index.live(), now=NOW) if is_copy else WANTED
    assert not plan(index, target).begun
    report = copy_generation(index, now=NOW, options=options(clock)) if is_copy else run(index, clock)
    assert report.promoted
    assert index.live().name == target.name
    imports = {each.name for each in index.generations() if each.state is GenerationState.BUILDING}
    assert imports == {"empty-import", "import"}
    assert list(stored(index, "import")) == ["draft"]
    assert "draft" not in stored(index, target.name)


def test_a_dry_run_changes_nothing(index: SqliteIndex) -> None:
    revision = index.revision()
    found = plan(index, WANTED)
    assert (found.live.name, found.begun, found.encodes, found.lacking) == ("first", False, True, COMPANIES)
    assert (index.revision(), names(index.generations()), index.leases()) == (revision, ["first"], [])


def test_a_plan_sees_what_was_begun(index: SqliteIndex, clock: Clock) -> None:
    run(index, clock, promote=False)
    found = plan(index, WANTED)
    assert (found.begun, found.candidate.name, found.lacking) == (True, "second", 0)


def test_the_rate_is_kept(index: SqliteIndex, clock: Clock) -> None:
    began = clock()
    run(index, clock, max_docs_per_second=2)
    assert (clock() - began).total_seconds() == pytest.approx(COMPANIES / 2)


def test_what_lacks_is_looked_up_page_by_page(
    index: SqliteIndex, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("similarity.generations.filling.PAGE_DOCUMENTS", 3)
    wanted = expected(index)
    encoder = SecondEncoder()
    told: list[str] = []
    run(index, clock, encoder=encoder, on_step=lambda name, detail: told.append(name))
    assert stored(index, "second") == wanted
    assert len(encoder.texts) == LIVE_COMPANIES
    assert told.count("catch-up") == 1


def test_a_generation_that_rejects_everything_is_given_up(
    index: SqliteIndex, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(SecondEncoder):
        def encode(self, texts: Sequence[str], progress: Any = None) -> NDArray[np.float32]:
            return 2 * super().encode(texts)

    monkeypatch.setattr("similarity.generations.filling.MAX_REJECTED", 5)
    with pytest.raises(GenerationConflict, match=r"second rejects .* 'c00': the vector has norm 2"):
        run(index, clock, encoder=Broken())
    assert index.live().name == "first"


def test_a_rate_of_nothing_is_refused(clock: Clock) -> None:
    with pytest.raises(InvalidInput, match="the limit is 0 documents a second; give more than 0"):
        options(clock, max_docs_per_second=0)


def test_chunks_fit_the_rate() -> None:
    assert [Pace(rate).chunk for rate in (None, 0.01, 2, 10_000)] == [1024, 1, 10, 1024]


def test_progress_ends_at_the_total(index: SqliteIndex, clock: Clock) -> None:
    seen: list[int] = []
    run(index, clock, on_documents=seen.append)
    assert seen == [4, 4, 2]


def test_every_step_is_told(index: SqliteIndex, clock: Clock) -> None:
    told: list[str] = []
    run(
        index,
        clock,
        on_step=lambda name, detail: told.append(name),
        gate=lambda old, new: GateReport(passed=True),
        compact=True,
    )
    wanted = ["lease", "candidate", "writers", "backfill", "catch-up", "compact", "gate", "promote", "settle"]
    assert told == wanted


def test_a_new_bundle_without_the_probability_of_the_live_one_is_told(
    index: SqliteIndex, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrated = replace(index.live(), calibration=Calibration(slope=9.0, intercept=-4.0))
    monkeypatch.setattr(SqliteIndex, "live", lambda self: calibrated)
    assert "the new bundle gives no probability" in plan(index, WANTED).warning  # of a dry run
    told: dict[str, str] = {}
    run(index, clock, on_step=told.__setitem__)
    assert "the new bundle gives no probability" in told["warning"]


@pytest.mark.parametrize(
    ("is_complete", "detail"),
    [(True, "the candidate is compact"), (False, "run later: similarity generations compact second")],
)
def test_a_candidate_is_called_compact_only_if_no_deleted_document_stays(
    index: SqliteIndex, clock: Clock, monkeypatch: pytest.MonkeyPatch, is_complete: bool, detail: str
) -> None:
    monkeypatch.setattr(SqliteIndex, "compact", lambda self, generation: is_complete)
    told: dict[str, str] = {}
    assert run(index, clock, on_step=told.__setitem__, compact=True).promoted
    assert detail in told["compact"]


class Refusing(Watched):
    """An index that answers for some documents itself, `times` times each."""

    def __init__(self, index: CompanyIndex, answer: WriteResult, times: int) -> None:
        super().__init__(index)
        self.answer, self.times = answer, times

    def upsert(self, generation: str, documents: Any) -> list[WriteResult]:
        taken = [document for document in documents if document.id != self.answer.id or not self.times]
        refused = len(taken) < len(documents)
        self.times -= refused
        results = {result.id: result for result in self.index.upsert(generation, taken)}
        return [results.get(document.id, self.answer) for document in documents]


def test_a_document_that_failed_is_tried_again(index: SqliteIndex, clock: Clock) -> None:
    wanted = expected(index)
    report = run(Refusing(index, WriteResult(id="c05", outcome=WriteOutcome.FAILED, reason="busy"), 1), clock)
    assert report.promoted
    assert stored(index, "second") == wanted


def test_a_store_that_takes_nothing_ends_the_run_and_the_next_one_goes_on(index: SqliteIndex, clock: Clock) -> None:
    wanted = expected(index)
    with pytest.raises(IndexUnavailable, match=r"did not accept 1 documents .* run the same command"):
        run(Refusing(index, WriteResult(id="c05", outcome=WriteOutcome.FAILED, reason="busy"), 9), clock)
    run(index, clock)
    assert stored(index, "second") == wanted


def test_a_rejected_document_is_listed_and_nothing_goes_live(index: SqliteIndex, clock: Clock) -> None:
    report = run(Refusing(index, WriteResult(id="c05", outcome=WriteOutcome.REJECTED, reason="too odd"), 9), clock)
    assert (report.promoted, report.rejected) == (False, {"c05": "too odd"})
    assert index.live().name == "first"


def test_a_writer_who_never_heard_of_the_candidate_is_noticed(index: SqliteIndex, clock: Clock) -> None:
    versions = count(100)

    def disturb(call: int) -> None:
        stray = change("stray", next(versions))
        index.upsert("first", embed_changes([stray], {}, CountingEncoder(), now=NOW))

    with pytest.raises(GenerationConflict, match="the candidate second still lacks documents"):
        run(Watched(index, disturb), clock)


def test_lagging_names_what_is_missing_or_older(index: SqliteIndex) -> None:
    index.create_generation(replace(WANTED, encoder_id="encoder-1"))
    documents = [document for batch in index.scan("first") for document in batch]
    index.upsert("second", documents[1:7])
    assert [each.id for each in lagging(index, ahead="first", behind="second")] == ["c00", "c07", "c08", "c09"]
    assert [each.id for each in lagging(index, ahead="first", behind="second", after="c07")] == ["c08", "c09"]
    assert [each.id for each in lagging(index, ahead="second", behind="first")] == []
    index.upsert("first", [DeletedCompany(id="c02", version=9), DeletedCompany(id="zz", version=9)])
    assert [each.id for each in lagging(index, ahead="first", behind="second")] == [
        "c00",
        "c02",
        "c07",
        "c08",
        "c09",
        "zz",
    ]
