"""An erasure finds the names that a company had, and completes what was cut short."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.company import Company, DeletedCompany, EmbeddedCompany, version_of
from similarity.errors import IndexUnavailable
from similarity.feedback.protocol import Forgotten
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.ledger import ErasureState
from similarity.index.name_hashes import ErasedCompanies
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Change, VersionedCompany
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.upkeep.erasure import DELETE_REFUSED, STORE_UNAVAILABLE, WRITTEN_AGAIN, Eraser
from tests.contract.steps import add_candidate, add_live
from tests.factories import ENCODER_ID, make_embedded
from tests.fakes import CountingEncoder
from tests.workspace_records import make_event, make_list

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=2)
ACME = Company(
    id="c1", name="Zyzzyva GmbH", description="Makes anvils.", aliases=("Zyz Works",), domain="zyzzyva.example"
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "live")
    yield index
    index.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[SqliteWorkspace]:
    """Lists and a note that name the company by each of its names."""
    workspace = SqliteWorkspace(tmp_path / "index.db.workspace")
    workspace.add_event(make_event("note", anchor="nike", note="as zyzzyva does"))
    workspace.save_list(make_list("by exclusion", exclude=["Zyzzyva GmbH", "zyz works", "https://zyzzyva.example/x"]))
    workspace.save_list(make_list("by text", negatives=[{"text": "not like Zyz Works"}]))
    yield workspace
    workspace.close()


def write(index: SqliteIndex, *companies: Company | str, at: datetime = NOON) -> None:
    """Writes companies, and deletes those that are named by their id alone."""
    changes: list[Change] = [
        DeletedCompany(id=each, version=version_of(at, now=at, deleted=True))
        if isinstance(each, str)
        else VersionedCompany(company=each, version=version_of(at, now=at))
        for each in companies
    ]
    with WriterLease(index) as writer:
        write_changes(writer, {ENCODER_ID: CountingEncoder()}, changes, now=at)


def eraser(index: SqliteIndex, workspace: SqliteWorkspace, *, at: datetime = NOON) -> Eraser:
    return Eraser(index, workspace, clock=lambda: at + timedelta(hours=1))


def erase(index: SqliteIndex, workspace: SqliteWorkspace) -> dict[str, int]:
    """Erases the company; how much was forgotten."""
    its_eraser = eraser(index, workspace)
    its_eraser.accept("c1")
    [record] = its_eraser.finish()
    assert record.state is ErasureState.DONE
    return dict(record.forgotten)


ALL = {"events": 0, "lists": 2, "looks": 0, "notes": 1}


def test_the_names_of_a_company_are_found(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    write(index, ACME)
    assert erase(index, workspace) == ALL
    assert workspace.saved_list("by exclusion").question["exclude"] == []
    assert index.ledger.remembered("c1") == frozenset()


def test_a_name_of_another_company_is_kept_before_the_first_generation_is_live(
    tmp_path: Path, workspace: SqliteWorkspace
) -> None:
    with closing(SqliteIndex(tmp_path / "new.db")) as index:
        add_candidate(index, "first")
        index.upsert("first", [make_embedded(each, name="Zyzzyva GmbH") for each in ("c1", "c2")])
        erase(index, workspace)
    assert "Zyzzyva GmbH" in workspace.saved_list("by exclusion").question["exclude"]


def test_a_delete_does_not_forget_the_names_that_an_erasure_looks_for(
    index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    write(index, ACME)
    write(index, "c1", at=NOON + timedelta(minutes=1))
    assert index.get("live", ["c1"]) == {}
    assert erase(index, workspace) == ALL


def test_names_from_before_a_rename_are_found(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    write(index, ACME)
    write(index, replace(ACME, name="Other", aliases=(), domain=""), at=NOON + timedelta(minutes=1))
    assert erase(index, workspace) == ALL


def test_names_between_two_renames_of_one_batch_are_found(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    changes = [
        VersionedCompany(company=each, version=version_of(NOON + timedelta(seconds=second), now=NOON))
        for second, each in enumerate([ACME, replace(ACME, name="Other", aliases=(), domain="")])
    ]
    with WriterLease(index) as writer:
        write_changes(writer, {ENCODER_ID: CountingEncoder()}, changes, now=NOON + timedelta(minutes=1))
    assert erase(index, workspace) == ALL


class InterruptedEncoder(CountingEncoder):
    """Another process writes while this encoder works for the first time."""

    def __init__(self, interruption: Callable[[], None]) -> None:
        super().__init__()
        self.interruptions = [interruption]

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        while self.interruptions:
            self.interruptions.pop()()
        return super().encode(texts, progress)


@pytest.mark.parametrize("is_new", [True, False])
def test_names_that_another_process_writes_meanwhile_are_found(
    index: SqliteIndex, workspace: SqliteWorkspace, *, is_new: bool
) -> None:
    other = replace(ACME, name="Other", aliases=(), domain="")
    if not is_new:
        write(index, replace(other, name="Start"))
    encoder = InterruptedEncoder(lambda: write(index, ACME, at=NOON + timedelta(minutes=1)))
    change = VersionedCompany(company=replace(other, description="Rents."), version=version_of(LATER, now=LATER))
    with WriterLease(index) as writer:
        write_changes(writer, {ENCODER_ID: encoder}, [change], now=LATER)
    assert index.get("live", ["c1"])["c1"].company.name == "Other"
    assert erase(index, workspace) == ALL


def test_what_is_remembered_holds_no_word(index: SqliteIndex, tmp_path: Path) -> None:
    write(index, ACME)
    write(index, "c1", at=NOON + timedelta(minutes=1))
    assert len(index.ledger.remembered("c1")) == 4
    index.compact("live")
    index.close()
    assert not any(word in (tmp_path / "index.db").read_bytes().lower() for word in (b"zyz", b"works"))


def test_the_hashes_of_two_indices_differ(index: SqliteIndex, tmp_path: Path) -> None:
    other = SqliteIndex(tmp_path / "other.db")
    assert len({index.ledger.key(), other.ledger.key(), bytes(32)}) == 3
    other.close()


def test_names_that_stay_cost_no_write(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, Collection[str]]] = []
    monkeypatch.setattr(index.ledger, "remember", asked.append)
    write(index, ACME)
    write(index, replace(ACME, description="Makes hammers."), at=NOON + timedelta(minutes=1))
    assert asked == []
    write(index, replace(ACME, name="Other"), at=NOON + timedelta(minutes=2))
    assert [list(each) for each in asked] == [["c1"]]


def test_a_delete_that_the_ledger_does_not_take_is_not_written(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> None:
        raise IndexUnavailable("away")

    write(index, ACME)
    monkeypatch.setattr(index.ledger, "remember", away)
    with pytest.raises(IndexUnavailable):
        write(index, "c1", at=NOON + timedelta(minutes=1))
    assert "c1" in index.get("live", ["c1"])


class AbsentWorkspace(SqliteWorkspace):
    """A workspace whose store is away for a while."""

    away = ""

    def forget_companies(self, companies: ErasedCompanies) -> dict[str, Forgotten]:
        if self.away == "forgetting":
            raise IndexUnavailable("away")
        return super().forget_companies(companies)

    def compact(self) -> bool:
        if self.away == "compacting":
            raise IndexUnavailable("away")
        return super().compact()


@pytest.mark.parametrize("away", ["forgetting", "compacting"])
def test_a_store_that_is_away_leaves_the_names_for_the_next_attempt(
    index: SqliteIndex, workspace: SqliteWorkspace, tmp_path: Path, away: str
) -> None:
    absent = AbsentWorkspace(tmp_path / "index.db.workspace")
    write(index, ACME)
    absent.away = away
    its_eraser = eraser(index, absent)
    its_eraser.accept("c1")
    with pytest.raises(IndexUnavailable):
        its_eraser.finish()
    record = index.ledger.erasure("c1")
    assert record is not None
    assert (record.state, record.problem, record.is_hidden) == (ErasureState.RUNNING, STORE_UNAVAILABLE, True)
    assert len(index.ledger.remembered("c1")) == 4
    absent.away = ""
    [record] = its_eraser.finish()
    assert (record.state, record.problem, record.forgotten) == (ErasureState.DONE, "", ALL)
    assert index.ledger.remembered("c1") == frozenset()
    absent.close()


class DyingIndex(SqliteIndex):
    """Its process dies when it is to write a tombstone."""

    dies = False

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        if self.dies:
            raise KeyboardInterrupt
        return super().upsert(generation, documents)


def test_an_erasure_that_was_cut_short_is_completed_by_the_next_process(
    tmp_path: Path, workspace: SqliteWorkspace
) -> None:
    dying = DyingIndex(tmp_path / "index.db")
    add_live(dying, "live")
    write(dying, ACME)
    dying.dies = True
    with pytest.raises(KeyboardInterrupt):
        eraser(dying, workspace).accept("c1")
    dying.close()
    index = SqliteIndex(tmp_path / "index.db")
    record = index.ledger.erasure("c1")
    assert record is not None
    assert (record.state, record.is_hidden) == (ErasureState.RUNNING, False)
    assert "c1" in index.get("live", ["c1"])
    [record] = eraser(index, workspace).finish()
    assert (record.state, record.forgotten) == (ErasureState.DONE, ALL)
    assert index.get("live", ["c1"]) == {}
    index.close()


def test_a_company_that_came_back_before_the_erasure_was_completed_is_left_alone(
    index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    write(index, ACME)
    its_eraser = eraser(index, workspace)
    record = its_eraser.accept("c1")
    index.ledger.save_erasure(replace(record, results={}))  # as if the process had died before the tombstones
    index.upsert("live", [make_embedded("c1", version=record.version + 1, name="Zyzzyva GmbH")])
    [record] = its_eraser.finish()
    assert (record.state, record.problem, record.is_hidden) == (ErasureState.FAILED, DELETE_REFUSED, False)
    assert "c1" in index.get("live", ["c1"])
    assert len(index.ledger.remembered("c1")) == 4
    assert erase(index, workspace) == ALL


def test_a_company_that_is_written_again_while_it_is_erased_is_not_called_erased(
    index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    write(index, ACME)
    eraser = Eraser(index, workspace, clock=lambda: NOON + timedelta(days=1))
    assert eraser.accept("c1").is_hidden
    write(index, ACME, at=NOON + timedelta(days=2))
    [record] = eraser.finish()
    assert (record.state, record.is_hidden, record.problem) == (ErasureState.FAILED, False, WRITTEN_AGAIN)
    # The names are kept: the next erasure finds what was written with them.
    write(index, "c1", at=NOON + timedelta(days=3))
    workspace.add_event(make_event("later", anchor="nike", note="as zyzzyva does"))
    eraser = Eraser(index, workspace, clock=lambda: NOON + timedelta(days=4))
    eraser.accept("c1")
    [record] = eraser.finish()
    assert (record.state, record.forgotten["notes"]) == (ErasureState.DONE, 2)


def test_a_write_that_was_received_before_an_erasure_does_not_bring_the_company_back(
    index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    """The whole erasure runs while its text is encoded; it has no event time, so the last to arrive wins."""
    write(index, ACME)

    class Slow(CountingEncoder):
        def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
            assert erase(index, workspace) == ALL
            return super().encode(texts)

    def put(company: Company, *, at: datetime, encoder: CountingEncoder) -> WriteOutcome:
        change = VersionedCompany(company=company, version=version_of(at, now=at), untimed=True)
        with WriterLease(index) as writer:
            [result] = write_changes(writer, {ENCODER_ID: encoder}, [change], now=at)
        return result.outcome

    changed = replace(ACME, description="Makes hammers.")
    assert put(changed, at=NOON + timedelta(minutes=59), encoder=Slow()) is WriteOutcome.SUPERSEDED
    assert index.get("live", ["c1"]) == {}
    assert put(changed, at=NOON + timedelta(minutes=61), encoder=CountingEncoder()) is WriteOutcome.APPLIED


def test_a_company_that_is_erased_again_meanwhile_keeps_its_names_for_that(
    index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(index, ACME)
    its_eraser = eraser(index, workspace)
    its_eraser.accept("c1")
    compact = index.compact

    def erasing_again(generation: str) -> bool:
        monkeypatch.undo()
        eraser(index, workspace, at=NOON + timedelta(minutes=1)).accept("c1")
        return compact(generation)

    monkeypatch.setattr(index, "compact", erasing_again)
    [record] = its_eraser.finish()
    assert record.state is ErasureState.RUNNING
    assert len(index.ledger.remembered("c1")) == 4
    [record] = its_eraser.finish()
    assert record.state is ErasureState.DONE


@pytest.mark.parametrize("is_during_search", [True, False])
def test_names_that_were_given_and_deleted_during_an_erasure_are_found_by_the_next(
    index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch, *, is_during_search: bool
) -> None:
    write(index, replace(ACME, name="Start", aliases=(), domain=""))
    its_eraser = eraser(index, workspace)
    its_eraser.accept("c1")
    after = NOON + timedelta(hours=2)
    write(index, replace(ACME, name="Qvex Boots"), at=after)
    compact = index.compact

    def deleting(generation: str) -> bool:
        write(index, "c1", at=after)
        return compact(generation)

    if is_during_search:
        monkeypatch.setattr(index, "compact", deleting)
    else:
        write(index, "c1", at=after)
    [record] = its_eraser.finish()
    assert (record.state, record.problem) == (ErasureState.FAILED, WRITTEN_AGAIN)
    monkeypatch.undo()
    workspace.add_event(make_event("late", anchor="nike", note="as Qvex Boots does"))
    its_eraser = eraser(index, workspace, at=after)
    its_eraser.accept("c1")
    [record] = its_eraser.finish()
    assert (record.state, record.forgotten["notes"]) == (ErasureState.DONE, 1)
    assert index.ledger.remembered("c1") == frozenset()


def test_a_newer_delete_that_an_erasure_found_is_no_write_meanwhile(
    index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    write(index, ACME)
    write(index, "c1", at=NOON + timedelta(days=9))
    assert erase(index, workspace) == ALL


def test_a_name_that_another_living_company_has_stays_in_lists(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    write(index, ACME, replace(ACME, id="c2", aliases=(), domain=""))
    erase(index, workspace)
    assert workspace.saved_list("by exclusion").question["exclude"] == ["Zyzzyva GmbH"]


def test_one_erasure_can_be_completed_alone(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    its_eraser = eraser(index, workspace)
    for company_id in ("c1", "c2"):
        its_eraser.accept(company_id)
    [record] = its_eraser.finish(only="c1", compact=False)
    assert (record.id, record.state) == ("c1", ErasureState.DONE)
    assert [each.id for each in index.ledger.running_erasures()] == ["c2"]


@pytest.mark.parametrize("moment", ["before the names are read", "before the tombstone is written"])
def test_a_name_that_is_written_while_an_erasure_is_accepted_is_looked_for(
    index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    write(index, ACME)
    workspace.add_event(make_event("late", anchor="nike", note="as Quibblework does"))
    method = "get" if moment == "before the names are read" else "upsert"
    original, late = getattr(index, method), replace(ACME, name="Quibblework")

    def interrupted(generation: str, items: Sequence[object]) -> object:
        if index.ledger.erasure("c1") is not None and not written:
            written.append(True)
            write(index, late, at=NOON + timedelta(minutes=1))
        return original(generation, items)

    written: list[bool] = []
    monkeypatch.setattr(index, method, interrupted)
    erase(index, workspace)
    assert written
    notes = {event.id: event.note for event in workspace.events()}
    assert notes["late"] == ""
