"""The lines of a text file, plain or gzipped, in bounded memory however long a line is."""

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from typing import IO, AnyStr

GZIP_MAGIC = b"\x1f\x8b"
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line of JSON, characters of a row of CSV: eight times what a message may have."""
TOO_LONG = "is longer than 16 MiB; leave out fields that are not needed, or shorten the text"
SHOWN = 1_000
"""How much is kept of a line that is too long."""


def unpacked(stream: IO[bytes], *, name: str) -> IO[bytes] | gzip.GzipFile:
    """The content of a file: unpacked where its name or its first bytes say that it is gzipped."""
    magic = stream.read(len(GZIP_MAGIC))
    stream.seek(-len(magic), os.SEEK_CUR)
    return gzip.GzipFile(fileobj=stream) if magic == GZIP_MAGIC or name.lower().endswith(".gz") else stream


def bounded_lines(readline: Callable[[int], AnyStr]) -> Iterator[AnyStr]:
    """Yield the lines that `readline` reads. A longer one than LONGEST_LINE is cut to LONGEST_LINE + 1.

    So the length of a line tells that it was too long.
    """
    while line := readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and line[-1:] not in ("\n", "\r", b"\n"):
            line = readline(LONGEST_LINE + 1)


class LinesOfRow:
    """Hands the lines after the first to a CSV reader, and keeps those of the row that is being read."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._kept: list[str] = []
        self._size = 0
        self.number = 1
        """The number of the last line that was read."""

    def __iter__(self) -> "LinesOfRow":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self._size += len(line)
        self._kept.append(line)
        if self._size > LONGEST_LINE:
            self._kept = [self._kept[0][:SHOWN]]
            # Like any other error of a row: the reader begins a new one with the next line.
            raise csv.Error(f"the row {TOO_LONG}")
        return line

    def take(self) -> bytes:
        """The bytes of the lines since the last call; of a row that is too long, its beginning."""
        raw = "".join(self._kept).encode("utf-8", "surrogateescape")
        self._kept, self._size = [], 0
        return raw
