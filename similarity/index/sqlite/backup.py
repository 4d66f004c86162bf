"""A copy of an SQLite file of ours, made while it is in use."""

import fcntl
import glob
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from similarity.errors import IndexUnavailable, InvalidInput


def back_up(
    connection: sqlite3.Connection, *, kind: str, source: Path, target: Path, overwrite: bool, if_damaged: str
) -> None:
    """Copies the file behind `connection` to `target`: whole and checked, or not at all.

    The copy is made beside the target and takes its name at the very end. A crash leaves at worst a file called
    `.<target>.….partial`, which the next backup removes. `kind` is what the file holds, `if_damaged` what to do then.

    Raises:
        InvalidInput: the target exists (unless `overwrite`), is in use, or is the source itself.
        IndexUnavailable: the copy is damaged, so the source is too.
    """
    refuse_target(source, target, kind=kind, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _partial(target) as partial:
        with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with no log beside it
            _check(copy, source, if_damaged)
        _flush(partial)
        refuse_target(source, target, kind=kind, overwrite=overwrite)
        partial.replace(target)
        _flush(target.parent)


def refuse_target(source: Path, target: Path, *, kind: str, overwrite: bool) -> None:
    """Raises InvalidInput where a copy of `source` must not be written to `target`."""
    if not target.exists():
        return
    if not overwrite:
        raise InvalidInput(f"{target} exists; name another file, or allow it to be overwritten")
    if target.samefile(source):
        raise InvalidInput(f"{target} is the {kind} itself; name another file")
    # Its pages would be replayed into the copy.
    if target.with_name(target.name + "-wal").exists():
        raise InvalidInput(f"{target} is in use, or was not closed; name another file")


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A new file beside `target`, locked while the block runs, and gone afterwards unless it was renamed.

    Of those that are there already, the ones that nobody has locked were left by killed backups; they are removed.
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
            with suppress(OSError):  # a file system without locks: then nothing is removed either
                fcntl.flock(file, fcntl.LOCK_EX)
            yield partial
        finally:
            partial.unlink(missing_ok=True)


def _check(copy: sqlite3.Connection, source: Path, if_damaged: str) -> None:
    found = copy.execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        raise IndexUnavailable(f"{source} is damaged ({found:.200}); {if_damaged}")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
