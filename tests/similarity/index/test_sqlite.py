import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

from similarity.company import DeletedCompany
from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.index.filters import FieldFilter
from similarity.index.protocol import WriteOutcome
from similarity.index.sqlite import SqliteIndex, search, writing
from similarity.index.sqlite import index as sqlite_index
from similarity.index.sqlite.matrix import VectorMatrix
from similarity.index.sqlite.words import MAX_QUERY_WORDS, word_query
from tests.contract.steps import add_candidate, add_live, found, outcomes
from tests.factories import make_embedded, unit_vector
from tests.similarity.index.inspection import connect, damage


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        yield index


def count(index: SqliteIndex, query: str) -> int:
    with closing(connect(index.path)) as connection:
        return int(connection.execute(query).fetchone()[0])


def test_everything_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as index:
        index.upsert(add_live(index, "first"), [make_embedded("a", name="Acme"), DeletedCompany(id="b", version=3)])
    assert [file.name for file in tmp_path.iterdir()] == ["index.db"]
    with closing(SqliteIndex(str(path))) as index:
        assert index.live().name == "first"
        assert index.resolve("first", "acme") == found(index.similar("first", unit_vector(1), k=2)) == ["a"]
        assert index.stats("first").deleted == 1


def test_commits_are_flushed_before_they_are_acknowledged(index: SqliteIndex) -> None:
    with index._connections.writing() as first, index._connections.reading() as second:
        for connection in (first, second):
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_no_word_or_lookup_is_left_behind(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded(f"c{number}", name=f"Name {number}", tags=("x",)) for number in range(50)])
    index.upsert("first", [make_embedded(f"c{number}", version=4, name="Renamed", tags=("y",)) for number in range(40)])
    index.upsert("first", [DeletedCompany(id=f"c{number}", version=5) for number in range(30)])
    index.upsert("first", [make_embedded(f"c{number}", version=6, country="FR") for number in range(20)])
    assert damage(index.path) == []
    add_live(index, "second")
    index.retire("first")
    assert damage(index.path) == []
    for table in ("documents", "companies", "vectors", "lookups", "words", "retired"):
        assert count(index, f"SELECT count(*) FROM {table}") == 0


def test_a_newer_version_of_the_same_words_touches_no_words(index: SqliteIndex) -> None:
    documents = [make_embedded(f"c{number}") for number in range(100)]
    index.upsert("first", documents)
    with closing(sqlite3.connect(index.path, isolation_level=None)) as spy:
        spy.execute("DROP TRIGGER companies_reworded")
        for table in ("companies", "vectors", "lookups"):
            for change in ("INSERT", "UPDATE", "DELETE"):
                spy.execute(
                    f"CREATE TRIGGER no_{change}_{table} BEFORE {change} ON {table} "
                    "BEGIN SELECT raise(ABORT, 'touched'); END"
                )
    newer = [make_embedded(f"c{number}", version=4) for number in range(100)]
    assert set(outcomes(index.upsert("first", newer))) == {WriteOutcome.APPLIED}
    assert {document.version for page in index.scan("first") for document in page} == {4}
    with pytest.raises(sqlite3.IntegrityError, match="touched"):
        index.upsert("first", [make_embedded("c1", version=6, name="Other")])


