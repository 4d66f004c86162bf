"""The erasure ledger: hashes of former names by company, and the last erasure of each."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from similarity.index.ledger import KEY_BYTES, Compaction, ErasureRecord, ErasureState
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORD = ErasureRecord(
    id="acme",
    version=2**52 + 1,
    requested_at=NOON,
    published=True,
    results={"first": WriteResult(id="acme", outcome=WriteOutcome.APPLIED)},
    forgotten={"events": 3},
    problem="waits",
)


def test_the_key_is_made_once(open_index: Callable[[], CompanyIndex]) -> None:
    index, other = open_index(), open_index()
    assert len(index.ledger.key()) == KEY_BYTES
    assert index.ledger.key() == index.ledger.key() != other.ledger.key()


def test_nothing_is_remembered_at_first(index: CompanyIndex) -> None:
    assert index.ledger.remembered("acme") == frozenset()
    assert index.ledger.erasure("acme") is None
    assert index.ledger.running_erasures() == []
    index.ledger.forget("acme", ["1:a"])


def test_hashes_are_kept_by_company_until_they_are_forgotten(index: CompanyIndex) -> None:
    for _ in range(2):
        index.ledger.remember({"acme": ["1:a", "2:b"], "Acme": ["1:a"], "other": []})
    index.ledger.remember({"acme": {"0:c"}})
    assert index.ledger.remembered("acme") == {"1:a", "2:b", "0:c"}
    index.ledger.forget("acme", {"1:a", "0:c", "never there"})
    assert index.ledger.remembered("acme") == {"2:b"}
    assert index.ledger.remembered("Acme") == {"1:a"}


def test_many_hashes_of_many_companies_are_kept(index: CompanyIndex) -> None:
    index.ledger.remember({f"c{number}": [f"1:{each}" for each in range(40)] for number in range(60)})
    index.ledger.remember({"c7": [f"2:{each}" for each in range(1500)]})
    assert len(index.ledger.remembered("c7")) == 1540
    index.ledger.forget("c7", index.ledger.remembered("c7"))
    assert index.ledger.remembered("c7") == frozenset()
    assert len(index.ledger.remembered("c8")) == 40


def test_the_last_erasure_of_a_company_is_told_as_it_was_saved(index: CompanyIndex) -> None:
    index.ledger.save_erasure(replace(RECORD, version=1))
    index.ledger.save_erasure(RECORD)
    assert index.ledger.erasure("acme") == RECORD
    assert index.ledger.erasure("Acme") is None


def test_running_erasures_are_listed_by_id(index: CompanyIndex) -> None:
    for company_id in ("b", "a", "c"):
        index.ledger.save_erasure(replace(RECORD, id=company_id))
    done = replace(RECORD, id="c", state=ErasureState.DONE, compaction=Compaction.DONE)
    index.ledger.save_erasure(done)
    index.ledger.save_erasure(replace(RECORD, id="d", state=ErasureState.FAILED))
    assert [record.id for record in index.ledger.running_erasures()] == ["a", "b"]
    assert index.ledger.erasure("c") == done


def test_old_erasures_that_are_done_are_purged(index: CompanyIndex) -> None:
    for company_id, state in (("old", ErasureState.DONE), ("running", ErasureState.RUNNING)):
        index.ledger.save_erasure(replace(RECORD, id=company_id, state=state))
    index.ledger.save_erasure(replace(RECORD, id="new", state=ErasureState.DONE, requested_at=NOON + timedelta(days=1)))
    index.ledger.purge_erasures(before=NOON + timedelta(hours=1))
    known = {name for name in ("old", "running", "new") if index.ledger.erasure(name)}
    assert known == {"running", "new"}


def test_companies_with_an_erasure_are_known_whatever_its_state(index: CompanyIndex) -> None:
    assert index.ledger.erased(["acme"]) == frozenset()
    index.ledger.save_erasure(RECORD)
    index.ledger.save_erasure(replace(RECORD, id="done", state=ErasureState.DONE))
    assert index.ledger.erased(["acme", "Acme", "done", "never"]) == {"acme", "done"}
    assert index.ledger.erased([]) == frozenset()
