import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.errors import EncoderMismatch, IndexUnavailable, InvalidInput, LeaseLost, NoLiveGeneration
from similarity.index.protocol import CompanyIndex, Lease, WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.load import CHUNK_ROWS, load_file
from similarity.ingest.records import Columns
from similarity.ingest.rejects import LoadReport, RejectsFile
from similarity.ingest.renewed_leases import LoadLease
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from tests.contract.steps import add_candidate, add_live
from tests.fakes import CountingEncoder
from tests.similarity.generations.staging import SecondEncoder, Watched

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    yield index
    index.close()


@pytest.fixture
def encoder() -> CountingEncoder:
    return CountingEncoder()


class Refusing(Watched):
    """An index whose store does not take one document, in one generation or in any."""

    def __init__(self, index: CompanyIndex, refused: str = "", *, generation: str = "") -> None:
        super().__init__(index)
        self.refused, self.generation = refused, generation

    def upsert(self, generation: str, documents: Any) -> list[WriteResult]:
        concerned = generation == self.generation or not self.generation
        taken = [document for document in documents if not (concerned and document.id == self.refused)]
        results = {result.id: result for result in self.index.upsert(generation, taken)}
        failed = WriteResult(id=self.refused, outcome=WriteOutcome.FAILED, reason="it is full")
        return [results.get(document.id, failed) for document in documents]


class Loader:
    """Loads lists of records as files, a minute later each time."""

    def __init__(self, folder: Path, index: SqliteIndex, encoder: CountingEncoder) -> None:
        self.folder, self.index, self.encoder = folder, index, encoder
        self.now = NOW
        self.rejects = folder / "rejects.jsonl"
        self.others: dict[str, CountingEncoder] = {}
        self.columns = Columns()

    def file(self, records: list[object]) -> Path:
        path = self.folder / "companies.jsonl"
        path.write_text("".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records))
        return path

    def load(self, records: list[object], *, sync: bool = False, force: bool = False) -> LoadReport:
        self.now += timedelta(minutes=1)
        encoders = {self.encoder.encoder_id: self.encoder, **self.others}
        with LoadLease(self.index) as lease, RejectsFile(self.rejects) as rejects:
            return load_file(
                self.file(records), lease=lease, encoders=encoders, columns=self.columns, rejects=rejects,
                now=self.now, sync=sync, force=force,
            )  # fmt: skip

    def ids(self) -> list[str]:
        return sorted(document.id for batch in self.index.scan("first") for document in batch)

    def companies(self) -> int:
        return self.index.stats("first").companies


@pytest.fixture
def loader(tmp_path: Path, index: SqliteIndex, encoder: CountingEncoder) -> Loader:
    return Loader(tmp_path, index, encoder)


def record(company_id: str, **fields: object) -> object:
    return {"id": company_id, "name": f"Firm {company_id}", "description": f"Makes {company_id} iron things."} | fields


def many(count: int) -> list[object]:
    return [record(f"c{number:03}") for number in range(count)]


def test_every_row_ends_in_exactly_one_outcome(loader: Loader) -> None:
    report = loader.load([record("a"), record("b"), record("", name="x"), "{broken\n", record("a")])
    assert report.rows == 5 == sum(report.outcomes.values())
    assert report.outcomes == {WriteOutcome.APPLIED: 2, WriteOutcome.REJECTED: 2, WriteOutcome.UNCHANGED: 1}
    reasons = [json.loads(line)["reason"] for line in loader.rejects.read_text().splitlines()]
    assert "id: " in reasons[0]
    assert "not JSON" in reasons[1]


def test_two_different_rows_of_one_id_are_a_reject_not_a_silent_choice(loader: Loader) -> None:
    report = loader.load([record("a"), record("a", description="Something else.")])
    assert (report.outcomes[WriteOutcome.APPLIED], report.rejected) == (1, 1)
    assert json.loads(loader.rejects.read_text())["row"] == 2


def test_a_second_load_encodes_nothing(loader: Loader) -> None:
    loader.load(many(5))
    encoded = len(loader.encoder.texts)
    report = loader.load(many(5))
    assert (encoded, len(loader.encoder.texts)) == (5, 5)
    assert report.outcomes == {WriteOutcome.UNCHANGED: 5}


def test_an_older_event_changes_nothing(loader: Loader) -> None:
    loader.load([record("a")])
    report = loader.load([record("a", description="Old words.", event_time="2020-01-01T00:00:00Z")])
    assert report.outcomes == {WriteOutcome.SUPERSEDED: 1}
    assert loader.index.get("first", ["a"])["a"].company.description == "Makes a iron things."


