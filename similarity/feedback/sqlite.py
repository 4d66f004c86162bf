"""The embedded workspace: one SQLite file beside the index's, for threads and processes of one machine."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from similarity.errors import SimilarityError
from similarity.feedback.forgetting import forgotten_list_name, forgotten_question
from similarity.feedback.protocol import (
    FeedbackEvent,
    Forgotten,
    Look,
    Place,
    SavedList,
    Shown,
    Verdict,
)
from similarity.feedback.rules import microseconds, page_sizes, same_or_conflict, time_of, unknown_list
from similarity.feedback.sqlite_file import WORKSPACE_FILE, rewrite
from similarity.formats.json_text import read_json
from similarity.index.name_hashes import CompanyNames
from similarity.index.sqlite.backup import back_up
from similarity.index.sqlite.connections import Connections
from similarity.index.sqlite.files import DamagedRow, damaged_pages

COLUMNS = "user, id, at, anchor, hit, verdict, rank, score, probability, generation, bundle_id, note"
LIST_COLUMNS = "name, question, saved_by, saved_at"
LOOK_COLUMNS = "list_name, user, at, seen"

FREE_TEXTS = ("note", "generation", "bundle_id")  # of an event
Decoded = TypeVar("Decoded")


class SqliteWorkspace:
    """A `Workspace` in the file `path`, made with its folder if it is not there yet.

    `busy_timeout`: seconds a write waits for another process's write.

    Raises:
        IndexUnavailable: the file cannot be used; the message says why and what to do.
    """

    def __init__(self, path: str | Path, *, busy_timeout: float = 30.0) -> None:
        self.path = Path(path)
        self._file = Connections(self.path, WORKSPACE_FILE, busy_timeout=busy_timeout)

    def add_event(self, event: FeedbackEvent) -> FeedbackEvent:
        with self._file.writing() as connection:
            row = connection.execute(
                f"SELECT {COLUMNS} FROM events WHERE user = ? AND id = ?", (event.user, event.id)
            ).fetchone()
            if row is None:
                connection.execute(f"INSERT INTO events ({COLUMNS}) VALUES (?{', ?' * 11})", _row_of(event))
                return event
            known = _read(_event_of, row)
        return same_or_conflict(event, known=known)

    def events(self, *, company: str = "", user: str = "", before: Place | None = None) -> Iterator[FeedbackEvent]:
        for size in page_sizes():
            page = self._page(company, user, before, size)
            yield from page
            if len(page) < size:
                return
            before = page[-1].place

    def save_list(self, saved: SavedList) -> bool:
        with self._file.writing() as connection:
            is_new = not _holds_list(connection, saved.name)
            connection.execute(
                f"INSERT INTO lists ({LIST_COLUMNS}) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO "
                "UPDATE SET question = excluded.question, saved_by = excluded.saved_by, saved_at = excluded.saved_at",
                (saved.name, _json(saved.question), saved.saved_by, microseconds(saved.saved_at)),
            )
        return is_new

    def lists(self) -> list[SavedList]:
        with self._file.reading() as connection:
            rows = connection.execute(f"SELECT {LIST_COLUMNS} FROM lists ORDER BY name")
            return [_read(_list_of, row) for row in rows]

    def saved_list(self, name: str) -> SavedList:
        with self._file.reading() as connection:
            row = connection.execute(f"SELECT {LIST_COLUMNS} FROM lists WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise unknown_list(name)
            return _read(_list_of, row)

    def remove_list(self, name: str) -> None:
        with self._file.writing() as connection:
            if not connection.execute("DELETE FROM lists WHERE name = ?", (name,)).rowcount:
                raise unknown_list(name)

    def add_look(self, look: Look) -> None:
        with self._file.writing() as connection:
            if not _holds_list(connection, look.list_name):
                raise unknown_list(look.list_name)
            connection.execute(
                f"INSERT OR REPLACE INTO looks ({LOOK_COLUMNS}) VALUES (?, ?, ?, ?)",
                (look.list_name, look.user, microseconds(look.at), _json(look.seen)),
            )

    def last_look(self, name: str, user: str) -> Look | None:
        with self._file.reading() as connection:
            row = connection.execute(
                f"SELECT {LOOK_COLUMNS} FROM looks WHERE list_name = ? AND user = ?", (name, user)
            ).fetchone()
            return None if row is None else _read(_look_of, row)

    def looks(self, user: str) -> list[Look]:
        with self._file.reading() as connection:
            query = f"SELECT {LOOK_COLUMNS} FROM looks WHERE user = ? ORDER BY list_name"
            return [_read(_look_of, row) for row in connection.execute(query, (user,))]

    def forget_company(self, names: CompanyNames) -> Forgotten:
        with self._file.writing() as connection:
            deleted = connection.execute("DELETE FROM events WHERE anchor = ?1 OR hit = ?1", (names.id,))
            return Forgotten(
                events=deleted.rowcount,
                lists=_forget_in_lists(connection, names),
                looks=_forget_in_looks(connection, names.id),
                notes=_forget_in_notes(connection, names),
            )

    def compact(self) -> bool:
        rewrite(self._file, self.path)
        return True

    def check(self) -> None:
        with self._file.reading() as connection:
            connection.execute("SELECT EXISTS (SELECT 1 FROM events), EXISTS (SELECT 1 FROM lists)").fetchone()

    def damage(self) -> list[str]:
        """What is wrong with the file, one line each and one a table; empty where nothing is."""
        with self._file.reading() as connection:
            found = list(damaged_pages(connection))
            for table, columns, decode in TABLES:
                try:
                    for row in connection.execute(f"SELECT {columns} FROM {table}"):
                        _read(decode, row)
                except (sqlite3.DatabaseError, DamagedRow) as problem:
                    found.append(f"{table}: {problem!s:.200}")
        return found

    def backup(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Copies the workspace to another file while it is in use, and checks the copy.

        Raises:
            InvalidInput: the file exists (unless `overwrite`), is in use, or is the workspace itself.
            IndexUnavailable: the workspace cannot be read or is damaged.
        """
        with self._file.borrowed() as connection:
            back_up(
                connection,
                kind="workspace",
                source=self.path,
                target=Path(path),
                overwrite=overwrite,
                if_damaged="restore an earlier backup",
            )

    def close(self) -> None:
        self._file.close()

    def _page(self, company: str, user: str, before: Place | None, size: int) -> list[FeedbackEvent]:
        conditions, values = ["TRUE"], list[object]()
        if company:
            conditions.append("(anchor = ? OR hit = ?)")
            values += [company, company]
        if user:
            conditions.append("user = ?")
            values.append(user)
        if before:
            conditions.append("(at, user, id) < (?, ?, ?)")
            values += [microseconds(before[0]), *before[1:]]
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM events WHERE {' AND '.join(conditions)} "
                "ORDER BY at DESC, user DESC, id DESC LIMIT ?",
                [*values, size],
            )
            return [_read(_event_of, row) for row in rows]


