"""The write-ahead log beside an SQLite file of ours (`-wal`, with its shared memory `-shm`), and what happens to it.

A commit lies in the log until SQLite copies it to the file. A log that is replaced, cut off or damaged loses commits
without a word from SQLite, so we look for ourselves. Format: sqlite.org/fileformat2.html#walformat.

The file and its shared memory are never opened here, because closing either would end SQLite's locks on it
(sqlite.org/howtocorrupt.html, "Posix advisory locks canceled").
"""

import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import IndexUnavailable

FileIdentity: TypeAlias = tuple[int, int]
"""Device and inode."""
Words: TypeAlias = NDArray[np.uint32]

NO_SEED: Words = np.zeros((1, 2), np.uint32)
SECONDS_BETWEEN_TRIES = 0.01
MILLISECONDS_WITHOUT_WRITERS = 500
SECONDS_FOR_WRITERS = 0.15  # a waiting writer tries every tenth of a second
# The first bytes of a log whose checksums are over little-endian and over big-endian words.
MAGIC = {b"\x37\x7f\x06\x82": "<u4", b"\x37\x7f\x06\x83": ">u4"}
HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
BLOCK_BYTES = 8 * 1024 * 1024
PUBLIC_MOVED = "the file of the {kind} was moved or deleted while in use; put it back or restart the service"
PUBLIC_DAMAGED_LOG = "the write-ahead log of the {kind} is damaged; the service's log says what to do"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """What tells a file, its log and its shared memory from any others at their paths."""

    file: FileIdentity
    log: FileIdentity
    shared_memory: FileIdentity

    @classmethod
    def at(cls, path: Path) -> "OpenedFile":
        """Return what is at `path` now. FileNotFoundError if one of the three is missing."""
        return cls(_identity(path), _identity(_log_of(path)), _identity(_shared_memory_of(path)))


class _LogState(NamedTuple):
    header: bytes
    size: int

    @classmethod
    def of(cls, path: Path) -> "_LogState":
        with _log_of(path).open("rb", buffering=0) as log:
            while True:
                header = os.pread(log.fileno(), HEADER_BYTES, 0)
                size = os.fstat(log.fileno()).st_size
                if header == os.pread(log.fileno(), HEADER_BYTES, 0):  # else it began anew in between
                    return cls(header, size)

    def may_follow(self, before: "_LogState") -> bool:
        """Whether SQLite may have brought the log from `before` to this state.

        It empties a log only when the file holds all of it, begins one anew with another header, and cuts nothing off.
        """
        if self.header == before.header:
            return self.size >= before.size
        return not self.size or (self.header[:4] in MAGIC and len(self.header) == HEADER_BYTES)


class WatchedFile:
    """A file in use, with its log and its shared memory. `kind` is what messages call it."""

    def __init__(self, path: Path, *, kind: str) -> None:
        self._path = path
        self._kind = kind
        self._lock = threading.Lock()
        self._opened = OpenedFile.at(path)
        self._log = _LogState.of(path)

    def require_unharmed(self) -> None:
        """Raises IndexUnavailable unless all three are still those that were opened, and nothing was cut off.

        An open file that was deleted or replaced still takes writes, which nobody would ever read. A log that somebody
        cut off takes them behind a hole. Without their shared memory two processes write over each other's commits.
        """
        try:
            with self._lock:
                log = _LogState.of(self._path)
                is_unharmed = OpenedFile.at(self._path) == self._opened and log.may_follow(self._log)
                if is_unharmed:
                    self._log = log
        except OSError:
            is_unharmed = False
        if not is_unharmed:
            raise IndexUnavailable(
                f"the file {self._path} or its log ({self._path.name}-wal, {self._path.name}-shm) was moved, deleted "
                "or cut off while in use: put it back or restart the service",
                reason=PUBLIC_MOVED.format(kind=self._kind),
            )