def test_the_file_itself_allows_one_live_generation_only(index: SqliteIndex) -> None:
    add_candidate(index, "second")
    with closing(sqlite3.connect(index.path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE generations SET state = 'live', checksum = 0")


def test_a_scan_ends_when_its_generation_is_created_again(index: SqliteIndex) -> None:
    add_candidate(index, "second")
    index.upsert("second", [make_embedded("a"), make_embedded("b")])
    pages = index.scan("second", batch_size=1)
    next(pages)
    index.retire("second")
    add_candidate(index, "second")
    with pytest.raises(UnknownGeneration, match="created again"):
        next(pages)


def test_retiring_goes_on_where_a_crash_ended_it(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "DELETIONS_PER_TRANSACTION", 3)
    for name in ("second", "third"):
        index.upsert(add_candidate(index, name), [make_embedded(f"c{number}") for number in range(10)])

    def crash(_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writing, "sweep", crash)
        with pytest.raises(KeyboardInterrupt):
            index.retire("second")
    assert [generation.name for generation in index.generations()] == ["first", "third"]
    assert count(index, "SELECT count(*) FROM documents") == 20
    index.retire("third")
    assert count(index, "SELECT count(*) FROM documents") == 0


def test_a_batch_that_fails_midway_leaves_nothing(index: SqliteIndex) -> None:
    with closing(sqlite3.connect(index.path)) as connection:
        connection.execute("CREATE TRIGGER fail BEFORE INSERT ON vectors BEGIN SELECT raise(ABORT, 'planned'); END")
    with pytest.raises(sqlite3.IntegrityError, match="planned"):
        index.upsert("first", [make_embedded("a")])
    assert damage(index.path) == []
    assert index.stats("first").companies == 0
    assert found(index.similar("first", unit_vector(1), k=1)) == []


def test_a_full_disk_undoes_the_batch_and_says_so(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded("a")])
    with index._connections.borrowed() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(IndexUnavailable, match="disk is full; free some space"):
        index.upsert("first", [make_embedded(f"c{number}") for number in range(500)])
    assert found(index.similar("first", unit_vector(1), k=10)) == ["a"]
    assert damage(index.path) == []


def test_a_write_that_waits_too_long_says_so(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db", busy_timeout=0.05)) as index:
        add_live(index, "first")
        with closing(sqlite3.connect(index.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(IndexUnavailable, match="busy_timeout"):
                index.upsert("first", [make_embedded("a")])
            assert index.get("first", ["a"]) == {}
            other.execute("ROLLBACK")
        assert outcomes(index.upsert("first", [make_embedded("a")])) == [WriteOutcome.APPLIED]


def test_a_reader_opens_the_file_while_another_process_writes_to_it(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        index.upsert("first", [make_embedded("a")])
        with closing(sqlite3.connect(index.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with closing(SqliteIndex(index.path, busy_timeout=0.05)) as reader:
                assert set(reader.get("first", ["a"])) == {"a"}
                with pytest.raises(IndexUnavailable, match="busy_timeout"):
                    reader.upsert("first", [make_embedded("b")])


def test_a_closed_index_says_so(index: SqliteIndex) -> None:
    index.close()
    index.close()
    with pytest.raises(IndexUnavailable, match="closed"):
        index.live()


def test_threads_write_and_search_at_once(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_index, "BATCH_DOCUMENTS", 5)
    french = [FieldFilter(field="country", any_of=("fr",))]

    def write(thread: int) -> None:
        documents = [make_embedded(f"c{thread}-{number}", country="FR" if number % 2 else "DE") for number in range(40)]
        assert set(outcomes(index.upsert("first", documents))) == {WriteOutcome.APPLIED}
        index.upsert("first", [DeletedCompany(id=f"c{thread}-{number}", version=3) for number in range(0, 40, 4)])

    def search(seed: int) -> None:
        for _ in range(20):
            hits = index.similar("first", unit_vector(seed), k=5, filters=french).hits
            assert {hit.company.country for hit in hits} <= {"FR"}
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    with ThreadPoolExecutor(8) as threads:
        done = [threads.submit(work, number) for number in range(4) for work in (write, search)]
        for work in done:
            work.result()
    assert index.stats("first").companies == len(found(index.similar("first", unit_vector(1), k=1000))) == 120
    assert damage(index.path) == []


@pytest.mark.parametrize("part", ["mask", "nearest"])
def test_searches_run_at_the_same_time_and_a_change_waits_for_them(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Also while they look for the companies that pass their filters (`mask`)."""
    index.upsert("first", [make_embedded("a"), make_embedded("b")])
    original = getattr(VectorMatrix, part)
    both_search, may_end = Barrier(3), Event()

    def waiting(*arguments: Any, **named: Any) -> Any:
        both_search.wait(timeout=30)
        may_end.wait(timeout=30)
        return original(*arguments, **named)

    def search() -> list[str]:
        filters = [FieldFilter(field="country", none_of=("FR",))]
        return found(index.similar("first", unit_vector(1), k=5, filters=filters))

    assert found(index.similar("first", unit_vector(1), k=5)) == ["a", "b"]
    with ThreadPoolExecutor(3) as threads:
        with monkeypatch.context() as patched:
            patched.setattr(VectorMatrix, part, waiting)
            running = [threads.submit(search) for _ in range(2)]
            both_search.wait(timeout=30)
        index.upsert("first", [DeletedCompany(id="a", version=9)])
        late = threads.submit(search)
        with pytest.raises(TimeoutError):
            late.result(timeout=0.05)
        may_end.set()
        assert [each.result(timeout=30) for each in running] == [["a", "b"]] * 2
        assert late.result(timeout=30) == ["b"]


def test_memory_holds_few_matrices_and_filters(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_FILTERS", 3)
    for name in ("second", "third"):
        add_candidate(index, name)
    for name in ("first", "second", "third"):
        index.upsert(name, [make_embedded(name)])
        for country in range(6):
            index.similar(name, unit_vector(1), k=1, filters=[FieldFilter(field="country", none_of=(str(country),))])
        assert found(index.similar(name, unit_vector(1), k=1)) == [name]
    matrices = index._search._matrices
    assert len(matrices) == search.MAX_MATRICES
    assert all(len(matrix._filtered) == 3 for matrix in matrices.values())
    assert found(index.similar("first", unit_vector(1), k=1)) == ["first"]


def test_a_query_of_many_words_is_cut_and_a_word_counts_once() -> None:
    assert word_query("makes " * 200 + "makes") == '"makes"*'
    assert word_query(" ".join(f"w{number}" for number in range(200))).count('"w') == MAX_QUERY_WORDS
