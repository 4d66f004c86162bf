"""Damage to the workspace's file is an error where it is read, and the check names it."""

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable
from similarity.feedback import sqlite_file
from similarity.feedback.protocol import Look, Shown
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite.files import migrate
from tests.faults.bit_flips import flipped
from tests.similarity.index.inspection import tamper
from tests.workspace_records import NOON, forget, make_event, make_list, moment

OLD_ROWS = """
    INSERT INTO events VALUES
        ('ann', 'e1', 1, 'nike', 'adidas', 'competitor', 1, 1, 0.5, 'g', 'b', 'a note'),
        ('ann', 'e2', 2, 'nike', 'puma', 'unsure', NULL, NULL, NULL, '', '', '');
    INSERT INTO lists VALUES ('shoes', '{question}', 'ann', 3);
    INSERT INTO looks VALUES ('shoes', 'ann', 4, '["puma"]');
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[SqliteWorkspace]:
    """Two verdicts, a list and a look at it."""
    with closing(SqliteWorkspace(tmp_path / "w.db")) as workspace:
        workspace.add_event(make_event(note="a note", shown=Shown(rank=1, score=1)))
        workspace.add_event(make_event("e2", hit="puma"))
        workspace.save_list(make_list())
        workspace.add_look(Look(list_name="shoes", user="ann", at=NOON, seen=("puma",)))
        yield workspace


def read(workspace: SqliteWorkspace) -> list[object]:
    return [*workspace.events(), *workspace.lists(), *workspace.looks("ann")]


def old_file(path: Path, question: str = '{"anchors": [{"company": "nike"}]}') -> Path:
    """A file as the release before the checksums left it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        identity = sqlite_file.APPLICATION_ID
        migrate(connection, sqlite_file.MIGRATIONS[:1], path=path, application_id=identity, what_to_do="")
        connection.executescript(OLD_ROWS.format(question=question))
    return path


def test_a_whole_file_has_no_damage(workspace: SqliteWorkspace) -> None:
    assert len(read(workspace)) == 4
    assert workspace.damage() == []


def test_a_verdict_with_minus_zero_has_no_damage(workspace: SqliteWorkspace) -> None:
    """SQLite returns 0.0 for -0.0."""
    workspace.add_event(make_event("e3", hit="asics", shown=Shown(rank=1, score=-0.0, probability=-0.0)))
    assert len(read(workspace)) == 5
    assert workspace.damage() == []


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE events SET note = 'a nota' WHERE id = 'e1'", r"the row \('ann', 'e1'\) of events differs"),
        ("UPDATE events SET verdict = 'unsure' WHERE id = 'e1'", r"\('ann', 'e1'\) of events"),
        ("UPDATE events SET score = NULL WHERE id = 'e1'", r"\('ann', 'e1'\) of events"),
        ("UPDATE events SET at = at + 1 WHERE id = 'e2'", r"\('ann', 'e2'\) of events"),
        ("UPDATE events SET user = 'bob' WHERE id = 'e2'", r"\('bob', 'e2'\) of events"),
        ("UPDATE events SET note = CAST(X'80' AS TEXT) WHERE id = 'e1'", r"\('ann', 'e1'\) of events"),
        ("UPDATE lists SET question = replace(question, 'anchors', 'anch/rs')", r"\('shoes',\) of lists"),
        ("UPDATE lists SET saved_by = 'anm'", r"\('shoes',\) of lists"),
        ("UPDATE looks SET seen = '[\"pumb\"]'", r"\('shoes', 'ann'\) of looks"),
    ],
)
def test_a_damaged_row_is_named_where_it_is_read_and_by_the_check(
    workspace: SqliteWorkspace, statement: str, named: str
) -> None:
    tamper(workspace.path, statement)
    with pytest.raises(IndexUnavailable, match=f"it is damaged; restore a backup.*{named}"):
        read(workspace)
    [line] = workspace.damage()
    assert "differs from its checksum" in line


def test_an_erasure_does_not_give_a_damaged_row_a_new_checksum(workspace: SqliteWorkspace) -> None:
    tamper(workspace.path, "UPDATE events SET verdict = 'unsure' WHERE id = 'e1'")
    with pytest.raises(IndexUnavailable, match="it is damaged"):
        forget(workspace, "c1", "a note")
    assert workspace.damage()


