"""A copy of an SQLite file of ours, made while it is in use."""

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from similarity.errors import IndexUnavailable, InvalidInput


def back_up(
    connection: sqlite3.Connection, *, kind: str, source: Path, target: Path, overwrite: bool, if_damaged: str
) -> None:
    """Copies the file behind `connection` to `target`: whole and checked, or not at all.

    The copy is made beside the target and takes its name at the very end, so a crash leaves at worst
    a file called `.<target>.….partial`. `kind` is what the file holds, `if_damaged` what to do then.

    Raises:
        InvalidInput: the target exists (unless `overwrite`), is in use, or is the source itself.
        IndexUnavailable: the copy is damaged, so the source is too.
    """
    refuse_target(source, target, kind=kind, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
    os.close(handle)
    partial = Path(name)
    try:
        with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with no log beside it
            _check(copy, source, if_damaged)
        _flush(partial)
        refuse_target(source, target, kind=kind, overwrite=overwrite)
        partial.replace(target)
        _flush(target.parent)
    finally:
        partial.unlink(missing_ok=True)


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
