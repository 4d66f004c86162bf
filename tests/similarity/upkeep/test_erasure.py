from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep

import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, version_of
from similarity.errors import InvalidCompany, LeaseLost
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.ledger import Compaction, ErasureRecord, ErasureState
from similarity.index.name_hashes import ErasedCompanies
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.renewed_leases import ERASE, RenewedLease
from similarity.upkeep.erasure import WRITTEN_AGAIN, Eraser
from tests.factories import make_embedded, make_generation
from tests.workspace_records import make_shortlist

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "Zyzzyva weevil breeders of Lofthellir"


class WatchedIndex(SqliteIndex):
    """Remembers what was compacted, and what the generation held at that time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.compacted: list[str] = []

    def compact(self, generation: str) -> bool:
        assert all(not self.get(other.name, ["acme"]) for other in self.generations())
        self.compacted.append(generation)
        return super().compact(generation)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[WatchedIndex]:
    """Generations in all four states, each with the company to erase and another."""
    index = WatchedIndex(tmp_path / "index.db")
    fill(index)
    yield index
    index.close()


def fill(index: SqliteIndex) -> None:
    for name in ("previous", "live", "candidate", "building"):
        index.create_generation(make_generation(name))
        if name != "building":
            index.register_candidate(name)
        if name in {"previous", "live"}:
            index.promote(name)
        index.upsert(name, [make_embedded("acme", description=SECRET), make_embedded("other")])


def erase(index: SqliteIndex, company_id: str, *, compact: bool = True) -> ErasureRecord:
    """Erases a company at noon; the record of it."""
    eraser = Eraser(index, clock=lambda: NOW)
    eraser.accept(company_id)
    [record] = eraser.finish(compact=compact)
    return record


def outcomes(record: ErasureRecord) -> dict[str, WriteOutcome]:
    return {name: result.outcome for name, result in record.results.items()}


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_a_company_is_erased_from_every_generation(index: WatchedIndex) -> None:
    record = erase(index, "acme")
    assert outcomes(record) == dict.fromkeys(["previous", "live", "candidate", "building"], WriteOutcome.APPLIED)
    assert (record.state, record.compaction) == (ErasureState.DONE, Compaction.DONE)
    for name in record.results:
        assert set(index.get(name, ["acme", "other"])) == {"other"}
        assert index.stats(name).deleted == 1
    assert sorted(index.compacted) == sorted(record.results)


def test_its_words_leave_the_disk(index: WatchedIndex, tmp_path: Path) -> None:
    assert SECRET.encode() in on_disk(tmp_path)
    erase(index, "acme")
    assert SECRET.encode() not in on_disk(tmp_path)
    assert b"zyzzyva" not in on_disk(tmp_path)
    assert b"acme" in on_disk(tmp_path)  # the tombstone


def test_without_compaction_only_tombstones_are_written(index: WatchedIndex) -> None:
    record = erase(index, "acme", compact=False)
    assert (len(record.results), record.state, record.compaction) == (4, ErasureState.DONE, Compaction.SKIPPED)
    assert index.compacted == []


def test_a_replay_does_not_bring_it_back(index: WatchedIndex) -> None:
    erase(index, "acme", compact=False)
    late = make_embedded("acme", version=version_of(NOW, now=NOW))
    for name in ("previous", "live", "candidate", "building"):
        assert index.upsert(name, [late])[0].outcome is WriteOutcome.SUPERSEDED


def test_a_document_from_a_clock_ahead_is_erased_too(index: WatchedIndex) -> None:
    ahead = NOW + timedelta(minutes=4)
    index.upsert("candidate", [make_embedded("acme", version=version_of(ahead, now=NOW))])
    assert set(outcomes(erase(index, "acme", compact=False)).values()) == {WriteOutcome.APPLIED}
    [tombstone] = [
        document for batch in index.scan("live") for document in batch if isinstance(document, DeletedCompany)
    ]
    assert tombstone == DeletedCompany(id="acme", version=version_of(ahead, now=NOW, deleted=True))


def test_erasing_twice_is_harmless(index: WatchedIndex) -> None:
    erase(index, "acme", compact=False)
    assert set(outcomes(erase(index, "acme")).values()) == {WriteOutcome.UNCHANGED}


def test_an_unknown_company_is_kept_out_too(index: WatchedIndex) -> None:
    assert outcomes(erase(index, "nobody-yet", compact=False))["live"] is WriteOutcome.APPLIED
    early = make_embedded("nobody-yet", version=version_of(NOW - timedelta(days=1), now=NOW))
    assert index.upsert("live", [early])[0].outcome is WriteOutcome.SUPERSEDED


def test_an_impossible_id_writes_nothing(index: WatchedIndex) -> None:
    index.close()  # so that any use of it would fail in another way
    with pytest.raises(InvalidCompany, match="id"):
        erase(index, "not an id")


class RetiringIndex(WatchedIndex):
    """A generation is retired by somebody else just before its tombstone is written."""

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        if generation == "candidate" and isinstance(documents[0], DeletedCompany):
            self.retire(generation)
        return super().upsert(generation, documents)


def test_a_generation_that_is_retired_meanwhile_is_left_out(tmp_path: Path) -> None:
    index = RetiringIndex(tmp_path / "retiring.db")
    fill(index)
    assert set(erase(index, "acme").results) == {"previous", "live", "building"} == set(index.compacted)
    index.close()


class RegisteringIndex(WatchedIndex):
    """A re-embed registers its candidate while the erasure runs."""

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        if isinstance(documents[0], DeletedCompany) and generation == "previous":
            self.register_candidate("building")
            [lease] = self.leases()
            assert lease.acknowledged < self.revision()
        return super().upsert(generation, documents)


def test_a_re_embed_that_begins_meanwhile_waits_for_it(tmp_path: Path) -> None:
    index = RegisteringIndex(tmp_path / "registering.db")
    fill(index)
    erase(index, "acme")
    assert index.leases() == []
    index.close()


def test_no_lease_is_left_behind(index: WatchedIndex) -> None:
    erase(index, "acme")
    assert index.leases() == []


def test_an_erasure_that_another_process_ended_is_not_searched_again(tmp_path: Path, index: WatchedIndex) -> None:
    with closing(SqliteWorkspace(tmp_path / "workspace.db")) as workspace, ThreadPoolExecutor(1) as pool:
        eraser = Eraser(index, workspace, clock=lambda: NOW)
        accepted = eraser.accept("acme")
        with RenewedLease(index, ERASE):
            waiting = pool.submit(eraser.finish)
            sleep(0.5)  # until it waits
            index.ledger.save_erasure(replace(accepted, state=ErasureState.DONE))
            kept = make_shortlist("written again", "acme", "other")
            workspace.save_list(kept)
        assert waiting.result() == []
        assert workspace.lists() == [kept]


def test_what_is_said_of_a_company_that_was_written_again_stays(tmp_path: Path, index: WatchedIndex) -> None:
    with closing(SqliteWorkspace(tmp_path / "workspace.db")) as workspace:
        eraser = Eraser(index, workspace, clock=lambda: NOW)
        accepted = eraser.accept("acme")
        index.upsert("live", [make_embedded("acme", version=accepted.version + 2)])
        kept = make_shortlist("written again", "acme", "other")
        workspace.save_list(kept)
        eraser.forget_running(set())
        [record] = eraser.finish()
        assert (record.state, record.problem) == (ErasureState.FAILED, WRITTEN_AGAIN)
        assert workspace.lists() == [kept]


def test_what_is_said_of_a_company_that_is_written_again_during_the_search_stays(
    tmp_path: Path, index: WatchedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison of many notes takes minutes."""
    with closing(SqliteWorkspace(tmp_path / "workspace.db")) as workspace:
        eraser = Eraser(index, workspace, clock=lambda: NOW)
        versions = [eraser.accept(each).version for each in ("acme", "other")]
        workspace.save_list(make_shortlist("partners", "acme", "other", "third"))
        compare = SqliteWorkspace._compare_texts

        def written_again(searched: SqliteWorkspace, companies: ErasedCompanies) -> int:
            index.upsert("live", [make_embedded("acme", version=versions[0] + 2)])
            return compare(searched, companies)

        monkeypatch.setattr(SqliteWorkspace, "_compare_texts", written_again)
        records = {each.id: each for each in eraser.finish(compact=False)}
        assert (records["acme"].problem, records["other"].state) == (WRITTEN_AGAIN, ErasureState.DONE)
        assert workspace.saved_list("partners").companies == ("acme", "third")


def test_who_was_stopped_until_the_lease_ended_changes_no_list(tmp_path: Path, index: WatchedIndex) -> None:
    with closing(SqliteWorkspace(tmp_path / "workspace.db")) as workspace:
        workspace.save_list(make_shortlist("partners", "acme"))

        def lost(ids: Collection[str]) -> None:
            raise LeaseLost(f"lost for {ids}")

        with pytest.raises(LeaseLost):
            workspace.forget_companies(ErasedCompanies(b"key", {"acme": frozenset()}, require=lost))
        assert workspace.saved_list("partners").companies == ("acme",)


def test_an_erasure_without_its_lease_changes_nothing(tmp_path: Path, index: WatchedIndex) -> None:
    lease = RenewedLease(index, ERASE, seconds=0.2)
    with pytest.raises(LeaseLost, match="could not be renewed in time"):
        lease.require()
    with lease:
        lease.require()
        index.release_lease(lease.held())
        sleep(0.3)
        with pytest.raises(LeaseLost):
            lease.require()
