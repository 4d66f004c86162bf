"""Notices that another program wrote to an SQLite file in use: the file changed without a checkpoint of SQLite.

In write-ahead-log mode SQLite writes to the file itself only during a checkpoint, which copies the log to the file.
Before it, SQLite notes in the shared memory (`-shm`) how far it will copy, and afterwards how far it has copied. The
format of the shared memory: sqlite.org/walformat.html#the_wal_index_file_format.
"""

import os
import threading
from pathlib import Path
from typing import NamedTuple

SALTS = slice(32, 40)
"""They change when the log begins again."""
COPIED = slice(96, 100)
ATTEMPTED = slice(128, 132)

_handles: dict[tuple[int, int], int] = {}
"""The open shared memory files of this process, by device and inode."""
_lock = threading.Lock()


class FileState(NamedTuple):
    """Size and modification time of the file, and how far the log was copied to it."""

    size: int
    modified: int
    salts: bytes
    copied: bytes
    attempted: bytes

    @classmethod
    def of(cls, path: Path, shared_memory: int) -> "FileState":
        while True:
            before = _progress(shared_memory)
            status = path.stat()
            if before == _progress(shared_memory):  # otherwise a checkpoint began or ended meanwhile
                return cls(status.st_size, status.st_mtime_ns, *before)

    @property
    def is_being_copied(self) -> bool:
        """Whether a checkpoint runs, or the last one did not end, or no checkpoint ran since a crash."""
        return self.copied != self.attempted

    def may_follow(self, before: "FileState") -> bool:
        """Return whether SQLite may have changed the file from `before` to this state."""
        return self[:2] == before[:2] or self[2:] != before[2:] or self.is_being_copied


def open_shared_memory(path: Path) -> int:
    """Return a handle of a shared memory file in use. It is closed some time after SQLite has deleted the file.

    Closing it earlier would release SQLite's locks (sqlite.org/howtocorrupt.html, "Posix advisory locks canceled").
    """
    with _lock:
        for identity, handle in list(_handles.items()):
            if not os.fstat(handle).st_nlink:
                os.close(_handles.pop(identity))
        status = path.stat()
        identity = (status.st_dev, status.st_ino)
        if identity not in _handles:
            _handles[identity] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return _handles[identity]


def _progress(shared_memory: int) -> tuple[bytes, bytes, bytes]:
    content = os.pread(shared_memory, ATTEMPTED.stop, 0)
    return content[SALTS], content[COPIED], content[ATTEMPTED]
