"""Rows without an event time: what they replace, and what they give way to."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, utc_now, version_of
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.load import load_file
from similarity.ingest.messages import Message, decode
from similarity.ingest.records import Columns
from similarity.ingest.rejects import LoadReport, RejectsFile
from similarity.ingest.renewed_leases import LoadLease
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from tests.contract.steps import add_candidate, add_live, outcomes
from tests.factories import ENCODER_ID, make_embedded
from tests.fakes import CountingEncoder
from tests.similarity.generations.staging import SecondEncoder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACME = {"id": "acme", "name": "Acme", "description": "Makes anvils."}
ENCODERS = {ENCODER_ID: CountingEncoder(), "encoder-2": SecondEncoder()}


class Contended(SqliteIndex):
    """Another writer is faster every time; its version is `ahead` of the newest one in the batch."""

    contended = False
    ahead = 10

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        if self.contended:
            newest = max(document.version for document in documents)
            for document in documents:
                super().upsert(generation, [make_embedded(document.id, version=newest // 2 * 2 + self.ahead)])
        return super().upsert(generation, documents)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Contended]:
    with closing(Contended(tmp_path / "index.db")) as index:
        add_live(index, "first")
        yield index


def ahead(days: float = 1) -> int:
    """A version that lies ahead of the clock."""
    time = utc_now() + timedelta(days=days)
    return version_of(time, now=time)


def load(index: SqliteIndex, *records: object, sync: bool = False, now: datetime = NOW) -> LoadReport:
    path = index.path.with_name("companies.jsonl")
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with LoadLease(index) as lease, RejectsFile(path.with_name("rejects.jsonl")) as rejects:
        return load_file(
            path, lease=lease, encoders=ENCODERS, columns=Columns(attributes={"size": "size"}), rejects=rejects,
            now=now, sync=sync, force=sync,
        )  # fmt: skip


def test_a_row_replaces_what_a_wrong_clock_wrote(index: SqliteIndex) -> None:
    future = ahead()
    index.upsert("first", [make_embedded("acme", version=future)])
    assert load(index, ACME).outcomes == {WriteOutcome.APPLIED: 1}
    assert index.get("first", ["acme"])["acme"].company.name == "Acme"
    assert load(index, {**ACME, "deleted": True}).outcomes == {WriteOutcome.APPLIED: 1}
    assert index.stored_versions("first", ["acme"]) == {"acme": future + 3}


def test_a_row_with_an_event_time_gives_way(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded("acme", version=ahead())])
    assert load(index, {**ACME, "event_time": NOW.isoformat()}).outcomes == {WriteOutcome.SUPERSEDED: 1}


def test_a_row_gives_way_to_what_was_written_since_the_run_began(index: SqliteIndex) -> None:
    since = {"acme": version_of(NOW + timedelta(seconds=1), now=NOW), "kept": ahead(days=1 / 24 / 60)}
    index.upsert("first", [make_embedded(company_id, version=version) for company_id, version in since.items()])
    report = load(index, ACME, sync=True)
    assert (report.outcomes, report.deleted) == ({WriteOutcome.SUPERSEDED: 1}, 0)
    assert report.notes == ["1 companies that the file lacks stay: they are newer than this load"]
    assert index.stored_versions("first", ["acme", "kept"]) == since


def test_a_sync_deletes_what_a_wrong_clock_wrote(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded("frozen", version=ahead())])
    assert load(index, ACME, sync=True).deleted == 1
    assert index.get("first", ["frozen"]) == {}


@pytest.mark.parametrize(("versions_ahead", "final"), [(10, WriteOutcome.SUPERSEDED), (0, WriteOutcome.REJECTED)])
def test_a_row_that_others_overtake_at_every_attempt_has_failed(
    index: Contended, versions_ahead: int, final: WriteOutcome
) -> None:
    index.upsert("first", [make_embedded("acme", version=ahead()), make_embedded("b")])
    index.contended, index.ahead = True, versions_ahead
    report = load(index, ACME, {**ACME, "id": "b"})
    assert report.outcomes == {WriteOutcome.FAILED: 1, final: 1}


def test_a_raised_change_has_one_version_in_every_generation(index: SqliteIndex) -> None:
    add_candidate(index, "second", encoder_id="encoder-2")
    future = ahead()
    index.upsert("second", [make_embedded("acme", version=future, encoder_id="encoder-2")])
    assert load(index, ACME).outcomes == {WriteOutcome.APPLIED: 1}
    stored = [index.stored_versions(name, ["acme"])["acme"] for name in ("first", "second")]
    assert stored == [future + 2] * 2


def test_a_message_that_is_read_again_gives_way(index: SqliteIndex) -> None:
    """Its time is the topic's: a replay must not replace what was written since."""
    index.upsert("first", [make_embedded("acme", version=ahead())])
    messages = [
        Message(position=str(number), key=b"acme", value=value, time=NOW)
        for number, value in enumerate([json.dumps(ACME).encode(), b'{"id": "acme", "deleted": true}', None])
    ]
    with WriterLease(index) as writer:
        results = write_changes(writer, ENCODERS, [decode(message).change for message in messages], now=NOW)
    assert outcomes(results) == [WriteOutcome.SUPERSEDED] * 3


