from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from similarity.company import DeletedCompany
from similarity.errors import GenerationConflict, LeaseHeld, UnknownGeneration
from similarity.generations.gate import GateReport
from similarity.generations.promotion import IMPORTED, live_name, promote, retire, rollback, rollback_plan
from similarity.generations.reembed import copy_generation
from similarity.generations.retention import prune
from similarity.index.name_hashes import hashes_of
from similarity.index.protocol import GenerationState
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Change
from similarity.ingest.renewed_leases import RETIRE
from similarity.ingest.writer_leases import WriterLease
from tests.contract.clock import Clock
from tests.factories import make_embedded, make_generation
from tests.similarity.generations.staging import COMPANIES, NOW, change, fill_first, names, opened, options, write

LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(opened(tmp_path, Clock())) as index:
        fill_first(index)
        yield index


def passing(old: str | None, new: str) -> GateReport:
    return GateReport(passed=True)


def refusing(old: str | None, new: str) -> GateReport:
    return GateReport(passed=False, reasons=("worse",))


@pytest.fixture
def candidate(index: SqliteIndex) -> str:
    return copy_generation(index, now=NOW, options=options(Clock(), promote=False)).generation


def test_a_full_candidate_that_passes_goes_live(index: SqliteIndex, candidate: str) -> None:
    report = promote(index, candidate, gate=passing)
    assert (report.promoted, report.replaces, report.lacking) == (True, "first", 0)
    assert live_name(index) == candidate
    assert index.leases() == []


def test_a_dry_run_only_judges(index: SqliteIndex, candidate: str) -> None:
    report = promote(index, candidate, gate=passing, dry_run=True)
    assert (report.promoted, report.reasons, live_name(index)) == (False, (), "first")


def test_a_candidate_that_lacks_documents_or_is_worse_is_refused_with_all_reasons(index: SqliteIndex) -> None:
    index.create_generation(make_generation("empty"))
    report = promote(index, "empty", gate=refusing)
    assert report.reasons == (f"it lacks {COMPANIES} documents of first; run the re-embed or the copy again", "worse")
    assert (report.promoted, live_name(index)) == (False, "first")


def test_without_a_gate_it_must_still_have_all_documents(index: SqliteIndex, candidate: str) -> None:
    index.create_generation(make_generation("empty"))
    report = promote(index, "empty", gate=None)
    assert (report.promoted, report.lacking) == (False, COMPANIES)
    assert promote(index, candidate, gate=None).promoted


def test_the_first_generation_can_be_promoted_by_hand(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "new.db")) as index:
        index.create_generation(make_generation("first"))
        assert live_name(index) is None
        assert promote(index, "first", gate=passing).replaces is None
        assert live_name(index) == "first"


def test_nothing_is_promoted_or_removed_while_a_reembed_runs(index: SqliteIndex, candidate: str) -> None:
    index.take_lease("reembed", holder="another", seconds=60)
    for step in (lambda: promote(index, candidate, gate=passing), lambda: retire(index, candidate)):
        with pytest.raises(LeaseHeld, match="another"):
            step()
    assert names(index.generations()) == ["first", candidate]


def test_what_is_live_is_not_promoted_and_what_is_unknown_is_said(index: SqliteIndex) -> None:
    with pytest.raises(GenerationConflict, match="generation first is live"):
        promote(index, "first", gate=None)
    with pytest.raises(UnknownGeneration):
        promote(index, "nothing", gate=None)


def test_a_rollback_is_told_before_it_happens(index: SqliteIndex, candidate: str) -> None:
    with pytest.raises(GenerationConflict, match="nothing to go back to"):
        rollback_plan(index)
    promote(index, candidate, gate=None)
    assert (rollback_plan(index).target, rollback_plan(index).lacking) == ("first", 0)
    index.upsert(candidate, [DeletedCompany(id="c01", version=9)])
    assert (rollback_plan(index).lacking, rollback_plan(index).lacks) == (1, ("c01",))
    assert live_name(index) == candidate


def test_a_second_rollback_is_refused_and_a_promotion_goes_forward_again(index: SqliteIndex, candidate: str) -> None:
    promote(index, candidate, gate=None)
    assert rollback(index).name == "first"
    for again in (rollback, rollback_plan):
        with pytest.raises(GenerationConflict, match=f"generations promote {candidate} --without-gate$"):
            again(index)
    assert live_name(index) == "first"
    assert not promote(index, candidate, gate=refusing).promoted
    assert not promote(index, candidate, gate=None, dry_run=True).promoted
    assert live_name(index) == "first"
    assert promote(index, candidate, gate=None).promoted
    assert live_name(index) == candidate
    assert rollback(index).name == "first"


def test_after_a_rollback_an_even_older_generation_is_reached_by_retiring(index: SqliteIndex, candidate: str) -> None:
    promote(index, candidate, gate=None)
    third = copy_generation(index, now=LATER, options=options(Clock(), promote=False)).generation
    promote(index, third, gate=None)
    assert rollback(index).name == candidate
    with pytest.raises(GenerationConflict, match=f"only {third} can be made live again"):
        promote(index, "first", gate=None)
    with pytest.raises(GenerationConflict, match=f"To go back to first: retire {third}, then roll back$"):
        rollback(index)
    retire(index, third)
    assert rollback(index).name == "first"


def test_a_generation_that_was_rolled_back_and_lacks_documents_is_not_promoted(
    index: SqliteIndex, candidate: str
) -> None:
    promote(index, candidate, gate=None)
    rollback(index)
    index.upsert("first", [DeletedCompany(id="c01", version=9)])
    report = promote(index, candidate, gate=None)
    assert (report.promoted, live_name(index)) == (False, "first")
    assert "load these companies again" in report.reasons[0]


