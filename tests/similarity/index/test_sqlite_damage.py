"""Damage to an index file is noticed where it is read, or found by the check; see also `tests/faults/bit_flips.py`."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.company import DeletedCompany
from similarity.errors import IndexUnavailable
from similarity.index.filters import FieldFilter
from similarity.index.sqlite import SqliteIndex, checking
from similarity.index.sqlite.schema import PAGE_BYTES
from tests.contract.steps import add_candidate, add_live, found
from tests.factories import make_embedded, unit_vector
from tests.faults.bit_flips import run_campaign
from tests.similarity.index.inspection import connect, tamper

FRENCH = (FieldFilter(field="country", any_of=("fr",)),)
OTHER_TEXT = "CAST(X'4d80ff' AS TEXT)"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """Companies a to d, of which c was replaced, and the deleted company e."""
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        names = {"a": "FR", "b": "DE", "c": "FR", "d": "DE"}
        index.upsert(add_live(index, "first"), [make_embedded(each, country=names[each]) for each in names])
        index.upsert("first", [make_embedded("c", version=4, country="FR", name="Renamed")])
        index.upsert("first", [DeletedCompany(id="e", version=3)])
        yield index


def change(index: SqliteIndex, statement: str) -> None:
    """Damages the file behind the index's back."""
    with closing(connect(index.path)) as connection:
        connection.execute(statement)


def root_page(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [page] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return int(page)


def similar(index: SqliteIndex) -> object:
    return index.similar("first", unit_vector(1), k=4)


def scan(index: SqliteIndex) -> object:
    return list(index.scan("first"))


def versions(index: SqliteIndex) -> object:
    return list(index.versions("first"))


def get(index: SqliteIndex) -> object:
    return index.get("first", ["b"])


def find(index: SqliteIndex) -> object:
    return index.find("first", "company b")


def resolve(index: SqliteIndex) -> object:
    return index.resolve("first", "company b")


def write(index: SqliteIndex) -> object:
    return index.upsert("first", [make_embedded("b", version=8)])


def live(index: SqliteIndex) -> object:
    return index.live()


def stats(index: SqliteIndex) -> object:
    return index.stats("first")


def test_a_whole_file_has_no_damage(index: SqliteIndex) -> None:
    assert index.damage() == []


@pytest.mark.parametrize(
    ("statement", "ask", "named"),
    [
        *(
            ("UPDATE vectors SET vector = zeroblob(32) WHERE document = 2", ask, "the vector of company 'b'")
            for ask in (similar, get, scan)
        ),
        ("UPDATE vectors SET vector = 'text' WHERE document = 2", similar, "the vector of company 'b'"),
        ("DELETE FROM vectors WHERE document = 2", similar, "the vector of company 'b'"),
        *(
            ("UPDATE companies SET industry = 'Other' WHERE document = 2", ask, "the profile of company 'b'")
            for ask in (similar, get, scan, find, resolve, write)
        ),
        ("UPDATE companies SET attributes = '[]' WHERE document = 2", get, "the profile of company 'b'"),
        ("DELETE FROM companies WHERE document = 2", find, "the profile of company 'b'"),
        *(
            ("UPDATE documents SET version = 9 WHERE document = 2", ask, r"company 'b' \(document 2\) differs")
            for ask in (similar, get, scan, versions, find, write)
        ),
        ("UPDATE documents SET deleted = 1 WHERE document = 2", get, r"company 'b' \(document 2\) differs"),
        ("UPDATE documents SET id = 'z' WHERE document = 2", similar, "the vector of company 'z'"),
        ("UPDATE documents SET vector_checksum = NULL WHERE document = 2", similar, "4 companies, but 3 can be"),
        ("DELETE FROM documents WHERE document = 2", similar, "'first' should hold 4 companies, but 3 can be read"),
        ("DELETE FROM documents WHERE document = 2", stats, "'first' should hold 4 companies, but 3 can be read"),
        ("UPDATE documents SET deleted = 0 WHERE id = 'e'", stats, "should hold 4 companies, but 5 can be read"),
        ("DELETE FROM documents WHERE document = 2", find, "document 2 was found by the search, but its row cannot be"),
        ("UPDATE generations SET slope = 2, intercept = 1, checksum = 0", live, "the row of generation 'first'"),
        ("UPDATE generations SET encoder_id = 'other', checksum = 0", similar, "the row of generation 'first'"),
        (f"UPDATE companies SET industry = {OTHER_TEXT} WHERE document = 2", get, "Could not decode"),
        ("INSERT INTO lookups VALUES (1, 'name', 'company b', 1)", resolve, "that company 'a' does not have"),
    ],
)
def test_a_damaged_row_is_named_where_it_is_read(
    index: SqliteIndex, statement: str, ask: Callable[[SqliteIndex], object], named: str
) -> None:
    change(index, statement)
    with pytest.raises(IndexUnavailable, match=f"is damaged; restore a backup, or delete it and ingest again.*{named}"):
        ask(index)
    assert index.damage()


def test_a_damaged_row_hides_no_others(index: SqliteIndex) -> None:
    change(index, "UPDATE companies SET industry = 'Other' WHERE document = 2")
    assert set(index.get("first", ["a", "c", "d"])) == {"a", "c", "d"}
    assert index.resolve("first", "renamed") == ["c"]


def test_a_write_that_comes_after_the_matrix_was_read_is_checked_too(index: SqliteIndex) -> None:
    similar(index)
    write(index)
    change(index, "UPDATE vectors SET vector = zeroblob(32) WHERE document = 2")
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match="the vector of company 'b'"):
            similar(index)


