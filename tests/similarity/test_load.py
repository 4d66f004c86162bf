import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from similarity.errors import EncoderMismatch, InvalidInput, NoLiveGeneration
from similarity.files import RejectsFile
from similarity.index.protocol import WriteOutcome
from similarity.index.sqlite import SqliteIndex
from similarity.ingest import Columns, write_changes
from similarity.load import LoadReport, check_columns, load_file, sync_file
from tests.factories import make_generation
from tests.fakes import CountingEncoder

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    index.create_generation(make_generation("first"))
    index.register_candidate("first")
    index.promote("first")
    yield index
    index.close()


@pytest.fixture
def encoder() -> CountingEncoder:
    return CountingEncoder()


class Loader:
    """Loads lists of records as files, a minute later each time."""

    def __init__(self, folder: Path, index: SqliteIndex, encoder: CountingEncoder) -> None:
        self.folder, self.index, self.encoder = folder, index, encoder
        self.now = NOW
        self.rejects = folder / "rejects.jsonl"

    def file(self, records: list[object]) -> Path:
        path = self.folder / "companies.jsonl"
        path.write_text("".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records))
        return path

    def load(self, records: list[object], *, sync: bool = False, force: bool = False) -> LoadReport:
        self.now += timedelta(minutes=1)
        encoders = {self.encoder.encoder_id: self.encoder}
        with RejectsFile(self.rejects) as rejects:
            if sync:
                return sync_file(
                    self.file(records), index=self.index, encoders=encoders, columns=Columns(), rejects=rejects,
                    now=self.now, force=force,
                )  # fmt: skip
            return load_file(
                self.file(records),
                index=self.index,
                encoders=encoders,
                columns=Columns(),
                rejects=rejects,
                now=self.now,
            )

    def ids(self) -> list[str]:
        return sorted(document.id for batch in self.index.scan("first") for document in batch)

    def companies(self) -> int:
        return self.index.stats("first").companies


@pytest.fixture
def loader(tmp_path: Path, index: SqliteIndex, encoder: CountingEncoder) -> Loader:
    return Loader(tmp_path, index, encoder)


def record(company_id: str, **fields: object) -> object:
    return {"id": company_id, "name": f"Firm {company_id}", "description": f"Makes {company_id} things."} | fields


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
    assert report.outcomes == {WriteOutcome.APPLIED: 5}


def test_an_older_event_changes_nothing(loader: Loader) -> None:
    loader.load([record("a")])
    report = loader.load([record("a", description="Old words.", event_time="2020-01-01T00:00:00Z")])
    assert report.outcomes == {WriteOutcome.SUPERSEDED: 1}
    assert loader.index.get("first", ["a"])["a"].company.description == "Makes a things."


def test_a_sync_deletes_what_the_snapshot_lacks(loader: Loader) -> None:
    loader.load(many(40))
    report = loader.load(many(39), sync=True)
    assert (report.deleted, loader.companies()) == (1, 39)
    assert len(loader.ids()) == 40  # the tombstone stays


def test_a_sync_that_would_delete_much_writes_nothing(loader: Loader) -> None:
    loader.load(many(40))
    with pytest.raises(InvalidInput, match="lacks 10 of 40 companies, more than 5 %"):
        loader.load([*many(30), record("new")], sync=True)
    assert loader.companies() == 40
    assert loader.load(many(30), sync=True, force=True).deleted == 10


def test_a_sync_keeps_companies_whose_row_was_rejected(loader: Loader) -> None:
    loader.load(many(40))
    report = loader.load([*many(39), record("c039", description="")], sync=True)
    assert (report.rejected, report.deleted, loader.companies()) == (1, 0, 40)


def test_a_sync_refuses_to_guess_when_a_row_has_no_id(loader: Loader) -> None:
    loader.load(many(40))
    with pytest.raises(InvalidInput, match="row 40 does not say which company it is"):
        loader.load([*many(39), "{broken\n"], sync=True)
    assert loader.companies() == 40


def test_progress_counts_rejected_rows_too(loader: Loader) -> None:
    seen: list[int] = []
    path = loader.file([record("a"), record("")])
    with RejectsFile(loader.rejects) as rejects:
        load_file(
            path, index=loader.index, encoders={"encoder-1": loader.encoder}, columns=Columns(), rejects=rejects,
            now=NOW, on_rows=seen.append,
        )  # fmt: skip
    assert sum(seen) == 2


def test_writes_go_to_every_generation_that_must_have_them(loader: Loader) -> None:
    loader.index.create_generation(make_generation("second"))
    loader.index.register_candidate("second")
    loader.load([record("a")])
    assert set(loader.index.get("first", ["a"])) == set(loader.index.get("second", ["a"])) == {"a"}


def test_a_missing_encoder_is_noticed_before_anything_is_written(loader: Loader) -> None:
    loader.index.create_generation(make_generation("second", encoder_id="encoder-2"))
    loader.index.register_candidate("second")
    with pytest.raises(EncoderMismatch, match=r"generation second .* holds vectors of encoder encoder-2"):
        loader.load([record("a")])
    assert loader.companies() == 0


def test_writing_to_an_empty_index_says_what_to_do(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    with pytest.raises(NoLiveGeneration, match="create one"):
        write_changes(index, {}, [], now=NOW)
    index.close()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(), "Say --column name=COLUMN; the file has the columns: id, title, description"),
        (Columns(fields={"name": "nam"}), "no column 'nam' for name"),
        (Columns(fields={"nmae": "title"}), "'nmae' is not a company field"),
        (Columns(fields={"name": "title"}, attributes={"size": "employees"}), "no column 'employees' for size"),
    ],
)
def test_columns_are_checked_before_the_first_row(tmp_path: Path, columns: Columns, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,title,description\n1,a,b\n")
    with pytest.raises(InvalidInput, match=message):
        check_columns(path, columns)