def test_a_previous_generation_is_removed_even_while_a_reembed_runs(index: SqliteIndex, candidate: str) -> None:
    promote(index, candidate, gate=None)
    index.take_lease("reembed", holder="another", seconds=60)
    retire(index, "first")
    assert names(index.generations()) == [candidate]


@pytest.fixture
def imported(index: SqliteIndex) -> str:
    index.create_generation(make_generation("imported", encoder_id="encoder-1", bundle_id=IMPORTED))
    for batch in index.scan("first"):
        index.upsert("imported", batch)
    return "imported"


def states(index: SqliteIndex) -> dict[str, GenerationState]:
    return {generation.name: generation.state for generation in index.generations()}


def test_an_import_that_was_promoted_after_a_newer_generation_is_left_by_force(
    index: SqliteIndex, imported: str, candidate: str
) -> None:
    promote(index, candidate, gate=None)
    index.upsert(imported, [make_embedded("c01", version=9)])
    assert promote(index, imported, gate=None).promoted
    with pytest.raises(GenerationConflict, match="promoted later: similarity generations rollback --force"):
        rollback(index)
    assert rollback_plan(index, force=True).lacks == ("c01",)
    assert rollback(index, force=True).name == candidate
    assert live_name(index) == candidate


@pytest.mark.parametrize("written", [change("c03", version=9), DeletedCompany(id="c03", version=9)])
def test_a_write_during_the_gate_is_not_lost(index: SqliteIndex, imported: str, written: Change) -> None:
    def gate(old: str | None, new: str) -> GateReport:
        write(index, written)
        return GateReport(passed=True)

    report = promote(index, imported, gate=gate)
    assert (report.promoted, report.lacking, live_name(index)) == (False, 1, "first")
    assert "similarity generations import-vectors FILE --encoder-id encoder-1 --into imported" in report.reasons[0]
    assert states(index)[imported] == "building"
    write(index, change("c04", version=9))  # no candidate remains that writes would have to go to
    assert index.stored_versions(imported, ["c04"])["c04"] < 9


def test_a_promotion_waits_for_writers_that_know_only_the_old_generations(index: SqliteIndex, imported: str) -> None:
    with WriterLease(index) as writer:
        writer.targets()
        with pytest.raises(LeaseHeld, match="1 writers have not acknowledged"):
            promote(index, imported, gate=passing, wait=0)
        assert (live_name(index), states(index)[imported]) == ("first", "building")
    assert promote(index, imported, gate=passing, wait=0).promoted


def test_a_promotion_that_was_killed_leaves_no_candidate_for_long(index: SqliteIndex, imported: str) -> None:
    index.register_candidate(imported)
    running = index.take_lease("reembed", holder="another", seconds=60)
    with pytest.raises(LeaseHeld, match="another"):
        promote(index, imported, gate=refusing)
    index.release_lease(running)
    assert not promote(index, imported, gate=refusing).promoted
    assert states(index)[imported] == "building"
    assert promote(index, imported, gate=passing).promoted


def test_a_generation_that_went_live_during_the_gate_is_not_replaced(
    index: SqliteIndex, candidate: str, imported: str
) -> None:
    def gate(old: str | None, new: str) -> GateReport:
        index.promote(candidate)
        return GateReport(passed=True)

    with pytest.raises(GenerationConflict, match=f"{candidate} went live meanwhile"):
        promote(index, imported, gate=gate)
    assert states(index)[imported] == "building"


REMOVALS = pytest.mark.parametrize(
    "remove", [retire, lambda index, name: prune(index, keep=0, older_than=timedelta(0), now=LATER)]
)


@REMOVALS
def test_two_generations_are_not_removed_at_once(
    index: SqliteIndex, candidate: str, remove: Callable[[SqliteIndex, str], object]
) -> None:
    """Each removal would take the names of both for those of the other, and remember none of them."""
    index.promote(candidate)
    other = index.take_lease(RETIRE, holder="another-removal", seconds=60)
    with pytest.raises(LeaseHeld, match="another-removal"):
        remove(index, "first")
    index.release_lease(other)
    remove(index, "first")
    assert ("first" in states(index), index.leases()) == (False, [])


@REMOVALS
def test_names_that_only_a_removed_generation_held_are_remembered(
    index: SqliteIndex, imported: str, remove: Callable[[SqliteIndex, str], object]
) -> None:
    names = {"only": "Frobnix Tarn", "c01": "Zorvik Blarn"}
    index.upsert(imported, [make_embedded(each, name=name, version=9) for each, name in names.items()])
    index.register_candidate(imported)
    index.promote(imported)
    index.rollback(force=True)
    remove(index, imported)
    assert states(index) == {"first": "live"}
    key = index.ledger.key()
    for company_id, name in names.items():
        assert set(hashes_of(key, {name})) <= index.ledger.remembered(company_id)
    assert index.ledger.remembered("c02") == frozenset()


def test_a_clock_that_was_ahead_changes_no_target_of_a_rollback_or_a_promotion(tmp_path: Path) -> None:
    clock = Clock()
    with closing(opened(tmp_path, clock)) as index:
        for name, seconds in (("first", 0), ("second", 2 * 86_400), ("third", -86_400), ("fourth", 3600)):
            clock.advance(seconds)
            index.create_generation(make_generation(name, created_at=clock()))
            index.register_candidate(name)
            index.promote(name)
        assert rollback_plan(index).target == "third"
        assert prune(index, keep=1, older_than=timedelta(0), now=LATER, dry_run=True) == ["second", "first"]
        with pytest.raises(GenerationConflict, match="third was live after it; only third can be made live again"):
            promote(index, "second", gate=None)
        assert rollback(index).name == live_name(index) == "third"