def test_a_sync_deletes_what_the_snapshot_lacks(loader: Loader) -> None:
    loader.load(many(40))
    report = loader.load(many(39), sync=True)
    assert (report.deleted, loader.companies()) == (1, 39)
    assert len(loader.ids()) == 40  # the tombstone stays


def test_a_company_that_a_sync_deleted_comes_back_without_its_old_time(loader: Loader) -> None:
    timed = [record(f"c{number}", event_time="2024-01-01T00:00:00Z") for number in range(40)]
    loader.load(timed, sync=True)
    loader.load(timed[:39], sync=True)
    report = loader.load(timed, sync=True)
    assert (report.stay_deleted, loader.companies()) == (["c39"], 39)
    loader.columns = Columns.from_pairs(["event_time="], [])
    report = loader.load(timed, sync=True)
    assert (report.stay_deleted, loader.companies()) == ([], 40)


def test_a_company_that_its_own_file_deletes_does_not_stay_deleted(loader: Loader) -> None:
    log = [*many(2), record("c5", event_time="2024-01-01T00:00:00Z")]
    log.append({"id": "c5", "event_time": "2024-02-01T00:00:00Z", "deleted": True})
    for _ in range(2):
        assert loader.load(log, sync=True).stay_deleted == []
    log.append(record("c5", event_time="2024-03-01T00:00:00Z"))  # written again
    assert loader.load(log, sync=True).stay_deleted == []
    loader.load([{"id": "c5", "deleted": True}])
    assert loader.load(log, sync=True).stay_deleted == ["c5"]


@pytest.mark.parametrize("column", ["website=", "domain="])
@pytest.mark.parametrize("heading", ["website", "domain"])
def test_websites_that_a_load_leaves_out_are_counted(loader: Loader, column: str, heading: str) -> None:
    rows: list[object] = [{"id": "a", "name": "A", "description": "Makes a iron things.", heading: "gnomes.com"}]
    loader.load(rows)
    loader.columns = Columns.from_pairs([column], [])
    assert loader.load(rows).removed_values == {"domain": 1}


def test_ids_to_delete_that_no_company_has_are_named(loader: Loader) -> None:
    loader.load(many(2))
    report = loader.load([{"id": name, "deleted": True} for name in ("c001", "typo")])
    assert report.notes == ["1 of the ids to delete have no company: typo"]


def test_a_sync_deletes_no_company_of_a_file_that_was_replaced_while_it_was_compared(loader: Loader) -> None:
    loader.load(many(40))

    def replace_file(call: int) -> None:
        loader.file(many(40))

    loader.index = cast("Any", Watched(loader.index, replace_file))
    assert loader.load(many(39), sync=True).deleted == 0


def test_a_sync_that_would_delete_much_writes_nothing(loader: Loader) -> None:
    loader.load(many(40))
    told = r"lacks 10 of 40 companies, more than 5 %, such as \w+; 1 of its ids are new, such as new; nothing was"
    with pytest.raises(InvalidInput, match=told):
        loader.load([*many(30), record("new")], sync=True)
    assert loader.companies() == 40
    assert loader.load(many(30), sync=True, force=True).deleted == 10


def test_a_sync_keeps_companies_whose_row_was_rejected(loader: Loader) -> None:
    loader.load(many(40))
    report = loader.load([*many(39), record("c039", description="")], sync=True)
    assert (report.rejected, report.deleted, loader.companies()) == (1, 0, 40)


@pytest.mark.parametrize(
    "row", ['"",Firm,Makes things.', " ,Firm,Makes things.", "Firm 39, Inc.,Makes 39 things.,c039", 'c039,"Firm'],
)  # fmt: skip
def test_a_sync_refuses_to_guess_whose_row_an_odd_one_is(loader: Loader, row: str) -> None:
    loader.load(many(40))
    snapshot = loader.folder / "snapshot.csv"
    rows = [f"c{number:03},Firm c{number:03},Makes c{number:03} things." for number in range(39)]
    snapshot.write_text("\n".join(["ticker,name,description", *rows, row]))
    with (
        LoadLease(loader.index) as lease,
        RejectsFile(loader.rejects) as rejects,
        pytest.raises(InvalidInput, match="row 40 has no usable id"),
    ):
        load_file(
            snapshot, sync=True, lease=lease, encoders={"encoder-1": loader.encoder},
            columns=Columns(fields={"id": "ticker"}), rejects=rejects, now=NOW + timedelta(minutes=5),
        )  # fmt: skip
    assert loader.companies() == 40