def test_a_lookup_that_lets_a_company_pass_wrongly_is_noticed(index: SqliteIndex) -> None:
    assert sorted(found(index.similar("first", unit_vector(1), k=4, filters=FRENCH))) == ["a", "c"]
    change(index, "INSERT INTO lookups VALUES (1, 'country', 'fr', 2)")
    with closing(SqliteIndex(index.path)) as anew, pytest.raises(IndexUnavailable, match="lookups hold a value that"):
        anew.similar("first", unit_vector(1), k=4, filters=FRENCH)


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("DELETE FROM lookups WHERE document = 2 AND field = 'country'", "the lookups of company 'b' (document 2)"),
        ("UPDATE lookups SET value = 'eu' WHERE document = 2 AND field = 'country'", "the lookups of company 'b'"),
        ("INSERT INTO lookups VALUES (1, 'country', 'fr', 77)", "1 rows of lookups belong to no company"),
        ("DELETE FROM documents WHERE document = 2", "1 rows of vectors belong to no company"),
        ("INSERT INTO words (words) VALUES ('delete-all')", "the words differ from the companies"),
        (f"UPDATE companies SET name = {OTHER_TEXT} WHERE document = 2", "the profile of company 'b' (document 2)"),
        ("UPDATE documents SET sequence = 99 WHERE document = 5", "company 'e' (document 5) differs from its"),
        ("UPDATE generations SET purged = 3, checksum = 0", "the row of generation 'first' differs"),
        ("INSERT INTO retired (number) VALUES (1)", "the generation with the number 1 is among the retired ones too"),
        ("UPDATE documents SET generation = 5 WHERE deleted", "1 documents belong to no generation"),
    ],
)
def test_the_check_finds_and_names(index: SqliteIndex, statement: str, line: str) -> None:
    change(index, statement)
    damage = index.damage()
    assert any(line in each for each in damage), damage
    assert index.damage() == damage


DAMAGED_LEASES = [
    ("UPDATE leases SET expires_at = expires_at + 65536", "the row ('reembed',) of leases differs"),
    ("UPDATE leases SET holder = 'b'", "the row ('reembed',) of leases differs"),
    ("UPDATE leases SET name = 'rdembed'", "the row ('rdembed',) of leases differs"),
    # The file's trigger brings `counted` back to what it was.
    ("UPDATE registry SET fence = fence + 8, counted = counted - 8", "the counters of registry differ from their sum"),
    ("UPDATE registry SET revision = 0, counted = counted + revision", "the counters of registry differ from their"),
    ("UPDATE registry SET counted = 0", "the counters of registry differ from their sum"),
]


@pytest.mark.parametrize(("statement", "line"), DAMAGED_LEASES)
def test_damage_to_leases_and_counters_is_noticed(index: SqliteIndex, statement: str, line: str) -> None:
    index.take_lease("reembed", holder="a", seconds=60)
    tamper(index.path, statement)
    with pytest.raises(IndexUnavailable, match=re.escape(line)):
        index.leases(), index.revision()
    add_candidate(index, "second")  # counts on, and does not hide it
    assert line in " ".join(index.damage())


def test_damage_to_the_list_of_retired_generations_removes_no_documents(index: SqliteIndex) -> None:
    add_candidate(index, "second")
    change(index, "INSERT INTO retired (number) VALUES (1)")
    index.retire("second")
    assert index.stats("first").companies == 4


