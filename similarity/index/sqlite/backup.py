"""Copies an SQLite file while it is in use."""

import fcntl
import glob
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from similarity.errors import IndexUnavailable, InvalidInput
from similarity.index.sqlite.files import application_id

LOGS = ("-wal", "-journal", "-shm")
"""Ends of the names of files beside a database, which SQLite would apply to any other file of that name."""


@contextmanager
def staged_copy(
    connection: sqlite3.Connection,
    *,
    kind: str,
    source: Path,
    target: Path,
    overwrite: bool,
    before_named: Callable[[sqlite3.Connection], None] = lambda _: None,
) -> Iterator[Callable[[], None]]:
    """Copy the file of `connection` next to `target`, check the copy, and yield a function that renames it to `target`.

    If the function is not called, nothing remains. A crash leaves at most a file `.<target>.….partial`, which the next
    backup removes. `kind`: what messages call the file. `before_named`: called with the copy when it is complete and on
    the disk.

    Raises:
        InvalidInput: the target exists (unless `overwrite`), is in use, is the source itself or another kind of file,
            or a log of an earlier file is beside it.
        IndexUnavailable: the copy is damaged, so the source is too.
    """
    refuse_target(source, target, kind=kind, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _partial(target) as partial:
        with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with no log beside it
            found = copy.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                raise IndexUnavailable(f"{source} is damaged ({found:.200}); restore an earlier backup")
            flush(partial)
            before_named(copy)

        def give_name() -> None:
            refuse_target(source, target, kind=kind, overwrite=overwrite)
            partial.replace(target)
            flush(target.parent)

        yield give_name


def refuse_target(source: Path, target: Path, *, kind: str, overwrite: bool) -> None:
    """Raise InvalidInput if a copy of `source` must not be written to `target`."""
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file in it")
    if target.exists():
        if not overwrite:
            raise InvalidInput(f"{target} exists; name another file, or replace it with --overwrite (overwrite=True)")
        if target.samefile(source):
            raise InvalidInput(f"{target} is the {kind} itself; name another file")
        if application_id(target) not in (None, application_id(source)):
            raise InvalidInput(f"{target} is another kind of file than the {kind}; name another file")
    for log in (target.with_name(target.name + end) for end in LOGS):
        if log.exists():
            raise InvalidInput(
                f"{target} is in use, or was not closed; name another file"
                if target.exists()
                else f"{log} is left from another file, and SQLite would apply it to the copy; move it away, or name "
                "another file"
            )


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """Yield a new file next to `target`, locked during the block, and deleted afterwards unless it was renamed.

    The files of killed backups, which are not locked, are removed first.
    """
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
        with suppress(OSError), left.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for each in left.parent.glob(f"{glob.escape(left.name)}*"):  # with its journal
                each.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}.", suffix=".partial", delete=False
    ) as file:
        partial = Path(file.name)
        try:
            with suppress(OSError):  # a file system without locks, where no other backup removes the file either
                fcntl.flock(file, fcntl.LOCK_EX)
            yield partial
        finally:
            for each in target.parent.glob(f"{glob.escape(partial.name)}*"):  # with its journal
                each.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