@pytest.mark.parametrize("company_id", [["c039"], "c039\u200b", "c 039", {"$oid": "c039"}, False, None])
def test_a_sync_deletes_nothing_if_an_id_in_the_snapshot_is_not_usable(loader: Loader, company_id: object) -> None:
    loader.load(many(40))
    with pytest.raises(InvalidInput, match=r"row 40 has no usable id.*row 41 has no usable id"):
        loader.load([*many(39), *2 * [record("c039", id=company_id)]], sync=True)
    assert loader.companies() == 40


@pytest.mark.parametrize("force", [False, True])
def test_a_sync_of_a_file_without_a_usable_row_deletes_nothing(loader: Loader, force: bool) -> None:
    loader.load(many(3))
    with pytest.raises(InvalidInput, match=r"no row of .* can be used.*2 rows were rejected.*row 1: name: is empty"):
        loader.load([record("new", name=""), record("c000", name="")], sync=True, force=force)
    assert len(loader.rejects.read_text().splitlines()) == 2
    for rows in ([record("c000"), record("", name="x")], []):
        with pytest.raises(InvalidInput, match=r"row 2 has no usable id|has column names but no rows"):
            loader.load(rows, sync=True, force=force)
    assert loader.companies() == 3


def test_values_that_were_left_out_are_counted_by_field(loader: Loader) -> None:
    report = loader.load([record("a", website="http://"), record("b", website="http://"), record("c")])
    assert report.ignored_values == {"domain": 2}


def test_values_that_companies_lose_for_want_of_a_column_are_counted_by_field(loader: Loader) -> None:
    loader.columns = Columns(attributes={"staff": "staff"})
    facts = {"country": "Spain", "website": "a.com", "tags": "x;y", "staff": 7}
    loader.load([record(each, **facts) for each in "abcd"])
    for attributes, rows, removed in [
        # The columns are there: the values are gone on purpose.
        ({"staff": "staff"}, [record("a", country="", domain="", tags="", staff="")], {}),
        ({"staff": "staff"}, [record("b", **facts), record("c", **facts | {"country": "Chile"})], {}),
        ({}, [record("b", **facts), record("c", website="c.com")], {"attributes.staff": 2, "country": 1, "tags": 1}),
        ({}, [record("d"), record("new")], {"attributes.staff": 1, "country": 1, "domain": 1, "tags": 1}),
        ({}, [record("d", event_time="2020-01-01T00:00:00Z")], {}),  # superseded
    ]:
        loader.columns = Columns(attributes=attributes)
        assert loader.load(rows).removed_values == removed


def test_stored_values_that_invalid_ones_replace_are_counted_by_field(loader: Loader) -> None:
    loader.columns = Columns.from_pairs([], ["staff:number"])
    loader.load([record("a", staff="7", website="a.com"), record("b", staff="7"), record("c")])
    rows = [record("a", staff="many", website="http://"), record("b", staff="1.200"), record("c", staff="many")]
    report = loader.load(rows)
    assert report.lost_to_invalid_values == {"attributes.staff": 1, "domain": 1}
    assert not report.removed_values
    assert loader.load([record("b", staff="")]).lost_to_invalid_values == {}


def test_progress_counts_rejected_rows_too(loader: Loader) -> None:
    seen: list[int] = []
    path = loader.file([record("a"), record("")])
    with LoadLease(loader.index) as lease, RejectsFile(loader.rejects) as rejects:
        load_file(
            path, lease=lease, encoders={"encoder-1": loader.encoder}, columns=Columns(), rejects=rejects,
            now=NOW, on_rows=seen.append,
        )  # fmt: skip
    assert sum(seen) == 2


def test_writes_go_to_every_generation_that_must_have_them(loader: Loader) -> None:
    add_candidate(loader.index, "second")
    loader.load([record("a")])
    assert set(loader.index.get("first", ["a"])) == set(loader.index.get("second", ["a"])) == {"a"}


def test_a_missing_encoder_is_noticed_before_anything_is_written(loader: Loader) -> None:
    add_candidate(loader.index, "second", encoder_id="encoder-2")
    with pytest.raises(EncoderMismatch, match=r"generation second .* holds vectors of encoder encoder-2"):
        loader.load([record("a")])
    assert loader.companies() == 0


