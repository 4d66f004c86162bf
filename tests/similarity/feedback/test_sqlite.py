"""The workspace's file: shared by processes, refused if it is not ours, and clean after an erasure."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable
from similarity.feedback import sqlite
from similarity.feedback.protocol import FeedbackEvent, Look, Place
from similarity.feedback.sqlite import EVENTS, SqliteWorkspace, _event_row
from similarity.index import name_hashes
from similarity.index.name_hashes import ErasedCompanies, hashes_of
from similarity.preparation.words import words_of
from tests.workspace_records import KEY, NOON, forget, make_event, make_list, make_names, moment

ROOT = Path(__file__).parents[3]
WRITE = """
import sys
from similarity.feedback.sqlite import SqliteWorkspace
from tests.workspace_records import make_event, moment

workspace = SqliteWorkspace(sys.argv[1])
for number in range(20):
    workspace.add_event(make_event(f"{sys.argv[2]}-{number}", at=moment(number)))
    workspace.add_event(make_event("shared"))
workspace.close()
"""


def on_disk(path: Path) -> bytes:
    """All that lies on the disk of a workspace."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def test_processes_write_and_open_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(path), name], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    with closing(SqliteWorkspace(path)) as workspace:
        assert len(list(workspace.events())) == 3 * 20 + 1


def test_what_was_written_is_there_after_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "w.db"
    with closing(SqliteWorkspace(path)) as workspace:
        workspace.add_event(make_event())
        workspace.save_list(make_list())
    with closing(SqliteWorkspace(path)) as workspace:
        assert list(workspace.events()) == [make_event()]
        assert workspace.saved_list("shoes") == make_list()


def test_an_erasure_holds_up_no_writes_while_it_compares_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        closing(SqliteWorkspace(tmp_path / "w.db")) as workspace,
        closing(SqliteWorkspace(tmp_path / "w.db", busy_timeout=0.1)) as other,
    ):
        workspace.save_list(make_list(exclude=["Adidas AG", "Puma"]))

        def write_first(text: str) -> list[str]:
            monkeypatch.setattr(name_hashes, "words_of", words_of)
            other.save_list(make_list("late", exclude=["Adidas", "Asics"]))
            return words_of(text)

        names = make_names("adidas", "Adidas AG")
        monkeypatch.setattr(name_hashes, "words_of", write_first)
        assert workspace.forget_companies(names)["adidas"].lists == 2
        assert [saved.question["exclude"] for saved in workspace.lists()] == [["Asics"], ["Puma"]]


def test_an_erasure_holds_up_no_writes_while_it_compares_lists_that_were_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FEW_TEXTS", 1)
    with (
        closing(SqliteWorkspace(tmp_path / "w.db")) as workspace,
        closing(SqliteWorkspace(tmp_path / "w.db", busy_timeout=0.1)) as other,
    ):
        workspace.save_list(make_list(exclude=["Adidas AG", "Puma"]))
        meanwhile = {"Puma": ["Adidas", "Asics"], "Asics": ["Fila"]}

        def write(text: str) -> list[str]:
            if exclude := meanwhile.pop(text, None):
                other.save_list(make_list("late", exclude=exclude))
            return words_of(text)

        names = make_names("adidas", "Adidas AG")
        monkeypatch.setattr(name_hashes, "words_of", write)
        workspace.forget_companies(names)
        assert [saved.question["exclude"] for saved in workspace.lists()] == [["Fila"], ["Puma"]]


def test_an_erasure_holds_up_no_writes_while_it_looks_names_up_in_the_index(tmp_path: Path) -> None:
    with (
        closing(SqliteWorkspace(tmp_path / "w.db")) as workspace,
        closing(SqliteWorkspace(tmp_path / "w.db", busy_timeout=0.1)) as other,
    ):
        workspace.save_list(make_list(exclude=["ADIDAS AG", "Puma", "adidas"]))

        def belongs_to_another(_: str, name: str) -> bool:
            other.save_list(make_list(name, exclude=["Asics"]))
            return False

        hashes = {"a": hashes_of(KEY, ["Adidas AG"])}
        workspace.forget_companies(ErasedCompanies(KEY, hashes, belongs_to_another))
        assert [saved.question["exclude"] for saved in workspace.lists() if saved.name == make_list().name] == [
            ["Puma"]
        ]


def test_all_events_of_a_company_are_read_in_few_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    read_page = SqliteWorkspace._page

    def page(
        workspace: SqliteWorkspace, company: str, user: str, before: Place | None, size: int
    ) -> list[FeedbackEvent]:
        sizes.append(size)
        return read_page(workspace, company, user, before, size)

    monkeypatch.setattr(SqliteWorkspace, "_page", page)
    events = [make_event(f"event-{number}", at=moment(number)) for number in range(3_000)]
    with closing(SqliteWorkspace(tmp_path / "w.db")) as workspace:
        with workspace._file.writing() as connection:
            EVENTS.write(connection, map(_event_row, events))
        assert list(workspace.events(company=events[0].hit)) == events[::-1]
    assert sizes == [20, 500, 1_000, 2_000]


def test_every_commit_is_on_disk_and_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    with closing(SqliteWorkspace(tmp_path / "w.db")) as workspace, workspace._file.reading() as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}


def test_an_erased_company_is_on_no_disk(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(SqliteWorkspace(path)) as workspace:
        for number in range(50):
            hit = "secretive-gmbh" if number % 2 else "puma"
            workspace.add_event(make_event(str(number), at=moment(number), hit=hit, note=f"about {hit}"))
        workspace.save_list(make_list("alone", anchors=[{"company": "secretive-gmbh"}]))
        workspace.save_list(make_list(exclude=["secretive-gmbh", "puma", "Secretive GmbH"]))
        workspace.add_look(Look(list_name="shoes", user="ann", at=NOON, seen=("secretive-gmbh", "puma")))
        assert b"secretive" in on_disk(path)
        forget(workspace, "secretive-gmbh", "secretive gmbh")
        workspace.compact()
        assert b"secretive" not in on_disk(path).lower()
        assert b"about puma" in on_disk(path)


def test_it_says_when_the_log_could_not_be_emptied(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(SqliteWorkspace(path, busy_timeout=0.1)) as workspace, closing(sqlite3.connect(path)) as reader:
        workspace.add_event(make_event())
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM events").fetchall()
        with pytest.raises(IndexUnavailable, match="try again when no process reads"):
            workspace.compact()


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(IndexUnavailable, match="another program"):
        SqliteWorkspace(path)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    SqliteWorkspace(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(IndexUnavailable, match="newer release"):
        SqliteWorkspace(path)


@pytest.mark.parametrize("name", ["w.db", "w.db-wal", "w.db-shm"])
def test_a_file_that_is_deleted_while_in_use_is_noticed_before_a_write_is_acknowledged(
    tmp_path: Path, name: str
) -> None:
    with closing(SqliteWorkspace(tmp_path / "w.db")) as workspace:
        workspace.add_event(make_event())
        (tmp_path / name).unlink()
        for ask in (lambda: workspace.add_event(make_event("e2")), workspace.lists, workspace.check):
            with pytest.raises(
                IndexUnavailable, match="moved, deleted or cut off while in use: put it back or restart"
            ):
                ask()