def _forget_in_lists(connection: sqlite3.Connection, names: CompanyNames) -> int:
    changed = 0
    # Looks name the list they are at: they may do so before it is renamed, within this transaction.
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for name, text, at in connection.execute("SELECT name, question, saved_at FROM lists").fetchall():
        question = _read(read_json, text)
        without, renamed = forgotten_question(question, names), forgotten_list_name(name, at, names)
        if without is None:
            connection.execute("DELETE FROM lists WHERE name = ?", (name,))
        elif without is not question or renamed != name:
            values = (renamed, _json(without), name)
            connection.execute("UPDATE lists SET name = ?, question = ? WHERE name = ?", values)
            connection.execute("UPDATE looks SET list_name = ? WHERE list_name = ?", (renamed, name))
        else:
            continue
        changed += 1
    return changed


def _forget_in_notes(connection: sqlite3.Connection, names: CompanyNames) -> int:
    """Also in the names of the generation and bundle that a client says it was shown by: they are free text."""
    cleared: set[tuple[str, str]] = set()
    for column in FREE_TEXTS:
        rows = connection.execute(f"SELECT user, id, {column} FROM events WHERE {column} <> ''")
        found = [(user, event_id) for user, event_id, text in rows if names.are_in(text)]
        connection.executemany(f"UPDATE events SET {column} = '' WHERE user = ? AND id = ?", found)
        cleared.update(found)
    return len(cleared)


def _forget_in_looks(connection: sqlite3.Connection, company_id: str) -> int:
    changed = 0
    for name, user, text in connection.execute("SELECT list_name, user, seen FROM looks").fetchall():
        seen = _read(read_json, text)
        if company_id in seen:
            without = _json([each for each in seen if each != company_id])
            connection.execute("UPDATE looks SET seen = ? WHERE list_name = ? AND user = ?", (without, name, user))
            changed += 1
    return changed


def _holds_list(connection: sqlite3.Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM lists WHERE name = ?", (name,)).fetchone() is not None


def _read(decode: Callable[[Any], Decoded], stored: Any) -> Decoded:
    """The record of a row. DamagedRow if no record could have been stored so."""
    try:
        return decode(stored)
    except (ValueError, TypeError, OverflowError, SimilarityError) as error:
        raise DamagedRow(f"a row cannot be read: {error!s:.200}") from error


def _row_of(event: FeedbackEvent) -> tuple[object, ...]:
    shown = event.shown
    return (
        *(event.user, event.id, microseconds(event.at), event.anchor, event.hit, event.verdict.value),
        *(shown.rank, shown.score, shown.probability, shown.generation, shown.bundle_id, event.note),
    )


def _event_of(row: tuple[Any, ...]) -> FeedbackEvent:
    user, event_id, at, anchor, hit, verdict, rank, score, probability, generation, bundle_id, note = row
    return FeedbackEvent(
        id=event_id,
        user=user,
        at=time_of(at),
        anchor=anchor,
        hit=hit,
        verdict=Verdict(verdict),
        shown=Shown(rank=rank, score=score, probability=probability, generation=generation, bundle_id=bundle_id),
        note=note,
    )


def _list_of(row: tuple[str, str, str, int]) -> SavedList:
    name, question, by, at = row
    return SavedList(name=name, question=read_json(question), saved_by=by, saved_at=time_of(at))


def _look_of(row: tuple[str, str, int, str]) -> Look:
    name, user, at, seen = row
    return Look(list_name=name, user=user, at=time_of(at), seen=tuple(read_json(seen)))


TABLES: Sequence[tuple[str, str, Callable[[Any], object]]] = (
    ("events", COLUMNS, _event_of),
    ("lists", LIST_COLUMNS, _list_of),
    ("looks", LOOK_COLUMNS, _look_of),
)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