def test_a_text_is_encoded_once_for_all_generations_of_its_encoder(loader: Loader) -> None:
    add_candidate(loader.index, "second")
    loader.load([record("a")])
    loader.load([record("a", description="Makes other iron things.")])
    assert len(loader.encoder.texts) == 2
    first, second = (loader.index.get(name, ["a"])["a"] for name in ("first", "second"))
    assert (first.version, first.text_hash) == (second.version, second.text_hash)
    assert np.array_equal(first.vector, second.vector)


def test_a_text_that_only_one_generation_holds_is_not_encoded_again(loader: Loader) -> None:
    loader.load([record("a")])
    add_candidate(loader.index, "second")
    loader.load([record("a")])
    assert len(loader.encoder.texts) == 1


def test_a_generation_that_appears_while_texts_are_encoded_is_written_to(loader: Loader) -> None:
    class Slow(CountingEncoder):
        def encode(self, texts: Sequence[str], progress: Any = None) -> NDArray[np.float32]:
            if not self.texts:
                add_candidate(loader.index, "second", encoder_id="encoder-2")
            return super().encode(texts)

    loader.encoder = Slow()
    loader.others = {"encoder-2": SecondEncoder()}
    loader.load([record("a")])
    assert set(loader.index.get("second", ["a"])) == {"a"}


def test_a_generation_that_is_retired_while_texts_are_encoded_costs_nothing(loader: Loader) -> None:
    add_candidate(loader.index, "second")
    upsert = loader.index.upsert

    class Retiring(Refusing):
        def upsert(self, generation: str, documents: Any) -> list[WriteResult]:
            if generation == "second":
                loader.index.retire("second")
            return upsert(generation, documents)

    loader.index = cast(SqliteIndex, Retiring(loader.index))
    assert loader.load([record("a")]).outcomes == {WriteOutcome.APPLIED: 1}


def test_rows_that_the_store_did_not_take_are_counted_and_the_rest_is_loaded(loader: Loader) -> None:
    index = loader.index
    loader.index = cast(SqliteIndex, Refusing(index, "a"))
    report = loader.load([record("a"), record("b")])
    assert (report.failed, report.outcomes[WriteOutcome.APPLIED], report.rows) == (1, 1, 2)
    loader.index = index
    assert loader.load([record("a"), record("b")]).failed == 0
    assert loader.ids() == ["a", "b"]


def test_a_change_that_one_generation_did_not_take_has_failed(loader: Loader) -> None:
    add_candidate(loader.index, "second")
    loader.index = cast(SqliteIndex, Refusing(loader.index, "a", generation="second"))
    assert loader.load([record("a"), record("b")]).failed == 1
    assert loader.index.get("first", ["a"])


def test_a_store_that_takes_nothing_stops_the_load(loader: Loader) -> None:
    loader.index = cast(SqliteIndex, Refusing(loader.index, "a"))
    with pytest.raises(
        IndexUnavailable, match=r"accepted none of 1 companies \(it is full\).*Run the same command again"
    ):
        loader.load([record("a")])


def test_deletes_that_the_store_did_not_take_are_counted(loader: Loader) -> None:
    loader.load(many(40))
    loader.index = cast(SqliteIndex, Refusing(loader.index, "c039"))
    report = loader.load(many(38), sync=True)
    assert (report.deleted, report.failed_deletes, report.failed) == (1, 1, 1)


def test_a_load_stops_before_its_next_chunk_if_it_lost_its_lease(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may undo what the load that runs now finds unchanged."""
    lease = LoadLease(loader.index)

    def refuse() -> Lease:
        raise LeaseLost("another load has it")

    def another_takes_over(rows: int) -> None:
        monkeypatch.setattr(lease, "held", refuse)

    with RejectsFile(loader.rejects) as rejects, pytest.raises(LeaseLost), lease:
        load_file(
            loader.file(many(CHUNK_ROWS + 1)), lease=lease, encoders={"encoder-1": loader.encoder}, columns=Columns(),
            rejects=rejects, now=NOW + timedelta(minutes=5), on_rows=another_takes_over,
        )  # fmt: skip
    assert loader.companies() == CHUNK_ROWS


def test_a_load_gives_its_lease_back(loader: Loader) -> None:
    loader.load([record("a")])
    assert loader.index.leases() == []


def test_writing_to_an_empty_index_says_what_to_do(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    with WriterLease(index) as writer, pytest.raises(NoLiveGeneration, match="with: similarity ingest FILE"):
        write_changes(writer, {}, [], now=NOW)
    index.close()
