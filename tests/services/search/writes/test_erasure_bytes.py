"""What an erasure leaves in the files of an embedded index: nothing, as a search of all their bytes shows."""

from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from similarity.client import Client
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.bundle_store import keep_bundle, store_folder
from similarity.index.sqlite import SqliteIndex
from tests.services.search.erasure_story import (
    ID,
    WORDS,
    add_two_generations,
    ended,
    erase,
    words_in_files,
    write_everywhere,
)
from tests.services.search.serving import running
from tests.tiny_bundle import write_tiny_bundle


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of an index of two generations, its bundle beside it."""
    path = tmp_path / "data" / "index.db"
    bundle = write_tiny_bundle(tmp_path / "tiny")
    keep_bundle(bundle, store_folder(path))
    with closing(SqliteIndex(path)) as index:
        add_two_generations(index, bundle)
    return path


def test_no_file_of_an_embedded_index_holds_a_word_of_an_erased_company(path: Path, tmp_path: Path) -> None:
    """Sees index, workspace, both logs (-wal), their shared memory (-shm), bundles and the service's own log.

    While the service runs and after it has ended; free pages and overwritten cells are in these bytes too.
    """
    with running(path, tmp_path, writes="direct") as service:
        with Client(f"http://127.0.0.1:{service.port}") as client:
            write_everywhere(client)
            before = words_in_files([path.parent])
            assert set().union(*before.values()) == set(WORDS)
            erasure = erase(client)
            lists = {each.name: each for each in client.lists()}
            assert client.list_hits("unlisted").misses == ()  # it excludes the shortlist by its new name
        assert words_in_files([tmp_path]) == {}
        service.stop()
    assert words_in_files([tmp_path]) == {}
    assert (erasure.state, erasure.problem, erasure.compaction) == ("done", "", "done")
    counts = erasure.forgotten
    assert (counts.events, counts.lists, counts.looks, counts.notes) == (1, 7, 1, 2)
    assert [name for name in lists if not name.startswith("list ")] == ["excluded", "filtered", "texts", "unlisted"]
    assert [each.companies for each in lists.values() if each.companies is not None] == [("puma",)]
    assert len(lists) == 6
    with closing(SqliteIndex(path)) as index, closing(SqliteWorkspace(f"{path}.workspace")) as workspace:
        assert index.ledger.remembered(ID) == frozenset()
        assert [event.note for event in workspace.events()] == ["", ""]


def test_an_erasure_that_a_killed_process_had_accepted_is_completed_by_the_next(path: Path, tmp_path: Path) -> None:
    """A reader of the index keeps the first process from emptying the write-ahead log."""
    with (
        closing(connect(path)) as reader,
        running(path, tmp_path, writes="direct") as service,
        Client(f"http://127.0.0.1:{service.port}") as client,
    ):
        write_everywhere(client)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        assert client.erase(ID).erased
        service.process.kill()
        service.process.wait()
    with running(path, tmp_path, writes="direct") as service, Client(f"http://127.0.0.1:{service.port}") as client:
        assert ended(client).state == "done"
        assert words_in_files([tmp_path]) == {}