def test_a_load_without_a_change_writes_nothing_and_says_so(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {"id": "gone", "deleted": True}
    load(index, ACME, gone)
    load(index, ACME, {**ACME, "id": "b"}, gone)
    before = index.stored_versions("first", ["acme", "b", "gone"])
    monkeypatch.setattr(index, "upsert", None)  # any write would fail
    report = load(index, ACME, gone, {**ACME, "id": "b"})
    assert report.outcomes == {WriteOutcome.UNCHANGED: 3}
    assert index.stored_versions("first", ["acme", "b", "gone"]) == before


@pytest.mark.parametrize("other", [{"deleted": True}, {"name": "Other", "event_time": "2025-12-31T00:00:00Z"}])
def test_a_repeated_load_leaves_the_same_of_several_rows_of_a_company(
    index: SqliteIndex, other: dict[str, object]
) -> None:
    """A row with the stored content was skipped, although it or another row of its company decides."""
    before = {**ACME, "event_time": "2025-12-01T00:00:00Z"}
    load(index, before, now=NOW - timedelta(days=1))
    found = []
    for seconds in range(3):
        load(index, ACME, {**ACME, **other}, now=NOW + timedelta(seconds=seconds))
        found.append({each: stored.company.name for each, stored in index.get("first", ["acme"]).items()})
    assert found == [{} if "deleted" in other else {"acme": "Acme"}] * 3


def test_a_load_writes_where_a_generation_lacks_the_company_or_its_version(index: SqliteIndex) -> None:
    load(index, ACME)
    add_candidate(index, "second", encoder_id="encoder-2")
    assert load(index, ACME, now=NOW + timedelta(seconds=1)).outcomes == {WriteOutcome.APPLIED: 1}
    assert index.get("second", ["acme"])["acme"].company.name == "Acme"
    assert load(index, ACME, now=NOW + timedelta(seconds=2)).outcomes == {WriteOutcome.UNCHANGED: 1}


def test_a_load_writes_what_differs_only_in_the_type_of_a_value(index: SqliteIndex) -> None:
    for now, size in enumerate([1, True, True]):
        report = load(index, {**ACME, "size": size}, now=NOW + timedelta(seconds=now))
    assert report.outcomes == {WriteOutcome.UNCHANGED: 1}
    assert index.get("first", ["acme"])["acme"].company.attributes == {"size": True}


def test_a_message_without_a_change_still_raises_the_version(index: SqliteIndex) -> None:
    """Only rows of a load have no order in time to other writes."""
    load(index, ACME)
    later = NOW + timedelta(minutes=1)
    change = decode(Message(position="1", key=b"acme", value=json.dumps(ACME).encode(), time=later)).change
    with WriterLease(index) as writer:
        assert outcomes(write_changes(writer, ENCODERS, [change], now=later)) == [WriteOutcome.APPLIED]
