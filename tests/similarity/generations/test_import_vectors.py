import gzip
import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import (
    EncoderMismatch,
    GenerationConflict,
    IndexUnavailable,
    InvalidCompany,
    InvalidInput,
    UnknownGeneration,
)
from similarity.generations.import_vectors import import_target, import_vectors, unit_vector, vector_dimension
from similarity.index.name_hashes import hashes_of
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.load import CHUNK_ROWS
from similarity.ingest.records import Columns
from similarity.ingest.rejects import LoadReport, RejectsFile
from tests.contract.steps import add_live
from tests.factories import make_embedded, make_generation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXTERNAL = "external-openai-3-small"
SIXTY_DEGREES = [0.5, math.sqrt(0.75), 0.0]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    index.create_generation(make_generation("external", dimension=3, encoder_id=EXTERNAL))
    yield index
    index.close()


def record(company_id: str, vector: object, **fields: object) -> dict[str, object]:
    return {
        "id": company_id,
        "name": f"Firm {company_id}",
        "description": f"Makes {company_id} things for people who need them.",
        "vector": vector,
    } | fields


def jsonl(path: Path, records: Sequence[object]) -> Path:
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def run(
    index: SqliteIndex,
    path: Path,
    *,
    columns: Columns | None = None,
    now: datetime = NOW,
) -> LoadReport:
    with RejectsFile(path.parent / "rejects.jsonl") as rejects:
        return import_vectors(
            path, index=index, generation="external", columns=columns or Columns(), rejects=rejects, now=now
        )


def reasons(folder: Path) -> list[str]:
    return [json.loads(line)["reason"] for line in (folder / "rejects.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "vectors",
    [
        pa.FixedSizeListArray.from_arrays(pa.array([1, 0, 0, *SIXTY_DEGREES], pa.float32()), 3),
        pa.array([[1, 0, 0], SIXTY_DEGREES], pa.list_(pa.float32())),
        pa.array([[1, 0, 0], SIXTY_DEGREES], pa.list_(pa.float64())),
        pa.array([[1, 0, 0], SIXTY_DEGREES], pa.large_list(pa.float32())),
    ],
    ids=["fixed_size_list", "list", "double", "large_list"],
)
def test_vectors_come_from_parquet(
    index: SqliteIndex, tmp_path: Path, vectors: "pa.Array[pa.Scalar[pa.DataType]]"
) -> None:
    path = tmp_path / "companies.parquet"
    names = ["Able", "Bold"]
    pq.write_table(pa.table({"id": ["a", "b"], "name": names, "description": names, "vector": vectors}), path)
    report = run(index, path)
    assert report.outcomes == {WriteOutcome.APPLIED: 2}
    stored = index.get("external", ["a", "b"])
    assert stored["a"].vector.tolist() == [1, 0, 0]
    np.testing.assert_allclose(stored["b"].vector, SIXTY_DEGREES, atol=1e-6)
    assert [hit.company.id for hit in index.similar("external", stored["a"].vector, k=2).hits] == ["a", "b"]


@pytest.mark.parametrize("name", ["companies.jsonl", "companies.jsonl.gz"])
def test_a_document_is_what_the_row_says_with_the_stated_encoder(index: SqliteIndex, tmp_path: Path, name: str) -> None:
    row = record("a", [0, 1, 0], country="Iceland", website="https://able.example", employees=7)
    run(index, jsonl(tmp_path / name, [row]), columns=Columns(attributes={"size": "employees"}))
    document = index.get("external", ["a"])["a"]
    assert (document.company.name, document.company.country) == ("Firm a", "Iceland")
    assert (document.company.domain, document.company.attributes) == ("able.example", {"size": 7})
    assert (document.encoder_id, document.embedded_at, document.language) == (EXTERNAL, NOW, "en")


def test_other_columns_can_be_named(index: SqliteIndex, tmp_path: Path) -> None:
    row = {"id": "a", "title": "Able", "description": "Makes anvils.", "vector": [0, 0, 1]}
    path = jsonl(tmp_path / "companies.jsonl", [row])
    report = run(index, path, columns=Columns(fields={"name": "title"}))
    assert report.outcomes == {WriteOutcome.APPLIED: 1}


def test_every_row_ends_in_exactly_one_outcome(index: SqliteIndex, tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "companies.jsonl",
        [
            record("a", [1, 0, 0]),
            record("", [1, 0, 0]),
            "{broken\n",
            record("b", [3, 0, 0]),
            record("c", [1, 0]),
            {"id": "d", "name": "D", "description": "It has no vector."},
            {"id": "e", "deleted": True},
            record("a", [1, 0, 0]),
            record("a", [0, 1, 0]),
            record("f", [0, 1, 0], website="not a host"),
        ],
    )
    report = run(index, path)
    assert report.rows == 10 == sum(report.outcomes.values())
    assert report.outcomes == {WriteOutcome.APPLIED: 3, WriteOutcome.UNCHANGED: 1, WriteOutcome.REJECTED: 6}
    assert report.ignored_values == {"domain": 1}
    found = reasons(tmp_path)
    assert [reason.split(":")[0] for reason in found[:5]] == ["id", "row", "vector", "vector", "vector"]
    assert "has norm 3, not 1; divide each vector by its Euclidean norm" in found[2]
    assert "has 2 numbers; this generation holds 3" in found[3]
    assert "stored with other content" in found[5]
    assert index.stats("external").companies == 2
    assert index.stats("external").deleted == 1


def test_a_row_that_writes_a_company_which_the_file_deletes_is_rejected(index: SqliteIndex, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", [{"id": "a", "deleted": True}, record("a", [1, 0, 0]), record("b", [1, 0, 0])])
    report = run(index, path)
    assert report.outcomes == {WriteOutcome.APPLIED: 2, WriteOutcome.REJECTED: 1}
    assert "row 2 has the same id as row 1" in reasons(tmp_path)[0]
    assert list(index.get("external", ["a", "b"])) == ["b"]


def test_rejected_rows_are_kept_without_their_vectors(index: SqliteIndex, tmp_path: Path) -> None:
    run(index, jsonl(tmp_path / "companies.jsonl", [record("a", [1, 0, 0]), record("b", [3, 0, 0])]))
    [rejected] = (tmp_path / "rejects.jsonl").read_text().splitlines()
    assert json.loads(rejected)["row"] == 2
    assert json.loads(rejected)["record"].keys() == {"id", "name", "description"}


@pytest.mark.parametrize("factor", [0.991, 1.0, 1.009])
def test_a_norm_that_is_rounded_is_divided_out(factor: float) -> None:
    vector = unit_vector([factor * value for value in SIXTY_DEGREES], dimension=3)
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, SIXTY_DEGREES, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([0.98, 0, 0], "norm 0.98"),
        ([1.02, 0, 0], "norm 1.02"),
        ([0, 0, 0], "norm 0"),
        ([math.nan, 1, 0], "not finite"),
        ([math.inf, 1, 0], "not finite"),
        ([1e300, 1e300, 1e300], "norm"),
        ([None, 1, 0], "not finite"),
        ([10**400, 0, 0], "list of numbers"),
        (["x", 1, 0], "list of numbers"),
        ([[1, 0, 0]], "list of numbers"),
        ([[1], [0, 0], 1], "list of numbers"),
        ({"values": [1, 0, 0]}, "list of numbers"),
        ("1 0 0", "list of numbers"),
        (None, "list of numbers"),
        (1.0, "list of numbers"),
        ([], "has 0 numbers"),
    ],
)
def test_an_unusable_vector_is_refused_with_the_reason(value: object, reason: str) -> None:
    with pytest.raises(InvalidCompany, match=f"vector: .*{reason}"):
        unit_vector(value, dimension=3)


