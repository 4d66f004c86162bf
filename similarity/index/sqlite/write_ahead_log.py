"""Watches and empties the write-ahead log of an SQLite file (`-wal`, with its shared memory `-shm`).

A commit is in the log until SQLite copies it to the file. If a log is replaced, truncated or damaged, SQLite loses
commits without an error, so this module checks it. Its format: sqlite.org/fileformat2.html#walformat.

The file is never opened here, because closing it would release SQLite's locks
(sqlite.org/howtocorrupt.html, "Posix advisory locks canceled"); `checkpoints` opens the shared memory.
"""

import os
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import IndexUnavailable
from similarity.index.sqlite.checkpoints import FileState, open_shared_memory
from similarity.index.sqlite.files import real_path

Words: TypeAlias = NDArray[np.uint32]

NO_SEED: Words = np.zeros((1, 2), np.uint32)
LOOKS_AT_LOG = 3
SECONDS_BETWEEN_TRIES = 0.01
MILLISECONDS_WITHOUT_WRITERS = 500
SECONDS_FOR_WRITERS = 0.15  # a waiting writer tries every tenth of a second
# The first bytes of a log whose checksums are over little-endian and over big-endian words.
MAGIC = {b"\x37\x7f\x06\x82": "<u4", b"\x37\x7f\x06\x83": ">u4"}
HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
BLOCK_BYTES = 8 * 1024 * 1024
PUBLIC_MOVED = "the file of the {kind} was moved or deleted while in use; put it back or restart the service"
PUBLIC_OVERWRITTEN = "the file of the {kind} was overwritten while in use; the service's log says what to do"
PUBLIC_DAMAGED_LOG = "the write-ahead log of the {kind} is damaged; the service's log says what to do"


class _LogState(NamedTuple):
    header: bytes
    size: int

    @classmethod
    def of(cls, path: Path) -> "_LogState":
        """Return the state of the log with this path."""
        log = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while True:
                header = os.pread(log, HEADER_BYTES, 0)
                size = os.fstat(log).st_size
                if header == os.pread(log, HEADER_BYTES, 0):  # otherwise it was begun again meanwhile
                    return cls(header, size)
        finally:
            os.close(log)

    def may_follow(self, before: "_LogState") -> bool:
        """Return whether SQLite may have changed the log from `before` to this state.

        SQLite empties a log only when the file contains all of it, begins it again with another header, and never
        truncates it otherwise.
        """
        if self.header == before.header:
            return self.size >= before.size
        return not self.size or (self.header[:4] in MAGIC and len(self.header) == HEADER_BYTES)