def test_the_check_lists_a_hundred_lines_at_most(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded(f"c{number}") for number in range(200)])
    change(index, "UPDATE companies SET industry = 'Other'")
    assert len(index.damage()) == 100


ALL_ONES = "X'FFFFFFFFFFFFFFFF'"


@pytest.mark.parametrize(
    "block",
    [
        f"substr(block, 1, 4) || {ALL_ONES} || substr(block, 13)",
        # SQLite 3.40 ends with a segmentation fault when it checks these.
        f"substr(block, 1, length(block) - 20) || {ALL_ONES} || substr(block, -12)",
    ],
)
def test_damaged_words_do_not_end_the_check(index: SqliteIndex, block: str) -> None:
    long = [make_embedded(f"c{number}", description=f"Makes {number}. " * 300) for number in range(100)]
    index.upsert("first", long)
    change(index, f"UPDATE words_data SET block = CAST({block} AS BLOB) WHERE length(block) > 4000")
    assert index.damage()[0].startswith("the words differ from the companies, or cannot be checked: ")


def test_the_check_finds_modules_where_this_process_does(
    index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(checking, "CHECK_OF_WORDS", checking.CHECK_OF_WORDS + "import only_here")
    assert index.damage() == []


def test_an_index_that_is_being_written_is_not_called_damaged(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db", busy_timeout=0.1)) as index, closing(connect(index.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexUnavailable, match="was not checked to its end: another process has been writing"):
            index.damage()


def test_a_page_that_asks_for_too_much_memory_does_not_end_the_check(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as index:
        index.upsert(add_live(index, "first"), [make_embedded(f"c{number}") for number in range(200)])
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES * (root_page(path, "vectors") - 1) + 512)
        file.write(b"\xff" * 1024)
    with closing(SqliteIndex(path)) as index:
        assert "the rest cannot be read: a damaged page asks for too much memory" in index.damage()


def test_words_that_ask_for_too_much_memory_are_reported(index: SqliteIndex) -> None:
    change(index, f"UPDATE words_data SET block = CAST(substr(block, 1, 8) || {ALL_ONES} AS BLOB) WHERE id = 10")
    with pytest.raises(IndexUnavailable, match="a damaged page asks for too much of it; free some, and run similarity"):
        find(index)


def test_flipped_bits_change_no_ranking_in_silence(tmp_path: Path) -> None:
    campaign = run_campaign(tmp_path, runs=60, seed=1)
    assert campaign.problems == []
    assert campaign.noticed > 10
    assert campaign.harmless > 10


def hide(path: Path, company_id: str) -> None:
    """Flips a bit of a company's id in the index by which SQLite finds ids."""
    content = bytearray(path.read_bytes())
    start = PAGE_BYTES * (root_page(path, "sqlite_autoindex_documents_1") - 1)
    place = content.index(company_id.encode(), start, start + PAGE_BYTES)
    content[place] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize("company_id", ["bb", "cc", "dd"])
def test_a_company_that_an_index_of_the_file_hides_is_not_taken_for_unknown(tmp_path: Path, company_id: str) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as index:
        index.upsert(add_live(index, "first"), [make_embedded(each) for each in ("aa", "bb", "cc", "dd", "ee")])
    hide(path, company_id)
    with closing(SqliteIndex(path)) as index:
        assert company_id in found(index.similar("first", unit_vector(1), k=5))
        for ask in (
            lambda: index.get("first", ["aa", company_id]),
            lambda: index.stored_versions("first", [company_id]),
            lambda: index.resolve("first", company_id),
            lambda: index.upsert("first", [make_embedded(company_id, version=1)]),
        ):
            with pytest.raises(IndexUnavailable, match=f"company '{company_id}' is in the file, but"):
                ask()
        assert index.get("first", ["unknown"]) == {}
        assert index.resolve("first", "unknown") == []


@pytest.mark.parametrize("part", [0, 1, 24, PAGE_BYTES // 2, PAGE_BYTES + 23])
def test_a_log_that_a_crash_cut_in_its_first_frame_is_recovered(tmp_path: Path, part: int) -> None:
    path, log = tmp_path / "index.db", tmp_path / "index.db-wal"
    with closing(SqliteIndex(path)) as index:
        add_live(index, "first")
    before = path.read_bytes()
    with closing(SqliteIndex(path)) as index:
        index.upsert("first", [make_embedded("a")])
        cut = log.read_bytes()[: 32 + part]  # the log's header, and a part of the first frame
    path.write_bytes(before)
    log.write_bytes(cut)
    for _ in range(2):
        with closing(SqliteIndex(path)) as index:
            assert index.get("first", ["a"]) == {}