def use_write_ahead_log(connection: sqlite3.Connection, *, path: Path, busy_timeout: float) -> None:
    """Switches the file to a write-ahead log; IndexUnavailable where its file system cannot hold one."""
    # SQLite does not wait by itself here when two processes open a new file at the same moment.
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(SECONDS_BETWEEN_TRIES)
    if mode != "wal":
        raise IndexUnavailable(f"{path} is on a file system without shared memory; use a local disk")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Return whether the write-ahead log could be emptied within the connection's busy timeout.

    SQLite keeps writers out while it waits for readers, and gives up at once if another connection empties the log
    (sqlite.org/c3ref/wal_checkpoint_v2.html). So it is called again and again, with a short timeout and a pause.
    """
    [milliseconds] = connection.execute("PRAGMA busy_timeout").fetchone()
    deadline = time.monotonic() + milliseconds / 1000
    connection.execute(f"PRAGMA busy_timeout = {min(milliseconds, MILLISECONDS_WITHOUT_WRITERS)}")
    try:
        while True:
            [blocked, _, _] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not blocked or time.monotonic() >= deadline:
                return not blocked
            time.sleep(SECONDS_FOR_WRITERS)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


def require_readable_log(path: Path, *, kind: str) -> None:
    """Raises IndexUnavailable where damage to the log hides commits that were acknowledged.

    SQLite reads a log up to its first damaged frame and forgets the rest. Call it before the first connection:
    when the last one is closed, SQLite removes the log.
    """
    log = _log_of(path)
    header = None
    try:
        while header != (header := _LogState.of(path).header):  # another process may begin the log anew meanwhile
            hidden = _hidden_commits(log)
    except FileNotFoundError:  # nobody has the file open
        return
    if hidden:
        raise IndexUnavailable(
            f"the log {log} is damaged, which hides {hidden} commits: restore a backup; or go on without them by "
            f"`sqlite3 '{path}' 'PRAGMA wal_checkpoint(TRUNCATE)'`, and ingest again what changed last",
            reason=PUBLIC_DAMAGED_LOG.format(kind=kind),
        )


def _hidden_commits(path: Path) -> str:
    """How many acknowledged commits lie in a log behind its first damaged frame; empty for none.

    A crash cuts off one commit at most, the last, which was not acknowledged: each is on the disk before the next
    begins. The frames of an earlier run of the log are in the file already; they carry another salt than the header.
    """
    with path.open("rb") as log:
        header = log.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            return ""
        order = MAGIC.get(header[:4], "")
        last = _big_endian(header[24:])
        if not order or not np.array_equal(_checksums(header[:24], order, NO_SEED), last):
            return "all" if log.read(1) else ""
        frame_bytes = FRAME_HEADER_BYTES + int.from_bytes(header[8:12], "big")
        commits, is_readable = 0, True
        while block := log.read(BLOCK_BYTES // frame_bytes * frame_bytes):
            count = len(block) // frame_bytes
            frames = np.frombuffer(block, np.uint8, count * frame_bytes).reshape(count, frame_bytes)
            is_of_run = (frames[:, 8:16] == np.frombuffer(header[16:24], np.uint8)).all(axis=1)
            stored = _big_endian(frames[:, 16:24].tobytes())
            content = np.concatenate([frames[:, :8], frames[:, FRAME_HEADER_BYTES:]], axis=1).tobytes()
            computed = _checksums(content, order, np.concatenate([last, stored])[:count])
            follows = is_of_run & (computed == stored).all(axis=1)
            # A frame that the next one follows was whole, whatever salt it has now.
            is_of_run[:-1] |= follows[1:]
            is_commit = is_of_run & frames[:, 4:8].any(axis=1)  # how many pages the file then has; else 0
            if is_readable:
                is_readable = bool(follows.all())
                is_commit[: count if is_readable else follows.argmin()] = False
            last = stored[-1:]
            commits += int(is_commit.sum())
    return f"the last {commits}" if commits > 1 else ""


def _checksums(content: bytes, order: str, seeds: Words) -> Words:
    """SQLite's checksums `[n, 2]` over n equal parts of `content`, each begun with its seed `[n, 2]`."""
    words = np.frombuffer(content, order).reshape(len(seeds), -1).astype(np.uint32).T.copy()
    first, second = seeds.astype(np.uint32).T.copy()
    for left, right in zip(words[::2], words[1::2], strict=True):
        first += left + second
        second += right + first
    return np.stack([first, second], axis=1)


def _big_endian(content: bytes) -> Words:
    return np.frombuffer(content, ">u4").reshape(-1, 2).astype(np.uint32)


def _log_of(path: Path) -> Path:
    # SQLite puts it beside the file that a symbolic link leads to.
    path = path.resolve()
    return path.with_name(f"{path.name}-wal")


def _shared_memory_of(path: Path) -> Path:
    path = path.resolve()
    return path.with_name(f"{path.name}-shm")


def _identity(path: Path) -> FileIdentity:
    found = path.stat()
    return found.st_dev, found.st_ino