class WatchedFile:
    """A file in use, with its log and its shared memory. `kind`: what messages call the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, kind: str) -> None:
        self._path = path
        self._kind = kind
        self._lock = threading.Lock()
        # Found once, because a search asks six times whether the file is unharmed. If `path` is a link that later leads
        # elsewhere, its identity changes.
        self._log_path, self._shared_path = _beside(path, "-wal"), _beside(path, "-shm")
        self._opened = self._identities()
        self._shared_memory = open_shared_memory(self._shared_path)
        if FileState.of(path, self._shared_memory).is_being_copied:
            with suppress(sqlite3.OperationalError):  # such as a full disk: a later checkpoint will do
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._log = _LogState.of(self._log_path)
        self._file = FileState.of(path, self._shared_memory)
        self._is_overwritten = False

    def require_unharmed(self) -> None:
        """Raise IndexUnavailable unless the three files are still those that were opened, the log is not truncated,
        and only SQLite wrote to the file.

        Writes to an open file that was deleted or replaced succeed, but nobody can read them. Writes to a truncated log
        are after a gap. Without shared memory, two processes overwrite each other's commits. An older copy that was
        written over the file lacks what was copied from the log before.
        """
        try:
            with self._lock:
                is_unharmed = self._identities() == self._opened and self._follows()
        except OSError:
            is_unharmed = False
        if self._is_overwritten:
            raise IndexUnavailable(
                f"another program wrote to the file {self._path} while in use, so acknowledged writes may be missing: "
                f"stop the service, delete the file, {self._path.name}-wal and {self._path.name}-shm, and restore a "
                "backup",
                reason=PUBLIC_OVERWRITTEN.format(kind=self._kind),
            )
        if not is_unharmed:
            raise IndexUnavailable(
                f"the file {self._path} or its log ({self._path.name}-wal, {self._path.name}-shm) was moved, deleted "
                "or cut off while in use: put it back or restart the service",
                reason=PUBLIC_MOVED.format(kind=self._kind),
            )

    def _identities(self) -> list[tuple[int, int]]:
        """Return device and inode of the file, its log and its shared memory. Raises OSError if one is missing."""
        found = [each.stat() for each in (self._path, self._log_path, self._shared_path)]
        return [(each.st_dev, each.st_ino) for each in found]

    def _follows(self) -> bool:
        """Return whether SQLite may have changed file and log since the last call that returned true."""
        log, file = _LogState.of(self._log_path), FileState.of(self._path, self._shared_memory)
        if not log.may_follow(self._log):
            return False
        # A later checkpoint would seem to explain the change, so it is remembered.
        self._is_overwritten = self._is_overwritten or not file.may_follow(self._file)
        self._log, self._file = log, file
        return not self._is_overwritten


def use_write_ahead_log(connection: sqlite3.Connection, *, path: Path, busy_timeout: float) -> None:
    """Switch the file to a write-ahead log. Raises IndexUnavailable if its file system does not support this."""
    # SQLite does not wait here if two processes open a new file at the same moment.
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
    """Empty the write-ahead log; return whether this succeeded within the connection's busy timeout.

    SQLite keeps writers out while it waits for readers, and gives up at once if another connection empties the log
    (sqlite.org/c3ref/wal_checkpoint_v2.html). So the checkpoint is repeated, with a short timeout and a pause.
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
    """Raise IndexUnavailable if damage to the log hides acknowledged commits.

    SQLite reads a log up to its first damaged frame, and ignores the rest. Call this before the first connection,
    because SQLite removes the log when the last connection is closed.
    """
    log = _beside(path, "-wal")
    header, hidden = None, ""
    try:
        for _ in range(LOOKS_AT_LOG):  # a frame may be read while another process writes it
            while header != (header := _LogState.of(log).header):  # the log may be restarted meanwhile
                hidden = _hidden_commits(log)
            if not hidden:
                return
            header = None
            time.sleep(SECONDS_BETWEEN_TRIES)
    except FileNotFoundError:  # no process has the file open
        return
    raise IndexUnavailable(
        f"the log {log} is damaged, which hides {hidden} commits: restore a backup; or go on without them by "
        f"`sqlite3 '{path}' 'PRAGMA wal_checkpoint(TRUNCATE)'`, and ingest the last changes again",
        reason=PUBLIC_DAMAGED_LOG.format(kind=kind),
    )


def _hidden_commits(path: Path) -> str:
    """Return how many acknowledged commits are after the first damaged frame of a log, as text; empty for none.

    A crash truncates at most the last commit, which was not acknowledged: each commit is on the disk before the next
    begins. Frames of an earlier run of the log are already in the file; their salt is not that of the header.
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
        # Less than a frame is what a crash left of the last one.
        while count := len(block := log.read(BLOCK_BYTES // frame_bytes * frame_bytes)) // frame_bytes:
            frames = np.frombuffer(block, np.uint8, count * frame_bytes).reshape(count, frame_bytes)
            is_of_run = (frames[:, 8:16] == np.frombuffer(header[16:24], np.uint8)).all(axis=1)
            stored = _big_endian(frames[:, 16:24].tobytes())
            content = np.concatenate([frames[:, :8], frames[:, FRAME_HEADER_BYTES:]], axis=1).tobytes()
            computed = _checksums(content, order, np.concatenate([last, stored])[:count])
            follows = is_of_run & (computed == stored).all(axis=1)
            # A frame is valid if the next frame follows it, even if its own salt is damaged now.
            is_of_run[:-1] |= follows[1:]
            is_commit = is_of_run & frames[:, 4:8].any(axis=1)  # the size of the file in pages; 0 in other frames
            if is_readable:
                is_readable = bool(follows.all())
                is_commit[: count if is_readable else follows.argmin()] = False
            last = stored[-1:]
            commits += int(is_commit.sum())
    return f"the last {commits}" if commits > 1 else ""


def _checksums(content: bytes, order: str, seeds: Words) -> Words:
    """Return SQLite's checksums `[n, 2]` of n equal parts of `content`, each with its seed from `[n, 2]`."""
    words = np.frombuffer(content, order).reshape(len(seeds), -1).astype(np.uint32).T.copy()
    first, second = seeds.astype(np.uint32).T.copy()
    for left, right in zip(words[::2], words[1::2], strict=True):
        first += left + second
        second += right + first
    return np.stack([first, second], axis=1)


def _big_endian(content: bytes) -> Words:
    return np.frombuffer(content, ">u4").reshape(-1, 2).astype(np.uint32)


def _beside(path: Path, suffix: str) -> Path:
    # SQLite creates its further files next to the target of a symbolic link.
    path = real_path(path)
    return path.with_name(f"{path.name}{suffix}")
