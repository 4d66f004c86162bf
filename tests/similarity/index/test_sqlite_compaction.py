"""Erasure: after a delete and a compaction nothing of a company is in the file, nor in what lies beside it."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from similarity.company import DeletedCompany
from similarity.errors import IndexUnavailable
from similarity.index.sqlite import SqliteIndex, writing
from tests.contract.steps import add_candidate, add_live, found
from tests.factories import make_embedded, make_generation, unit_vector
from tests.similarity.index.inspection import damage

# Each begins with letters that no other word here has: the word index leaves out what neighbours share.
SECRETS: dict[str, Any] = {
    "name": "Zyxomma Ltd",
    "description": "Jkqvbz makes things.",
    "aliases": ("Qwfpgj",),
    "domain": "vbkzxq.example",
    "country": "Xhtzmk",
    "industry": "Gdrwpt",
    "tags": ("Bnmcvx",),
    "attributes": {"note": "Ytrewq"},
}
TRACES = ("zyxomma", "jkqvbz", "qwfpgj", "vbkzxq", "xhtzmk", "gdrwpt", "bnmcvx", "ytrewq")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db", busy_timeout=0.2)) as index:
        add_live(index, "first")
        for batch in range(20):
            index.upsert("first", [make_embedded(f"c{batch}-{number}") for number in range(20)])
        yield index


def traces(index: SqliteIndex, words: tuple[str, ...] = TRACES) -> list[str]:
    """Which of the words are in any file of the index, in whatever case."""
    held = b"".join(file.read_bytes() for file in sorted(index.path.parent.iterdir())).lower()
    return [word for word in words if word.encode() in held]


def test_a_company_leaves_traces_until_it_is_erased(index: SqliteIndex) -> None:
    secret = make_embedded("secret", vector=unit_vector(5), **SECRETS)
    index.upsert("first", [secret])
    assert traces(index) == list(TRACES)
    index.upsert("first", [DeletedCompany(id="secret", version=3)])
    assert traces(index) != []
    index.compact("first")
    assert traces(index) == []
    assert all(secret.vector.tobytes() not in file.read_bytes() for file in index.path.parent.iterdir())
    assert damage(index.path) == []


def test_what_was_replaced_is_erased_too(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded("secret", **SECRETS)])
    index.compact("first")
    assert traces(index) == list(TRACES)
    index.upsert("first", [make_embedded("secret", version=4)])
    index.compact("first")
    assert traces(index) == []
    assert index.get("first", ["secret"])["secret"].version == 4


def test_many_deletes_between_other_writes_leave_nothing(index: SqliteIndex) -> None:
    """Words of companies that came and went in different states of the word index."""
    words = tuple(f"{letter}{letter}qz{number}x" for number in range(10) for letter in "bdfghjklmnpqrstvwxz")
    for start in range(0, len(words), 10):
        index.upsert("first", [make_embedded(word, description=f"Sells {word}.") for word in words[start : start + 10]])
        index.upsert("first", [DeletedCompany(id=word, version=3) for word in words[max(0, start - 30) : start : 2]])
    index.upsert("first", [DeletedCompany(id=word, version=5) for word in words])
    index.purge_deleted("first", before=make_embedded().embedded_at)
    index.compact("first")
    assert traces(index, words) == []
    assert index.stats("first").companies == 400


def test_documents_of_a_generation_whose_retiring_was_cut_short_are_erased(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.upsert(add_candidate(index, "second"), [make_embedded("secret", **SECRETS)])

    def crash(_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writing, "sweep", crash)
        with pytest.raises(KeyboardInterrupt):
            index.retire("second")
    index.compact("first")
    assert traces(index) == []


def test_the_file_shrinks(index: SqliteIndex) -> None:
    index.compact("first")
    size = index.path.stat().st_size
    index.upsert("first", [DeletedCompany(id=f"c{number // 20}-{number % 20}", version=3) for number in range(300)])
    index.compact("first")
    assert index.path.stat().st_size < size * 3 / 4


def test_searches_go_on_with_what_they_hold_in_memory(index: SqliteIndex) -> None:
    with closing(SqliteIndex(index.path)) as other:
        before = [found(held.similar("first", unit_vector(1), k=400)) for held in (index, other)]
        index.compact("first")
        assert [found(held.similar("first", unit_vector(1), k=400)) for held in (index, other)] == before
        other.upsert("first", [make_embedded("new", vector=unit_vector(1))])
        assert found(index.similar("first", unit_vector(1), k=1)) == ["new"]


def test_a_reader_that_keeps_old_pages_from_being_dropped_is_reported(index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded("secret", **SECRETS), DeletedCompany(id="secret", version=3)])
    with closing(sqlite3.connect(index.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        with pytest.raises(IndexUnavailable, match="try again when no process reads"):
            index.compact("first")
        reader.execute("COMMIT")
    index.compact("first")
    assert traces(index) == []
    assert damage(index.path) == []


def test_writes_go_on_while_a_reader_holds_up_a_compaction(index: SqliteIndex) -> None:
    with (
        closing(SqliteIndex(index.path)) as patient,
        closing(sqlite3.connect(index.path, isolation_level=None)) as reader,
        ThreadPoolExecutor() as pool,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        compacted = pool.submit(patient.compact, "first")
        time.sleep(1)  # by then it waits for the reader
        before = time.monotonic()
        with closing(SqliteIndex(index.path)) as writer:
            writer.upsert("first", [make_embedded("new")])
        assert time.monotonic() - before < 5
        assert not compacted.done()
        reader.execute("COMMIT")
        assert compacted.result()
    assert damage(index.path) == []


def test_a_writer_that_does_not_end_is_reported(index: SqliteIndex) -> None:
    with closing(sqlite3.connect(index.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexUnavailable, match="busy_timeout"):
            index.compact("first")
        writer.execute("ROLLBACK")
    index.compact("first")


def test_several_who_compact_at_once_all_succeed(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    index.create_generation(make_generation("first"))
    index.upsert("first", [make_embedded(f"c{number}", description="Makes anvils. " * 50) for number in range(200)])
    failures: list[Exception] = []

    def delete_and_compact(number: int) -> None:
        try:
            for step in range(5):
                index.upsert("first", [DeletedCompany(id=f"c{10 * number + step}", version=10**18)])
                index.compact("first")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=delete_and_compact, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index.close()
    assert failures == []
