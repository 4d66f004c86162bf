"""Rows of a file with one id: the first is kept, the others are named, and those of equal content are harmless."""

import json
from datetime import UTC, datetime

import pytest

from similarity.company import DeletedCompany
from similarity.ingest.records import Columns, parse_record
from similarity.ingest.repeated_rows import FIRST_SLOTS, RepeatedRows
from tests.similarity.ingest.test_load import Loader, encoder, index, loader, record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
__all__ = ["encoder", "index", "loader"]


def conflict(repeated: RepeatedRows, number: int, **fields: object) -> str:
    values = {"id": "acme", "name": "Acme", "description": "Makes anvils.", **fields}
    columns = Columns(attributes={"size": "size"})
    return repeated.conflict(number, parse_record(values, columns=columns, now=NOW).change)


def test_a_row_of_other_content_names_the_first_row() -> None:
    repeated = RepeatedRows()
    assert [conflict(repeated, 3), conflict(repeated, 5), conflict(repeated, 6, id="other")] == [""] * 3
    assert repeated.harmless == 1
    told = "row 7 has the same id as row 3: 'acme', and other content; row 3 is kept"
    assert conflict(repeated, 7, name="Acme Inc") == told
    assert conflict(repeated, 7, size=1) == told


def test_numbers_and_truth_values_are_not_equal() -> None:
    repeated = RepeatedRows()
    assert [bool(conflict(repeated, 1, size=size)) for size in (1, True, 1)] == [False, True, False]


def test_rows_of_other_times_are_versions_and_not_repeated() -> None:
    repeated = RepeatedRows()
    times = ["2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z", "", "2025-01-01T00:00:00Z"]
    found = [conflict(repeated, number, name=f"Acme {number}", event_time=time) for number, time in enumerate(times)]
    assert [bool(each) for each in found] == [False, False, False, True]


@pytest.mark.parametrize("time", ["", "2025-01-01T00:00:00Z"])
def test_a_row_that_writes_a_company_which_an_earlier_row_deletes_names_that_row(time: str) -> None:
    repeated = RepeatedRows()
    rows: list[dict[str, object]] = [{}, {"deleted": True}, {"deleted": True}, {}, {"id": "b"}, {"name": "Acme Inc"}]
    found = [conflict(repeated, number, event_time=time, **row) for number, row in enumerate(rows)]
    told = "row {} has the same id as row 1: 'acme', and other content; row 1 is kept"
    assert (found, repeated.harmless) == (["", "", "", told.format(3), "", told.format(5)], 1)
    assert conflict(repeated, 6, event_time="2025-01-02T00:00:00Z") == ""


def test_many_rows_are_remembered_as_the_table_grows() -> None:
    repeated = RepeatedRows()
    changes = [DeletedCompany(id=f"c{number}", version=1) for number in range(3 * FIRST_SLOTS)]
    for number, change in enumerate(changes):
        repeated.conflict(number, change)
    assert repeated.harmless == 0
    for number, change in enumerate(changes):
        repeated.conflict(number, change)
    assert repeated.harmless == len(changes)


def test_a_load_says_which_rows_have_one_id_however_far_apart(loader: Loader) -> None:
    rows = [record(f"c{number}") for number in range(1_500)]
    report = loader.load([*rows, record("c3", name="Other"), record("c4")])
    assert (report.rejected, report.notes) == (1, ["1 rows have the id and the content of an earlier row"])
    [reject] = [json.loads(line) for line in loader.rejects.read_text().splitlines()]
    assert reject["reason"] == "id: row 1501 has the same id as row 4: 'c3', and other content; row 4 is kept"
    assert loader.index.get("first", ["c3"])["c3"].company.name == "Firm c3"


def test_the_first_row_is_kept_also_by_a_load_that_alters_nothing(loader: Loader) -> None:
    rows = [record("a"), record("a", name="Other")]
    loader.load(rows)
    report = loader.load(rows)
    assert (report.counts["unchanged"], report.rejected) == (1, 1)
    assert loader.index.get("first", ["a"])["a"].company.name == "Firm a"