def test_a_second_import_of_the_same_run_changes_nothing(index: SqliteIndex, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "companies.jsonl", [record("a", [1, 0, 0]), record("b", [0, 1, 0])])
    run(index, path)
    assert run(index, path).outcomes == {WriteOutcome.UNCHANGED: 2}
    assert run(index, path, now=NOW + timedelta(minutes=1)).outcomes == {WriteOutcome.APPLIED: 2}
    assert run(index, path).outcomes == {WriteOutcome.SUPERSEDED: 2}


def test_a_corrected_vector_is_never_taken_for_the_one_that_is_stored(index: SqliteIndex, tmp_path: Path) -> None:
    dated = record("a", [1, 0, 0], event_time="2025-12-01T00:00:00Z")
    run(index, jsonl(tmp_path / "companies.jsonl", [dated]))
    report = run(index, jsonl(tmp_path / "companies.jsonl", [dated | {"vector": [0, 1, 0]}]))
    assert report.outcomes == {WriteOutcome.REJECTED: 1}
    assert "send this content with a newer version" in reasons(tmp_path)[0]


class FailingIndex(SqliteIndex):
    """Takes only so many documents; the rest fails."""

    takes = 0

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        taken = super().upsert(generation, documents[: self.takes])
        self.takes -= len(taken)
        failed = (
            WriteResult(id=document.id, outcome=WriteOutcome.FAILED, reason="the store is busy")
            for document in documents[len(taken) :]
        )
        return [*taken, *failed]


def test_an_interrupted_import_is_made_good_by_the_next(tmp_path: Path) -> None:
    index = FailingIndex(tmp_path / "failing.db")
    index.create_generation(make_generation("external", dimension=3, encoder_id=EXTERNAL))
    records = [record(f"c{number:04}", [1, 0, 0]) for number in range(CHUNK_ROWS + 10)]
    path = jsonl(tmp_path / "companies.jsonl", records)
    index.takes = CHUNK_ROWS
    with pytest.raises(IndexUnavailable, match=r"none of 10 rows \(the store is busy\)"):
        run(index, path)
    index.takes = CHUNK_ROWS + 4
    report = run(index, path)
    assert report.outcomes == {WriteOutcome.UNCHANGED: CHUNK_ROWS, WriteOutcome.APPLIED: 4, WriteOutcome.FAILED: 6}
    assert not (tmp_path / "rejects.jsonl").exists()
    index.takes = 2 * CHUNK_ROWS
    assert run(index, path).outcomes == {WriteOutcome.UNCHANGED: CHUNK_ROWS + 4, WriteOutcome.APPLIED: 6}
    index.close()


