"""The lines of a text file, plain or gzipped, in bounded memory however long a line is."""

import gzip
import os
from collections.abc import Callable, Iterator
from typing import IO, AnyStr, cast

GZIP_MAGIC = b"\x1f\x8b"
MAX_LINE = 16 * 1024 * 1024
"""Limit of a line of JSON in bytes, of a row of CSV in characters: eight times the limit of a message."""
TOO_LONG = "is longer than 16 MiB; leave out fields that are not needed, or shorten the text"
KEPT_CHARACTERS = 1_000
"""How many characters of a line that is too long go into the rejects file."""


def unpacked(stream: IO[bytes], *, name: str) -> IO[bytes]:
    """Return the content of a file, decompressed if its name or its first bytes are those of gzip."""
    magic = stream.read(len(GZIP_MAGIC))
    stream.seek(-len(magic), os.SEEK_CUR)
    is_gzip = magic == GZIP_MAGIC or name.lower().endswith(".gz")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if is_gzip else stream


def bounded_lines(readline: Callable[[int], AnyStr]) -> Iterator[AnyStr]:
    """Yield the lines that `readline` reads. A line longer than MAX_LINE is cut to MAX_LINE + 1.

    A yielded line is therefore too long if it is longer than MAX_LINE.
    """
    while line := readline(MAX_LINE + 1):
        yield line
        while len(line) > MAX_LINE and line[-1:] not in ("\n", "\r", b"\n"):
            line = readline(MAX_LINE + 1)
