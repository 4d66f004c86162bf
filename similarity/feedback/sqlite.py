"""The embedded workspace: one SQLite file next to the file of the index, for threads and processes of one machine."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from similarity.feedback import forgetting
from similarity.feedback.protocol import FeedbackEvent, Forgotten, Look, Place, SavedList, Shown, Verdict
from similarity.feedback.rules import (
    MAX_PAGE,
    PAGE,
    erased_meanwhile,
    list_exists,
    microseconds,
    page_sizes,
    same_or_conflict,
    time_of,
    unknown_list,
)
from similarity.feedback.sqlite_file import WORKSPACE_FILE
from similarity.formats.json_text import read_json
from similarity.index.name_hashes import ErasedCompanies
from similarity.index.sqlite.backup import staged_copy
from similarity.index.sqlite.compaction import rewrite
from similarity.index.sqlite.connections import Connections
from similarity.index.sqlite.files import damaged_pages
from similarity.index.sqlite.records import Records, any_text, first_lines
from similarity.index.sqlite.rows import Row

MAX_COMPARISONS = 10
"""A limit, because a user who keeps saving lists must not delay an erasure forever."""
FEW_TEXTS = 20
"""Comparing this many texts takes about a second at most."""


class SqliteWorkspace:
    """A `Workspace` in the file `path`, which is created with its folder if it does not exist.

    `busy_timeout`: seconds that a write waits for the write of another process.

    Raises:
        IndexUnavailable: the file cannot be used; the message gives the reason and what to do.
    """

    def __init__(self, path: str | Path, *, busy_timeout: float = 30.0) -> None:
        self.path = Path(path)
        self._file = Connections(self.path, WORKSPACE_FILE, busy_timeout=busy_timeout)

    def erasure_mark(self) -> str:
        with self._file.reading() as connection:
            return _read_mark(connection)

    def add_event(self, event: FeedbackEvent, *, since: str | None = None) -> FeedbackEvent:
        with self._saving(since) as connection:
            known = EVENTS.read(connection, "WHERE user = ? AND id = ?", (event.user, event.id))
            if not known:
                EVENTS.write(connection, [_event_row(event)])
                return event
        return same_or_conflict(event, known=known[0])

    def events(self, *, company: str = "", user: str = "", before: Place | None = None) -> Iterator[FeedbackEvent]:
        # Each page sorts all events of a company, so few large pages are read.
        for size in page_sizes(MAX_PAGE if company else PAGE):
            page = self._page(company, user, before, size)
            yield from page
            if len(page) < size:
                return
            before = page[-1].place

    def save_list(self, saved: SavedList, *, since: str | None = None, replace: bool = True) -> bool:
        with self._saving(since) as connection:
            is_new = not _holds_list(connection, saved.name)
            if not (is_new or replace):
                raise list_exists(saved.name)
            LISTS.write(connection, [_list_row(saved)])
        return is_new

    def change_list(
        self, name: str, change: Callable[[SavedList], SavedList], *, since: str | None = None
    ) -> SavedList:
        with self._saving(since) as connection:
            changed = change(_read_list(connection, name))
            LISTS.write(connection, [_list_row(changed)])
        return changed

    def lists(self) -> list[SavedList]:
        with self._file.reading() as connection:
            return LISTS.read(connection, "NOT INDEXED ORDER BY name")

    def list_lengths(self) -> dict[str, int]:
        with self._file.reading() as connection, any_text(connection):
            return dict(connection.execute("SELECT name, length(question) FROM lists NOT INDEXED"))

    def saved_list(self, name: str) -> SavedList:
        with self._file.reading() as connection:
            return _read_list(connection, name)

    def remove_list(self, name: str) -> None:
        with self._file.writing() as connection:
            if not _removed(connection, name):
                raise unknown_list(name)

    def add_look(self, look: Look, *, since: str | None = None) -> None:
        with self._saving(since) as connection:
            if not _holds_list(connection, look.list_name):
                raise unknown_list(look.list_name)
            LOOKS.write(connection, [_look_row(look)])

    def last_look(self, name: str, user: str) -> Look | None:
        with self._file.reading() as connection:
            found = LOOKS.read(connection, "WHERE list_name = ? AND user = ?", (name, user))
        return found[0] if found else None

    def looks(self, user: str) -> list[Look]:
        with self._file.reading() as connection:
            return LOOKS.read(connection, "WHERE user = ? ORDER BY list_name", (user,))

    def forget_companies(self, companies: ErasedCompanies) -> dict[str, Forgotten]:
        for _ in range(MAX_COMPARISONS):
            if self._compare_texts(companies) <= FEW_TEXTS:
                break
        with self._file.writing() as connection:
            companies.require(companies.ids)  # the comparison may have taken minutes
            connection.execute("UPDATE erasure_mark SET mark = hex(randomblob(16))")
            return forgetting.counts_by_company(
                companies,
                events=_forget_events(connection, companies),
                lists=_forget_in_lists(connection, companies),
                looks=_forget_in_looks(connection, companies),
                notes=_forget_in_notes(connection, companies),
            )

    def _compare_texts(self, companies: ErasedCompanies) -> int:
        """Compare all texts with the names, which caches the results; return the number of texts that were not cached.

        Long lists take minutes. Other writes are not held up meanwhile. The erasure itself then compares only the texts
        that were added since the last call.
        """
        before = companies.compared
        with self._file.reading() as connection:
            lists, events = LISTS.read(connection, "NOT INDEXED"), EVENTS.read(connection, "NOT INDEXED")
        for saved in lists:
            forgetting.forgotten_list(saved, companies, {})
        for event in events:
            forgetting.forgotten_event(event, companies)
        return companies.compared - before

    def compact(self) -> bool:
        with self._file.borrowed() as connection:
            rewrite(connection, path=self.path)
        return True

    def check(self) -> None:
        with self._file.reading() as connection:
            connection.execute("SELECT EXISTS (SELECT 1 FROM events), EXISTS (SELECT 1 FROM lists)").fetchone()

    def damage(self) -> list[str]:
        """Return up to a hundred lines that describe damage of the file; empty if there is none."""
        with self._file.reading() as connection:
            tables = (table.damage(connection) for table in (EVENTS, LISTS, LOOKS))
            return first_lines(chain(damaged_pages(connection), *tables))

    @contextmanager
    def staged_backup(self, path: str | Path, *, overwrite: bool = False) -> Iterator[Callable[[], None]]:
        """Copy the workspace while it is in use, check the copy, and yield a function that renames it to `path`.

        Raises:
            InvalidInput: the file exists (unless `overwrite`), is in use, or is the workspace itself.
            IndexUnavailable: the workspace cannot be read or is damaged.
        """
        with (
            self._file.borrowed() as connection,
            staged_copy(
                connection,
                kind="workspace",
                source=self.path,
                target=Path(path),
                overwrite=overwrite,
            ) as give_name,
        ):
            yield give_name

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _saving(self, since: str | None) -> Iterator[sqlite3.Connection]:
        """Yield the connection that may write. Raises ErasedMeanwhile if the erasure mark is no longer `since`."""
        with self._file.writing() as connection:
            if since is not None and _read_mark(connection) != since:
                raise erased_meanwhile()
            yield connection

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
        newest = "ORDER BY at DESC, user DESC, id DESC"
        # Notes are long, and a sort that carries them is twenty times slower.
        keys = f"SELECT user, id FROM events WHERE {' AND '.join(conditions)} {newest} LIMIT ?"
        with self._file.reading() as connection:
            return EVENTS.read(connection, f"WHERE (user, id) IN ({keys}) {newest}", [*values, size])


def _forget_events(connection: sqlite3.Connection, companies: ErasedCompanies) -> Counter[str]:
    # Without the SQL indexes: a damaged index may miss an event.
    where = "NOT INDEXED WHERE anchor IN (SELECT value FROM json_each(?1)) OR hit IN (SELECT value FROM json_each(?1))"
    ids = (_json(sorted(companies.ids)),)
    pairs = connection.execute(f"SELECT anchor, hit FROM events {where}", ids).fetchall()
    connection.execute(f"DELETE FROM events {where}", ids)
    return Counter(company_id for pair in pairs for company_id in pair if company_id in companies.ids)


def _forget_in_lists(connection: sqlite3.Connection, companies: ErasedCompanies) -> Counter[str]:
    changed = Counter[str]()
    lists = LISTS.read(connection, "NOT INDEXED")
    renamed = forgetting.renamed_lists(lists, companies)
    for saved in lists:
        without, found = forgetting.forgotten_list(saved, companies, renamed)
        if without is saved:
            continue
        changed.update(found)
        if without is not None:
            LISTS.write(connection, [_list_row(without)])
        if without is not None and without.name != saved.name:
            looks = LOOKS.read(connection, "WHERE list_name = ?", (saved.name,))
            LOOKS.write(connection, [_look_row(replace(look, list_name=without.name)) for look in looks])
        if without is None or without.name != saved.name:
            _removed(connection, saved.name)
    return changed


def _forget_in_notes(connection: sqlite3.Connection, companies: ErasedCompanies) -> Counter[str]:
    cleared = Counter[str]()
    for event in EVENTS.read(connection, "NOT INDEXED"):
        without, found = forgetting.forgotten_event(event, companies)
        if found:
            EVENTS.write(connection, [_event_row(without)])
            cleared.update(found)
    return cleared


def _forget_in_looks(connection: sqlite3.Connection, companies: ErasedCompanies) -> Counter[str]:
    changed = Counter[str]()
    for look in LOOKS.read(connection, "NOT INDEXED"):
        without, found = forgetting.forgotten_look(look, companies)
        if found:
            LOOKS.write(connection, [_look_row(without)])
            changed.update(found)
    return changed


def _read_mark(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT max(mark) FROM erasure_mark").fetchone()[0])


def _removed(connection: sqlite3.Connection, name: str) -> bool:
    """Remove a list and all looks at it; return whether it existed."""
    return connection.execute("DELETE FROM lists WHERE name = ?", (name,)).rowcount > 0


def _read_list(connection: sqlite3.Connection, name: str) -> SavedList:
    found = LISTS.read(connection, "WHERE name = ?", (name,))
    if not found:
        raise unknown_list(name)
    return found[0]


def _holds_list(connection: sqlite3.Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM lists WHERE name = ?", (name,)).fetchone() is not None


def _event_row(event: FeedbackEvent) -> Row:
    shown = event.shown
    return (
        *(event.user, event.id, microseconds(event.at), event.anchor, event.hit, event.verdict.value, shown.rank),
        *(_real(shown.score), _real(shown.probability), shown.generation, shown.bundle_id, event.note),
    )


def _real(number: float | None) -> float | None:
    """Return the number in the form in which SQLite returns it from a REAL column: a float, and 0.0 for -0.0.

    The checksum of the row depends on it.
    """
    return None if number is None else float(number) + 0.0


def _event_of(row: Row) -> FeedbackEvent:
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


def _list_row(saved: SavedList) -> Row:
    return saved.name, _json(saved.question), saved.saved_by, microseconds(saved.saved_at)


def _list_of(row: Row) -> SavedList:
    name, question, by, at = row
    return SavedList(name=name, question=read_json(question), saved_by=by, saved_at=time_of(at))


def _look_row(look: Look) -> Row:
    return look.list_name, look.user, microseconds(look.at), _json(look.seen)


def _look_of(row: Row) -> Look:
    name, user, at, seen = row
    return Look(list_name=name, user=user, at=time_of(at), seen=tuple(read_json(seen)))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


EVENTS = Records(
    "events",
    key=("user", "id"),
    values=("at", "anchor", "hit", "verdict", "rank", "score", "probability", "generation", "bundle_id", "note"),
    decode=_event_of,
)
LISTS = Records("lists", key=("name",), values=("question", "saved_by", "saved_at"), decode=_list_of)
LOOKS = Records("looks", key=("list_name", "user"), values=("at", "seen"), decode=_look_of)
