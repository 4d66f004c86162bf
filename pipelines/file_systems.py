"""Files on a disk or in an object store, through Beam's file systems: `/data/a.csv`, `s3://bucket/a.csv`, `gs://…`."""

import io
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from similarity.errors import InvalidInput


def matching(patterns: Sequence[str]) -> list[str]:
    """Return the files that match any of the patterns, sorted and distinct; local paths are absolute.

    `*` matches any characters except a slash, `**` any characters.

    Raises:
        InvalidInput: no file matches a pattern, or its store cannot be listed.
    """
    found: set[str] = set()
    for pattern in patterns:
        files = matches(pattern)
        if not files:
            raise InvalidInput(f"no file matches {pattern}; check the path, and quote a pattern against your shell")
        found.update(files)
    return sorted(found)


def matches(pattern: str) -> list[str]:
    """Return the files that match a pattern, possibly none.

    Raises:
        InvalidInput: the store cannot be listed.
    """
    try:
        result = FileSystems.match([located(pattern)])[0]
    except (BeamIOError, ValueError) as error:
        raise InvalidInput(
            f"{pattern} cannot be listed ({error}); check the address and the credentials. Local paths need nothing, "
            "s3:// needs apache-beam[aws], gs:// needs apache-beam[gcp]"
        ) from error
    return [entry.path for entry in result.metadata_list if not Path(entry.path).is_dir()]


def located(path: str) -> str:
    """Return a local path as an absolute path, which is the same for every worker; a URL unchanged."""
    return path if FileSystems.get_scheme(path) else str(Path(path).absolute())


def open_to_read(path: str) -> IO[bytes]:
    """Open a file for reading without decompression."""
    stream: IO[bytes] = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def open_to_write(path: str) -> IO[bytes]:
    """Create a file, and its folder if it is missing. `finish_writing` makes the file durable."""
    stream: IO[bytes] = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def finish_writing(stream: IO[bytes], path: str, *, final: str) -> None:
    """Close a file and give it its final name. Once this returns, the file survives a power failure.

    An object store stores the file durably when it is closed; on a disk it must be synced.
    """
    stream.flush()
    with suppress(io.UnsupportedOperation, AttributeError):
        os.fsync(stream.fileno())
    stream.close()
    move(path, final)


def move(path: str, target: str) -> None:
    """Rename a file durably; create the target folder if needed. In an object store this is a copy and a delete."""
    local = FileSystems.get_scheme(target) is None
    if local:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    FileSystems.rename([path], [target])
    if local:
        folder = os.open(Path(target).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