def test_a_damaged_list_can_be_saved_anew_or_removed(workspace: SqliteWorkspace) -> None:
    for mend in (lambda: workspace.save_list(make_list()), lambda: workspace.remove_list("shoes")):
        tamper(workspace.path, "UPDATE lists SET saved_by = 'anm'")
        mend()
        assert workspace.damage() == []


def test_a_file_of_the_release_before_is_upgraded(tmp_path: Path) -> None:
    path = old_file(tmp_path / "w.db")
    with closing(SqliteWorkspace(path)) as workspace:
        assert len(read(workspace)) == 4
        assert workspace.damage() == []
        tamper(path, "UPDATE events SET note = 'another' WHERE id = 'e1'")
        assert workspace.damage()


def test_a_row_that_was_unreadable_before_the_upgrade_is_damage(tmp_path: Path) -> None:
    with closing(SqliteWorkspace(old_file(tmp_path / "w.db", question="{"))) as workspace:
        [line] = workspace.damage()
        assert line.startswith("the row ('shoes',) of lists cannot be read")
        with pytest.raises(IndexUnavailable, match="it is damaged; restore a backup"):
            workspace.lists()


def test_text_that_is_not_utf_8_ends_the_upgrade_and_the_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = old_file(tmp_path / "w.db")
    tamper(path, "UPDATE events SET note = CAST(X'80' AS TEXT) WHERE id = 'e1'")
    with pytest.raises(IndexUnavailable, match="it is damaged; restore a backup"):
        SqliteWorkspace(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events (user, id, at, anchor, hit, verdict, generation, bundle_id, note)"
        " VALUES ('ann', 'e3', 1, 'nike', 'puma', 'unsure', '', '', '')",
        "INSERT INTO lists (name, question, saved_by, saved_at) VALUES ('shoes', '{}', 'ann', 1)"
        " ON CONFLICT (name) DO UPDATE SET question = excluded.question",
        "INSERT OR REPLACE INTO looks (list_name, user, at, seen) VALUES ('shoes', 'ann', 1, '[]')",
        "UPDATE events SET note = '' WHERE id = 'e1'",
    ],
)
def test_a_process_of_an_older_release_cannot_write_without_checksums(tmp_path: Path, statement: str) -> None:
    path = old_file(tmp_path / "w.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        assert older.execute("SELECT count(*) FROM events").fetchone() == (2,)
        with closing(SqliteWorkspace(path)) as workspace:
            with pytest.raises(sqlite3.IntegrityError, match="older release writes to this workspace, which was up"):
                older.execute(statement)
            assert workspace.damage() == []


def test_the_same_verdict_list_and_look_may_be_stored_again(workspace: SqliteWorkspace) -> None:
    for _ in range(2):
        workspace.add_event(make_event("e2", hit="puma"))
        workspace.save_list(make_list())
        workspace.add_look(Look(list_name="shoes", user="ann", at=NOON, seen=("puma",)))
    assert len(read(workspace)) == 4


def test_flipped_bits_change_no_answer_in_silence(tmp_path: Path) -> None:
    original, path = tmp_path / "original.db", tmp_path / "w.db"
    with closing(SqliteWorkspace(original)) as workspace:
        for number in range(100):
            workspace.add_event(make_event(f"e{number}", at=moment(number), note=f"note {number} on this pair"))
        for number in range(20):
            workspace.save_list(make_list(f"list {number}", exclude=["adidas", "puma"]))
            workspace.add_look(Look(list_name=f"list {number}", user="ann", at=NOON, seen=("puma", "adidas")))
        workspace.compact()
        expected = read(workspace)
    content, choice, outcomes = original.read_bytes(), random.Random(1), Counter[str]()
    for _ in range(150):
        for log in tmp_path.glob("w.db-*"):
            log.unlink()
        path.write_bytes(flipped(content, [choice.randrange(8 * len(content))]))
        try:
            with closing(SqliteWorkspace(path)) as workspace:
                is_found = bool(workspace.damage())
                outcomes["same" if read(workspace) == expected else f"other, found: {is_found}"] += 1
        except IndexUnavailable:
            outcomes["refused"] += 1
    assert outcomes["other, found: False"] == 0
    # A changed key in an index of the file hides a row, which only the check finds.
    assert outcomes["other, found: True"] < 8
    assert outcomes["refused"] > 20