def test_names_that_only_the_live_generation_has_are_remembered_for_erasures(
    index: SqliteIndex, tmp_path: Path
) -> None:
    add_live(index, "live")
    index.upsert("live", [make_embedded("a", name="Old Name"), make_embedded("b", name="Firm b")])
    run(index, jsonl(tmp_path / "companies.jsonl", [record("a", [1, 0, 0]), record("b", [1, 0, 0])]))
    assert index.ledger.remembered("a") >= hashes_of(index.ledger.key(), ["Old Name"])
    assert index.ledger.remembered("b") == frozenset()
    assert index.get("live", ["a"])["a"].company.name == "Old Name"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([record("a", [1, 0])], "have 2 numbers, and generation external holds 3"),
        ([record("a", None)], "no row of .* has a list of numbers in the column 'vector'"),
        ([{"id": "a", "name": "A", "description": "D"}], "no column 'vector'; the file has the columns: id, name"),
        ([{"id": "a", "description": "D", "vector": [1, 0, 0]}], "there is no column 'name'"),
    ],
)
def test_the_file_is_checked_before_anything_is_written(
    index: SqliteIndex, tmp_path: Path, rows: list[object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        run(index, jsonl(tmp_path / "companies.jsonl", rows))
    assert index.stats("external").companies == 0


def test_vectors_in_csv_are_refused(index: SqliteIndex, tmp_path: Path) -> None:
    path = tmp_path / "companies.csv"
    path.write_text('id,name,description,vector\na,A,D,"[1, 0, 0]"\n')
    with pytest.raises(InvalidInput, match="give vectors as Parquet or JSONL"):
        run(index, path)


def test_a_generation_must_be_there_first(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    with pytest.raises(UnknownGeneration, match="external"):
        run(index, jsonl(tmp_path / "companies.jsonl", [record("a", [1, 0, 0])]))
    index.close()


def test_the_dimension_is_that_of_the_first_vector(tmp_path: Path) -> None:
    rows = [{"id": "a", "deleted": True}, record("b", [1, 0, 0, 0])]
    assert vector_dimension(jsonl(tmp_path / "companies.jsonl", rows)) == 4


def test_only_an_unfinished_generation_of_the_same_encoder_is_imported_into(index: SqliteIndex) -> None:
    assert import_target(index, "external", encoder_id=EXTERNAL).name == "external"
    with pytest.raises(EncoderMismatch, match="has vectors of encoder external-openai-3-small, not of other"):
        import_target(index, "external", encoder_id="other")
    index.register_candidate("external")
    assert import_target(index, "external", encoder_id=EXTERNAL).name == "external"
    index.promote("external")
    with pytest.raises(GenerationConflict, match="generation external is live"):
        import_target(index, "external", encoder_id=EXTERNAL)


def test_values_that_an_import_removes_are_counted(index: SqliteIndex, tmp_path: Path) -> None:
    run(index, jsonl(tmp_path / "a.jsonl", [record("a", SIXTY_DEGREES, domain="a.example", aliases=["A"])]))
    later = run(index, jsonl(tmp_path / "b.jsonl", [record("a", SIXTY_DEGREES)]), now=NOW + timedelta(days=1))
    assert later.removed_values == {"domain": 1, "aliases": 1}


@pytest.mark.parametrize("vector", [[True, False, False], ["1", "0", "0"], [1.0, 0.0, False]])
def test_truth_values_and_texts_are_no_numbers(vector: list[object]) -> None:
    with pytest.raises(InvalidCompany, match="must be a list of numbers"):
        unit_vector(vector, dimension=3)


def test_an_import_stops_when_its_generation_is_promoted_meanwhile(
    index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("similarity.generations.import_vectors.CHUNK_ROWS", 1)
    path = jsonl(tmp_path / "companies.jsonl", [record(company_id, [1, 0, 0]) for company_id in "ab"])

    def promoted(_: int) -> None:
        index.register_candidate("external")
        index.promote("external")

    with (
        RejectsFile(tmp_path / "rejects.jsonl") as rejects,
        pytest.raises(GenerationConflict, match=r"was building .* is now live: .* stopped after 1 rows"),
    ):
        import_vectors(
            path,
            index=index,
            generation="external",
            columns=Columns(),
            rejects=rejects,
            now=NOW,
            on_rows=promoted,
        )
    assert list(index.get("external", ["a", "b"])) == ["a"]
