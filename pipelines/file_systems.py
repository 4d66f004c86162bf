"""Files that lie on a disk or in an object store, by Beam's file systems: `/data/a.csv`, `s3://bucket/a.csv`, `gs://…`."""

import io
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from similarity.errors import InvalidInput

# scheme -> the library Beam reads it with, and Beam's extra that brings the library
LIBRARIES = {"s3": ("boto3", "aws"), "gs": ("google.cloud.storage", "gcp")}


def matching(patterns: Sequence[str]) -> list[str]:
    """The files that any of the patterns names, sorted, each once. Local ones come with their whole path.

    `*` is anything but a slash, `**` anything.

    Raises:
        InvalidInput: a pattern names no file, or its store cannot be asked.
    """
    found: set[str] = set()
    for pattern in patterns:
        files = matches(pattern)
        if not files:
            raise InvalidInput(f"no file matches {pattern}; check the path, and quote a pattern against your shell")
        found.update(files)
    return sorted(found)


def matches(pattern: str) -> list[str]:
    """The files that a pattern names, possibly none.

    Raises:
        InvalidInput: its store cannot be asked.
    """
    require_file_system(pattern)
    try:
        result = FileSystems.match([located(pattern)])[0]
    except (BeamIOError, ValueError) as error:
        raise InvalidInput(f"{pattern} cannot be listed, check the address and the credentials: {error}") from error
    return [entry.path for entry in result.metadata_list if not Path(entry.path).is_dir()]


def require_file_system(path: str) -> None:
    """Raises InvalidInput if Beam cannot read such paths here; the message names what to install."""
    scheme = FileSystems.get_scheme(path)
    if scheme is None:
        return
    if scheme not in LIBRARIES:
        known = ", ".join(f"{name}://" for name in LIBRARIES)
        raise InvalidInput(f"{path}: files are read from local paths, {known}, not from {scheme}://")
    library, extra = LIBRARIES[scheme]
    if not is_installed(library):
        raise InvalidInput(f"{path} needs Beam's {extra} extra: pip install 'apache-beam[{extra}]'")


def is_installed(library: str) -> bool:
    """Whether a module could be imported."""
    with suppress(ModuleNotFoundError):  # of a parent package
        return find_spec(library) is not None
    return False


def located(path: str) -> str:
    """A local path made absolute, so that it means the same to every worker; a URL as it is."""
    return path if FileSystems.get_scheme(path) else str(Path(path).absolute())


def open_to_read(path: str) -> IO[bytes]:
    """The bytes of a file as they are: a `.gz` stays packed."""
    stream: IO[bytes] = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def open_to_write(path: str) -> IO[bytes]:
    """A new file, with its folder where that is missing. `finish_writing` makes it durable."""
    stream: IO[bytes] = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return stream


def finish_writing(stream: IO[bytes], path: str, *, final: str) -> None:
    """Closes a file and gives it its final name. Once this returns, it survives a power failure.

    An object store keeps what it was given when the file is closed; a disk must be told.
    """
    stream.flush()
    with suppress(io.UnsupportedOperation, AttributeError):
        os.fsync(stream.fileno())
    stream.close()
    move(path, final)


def move(path: str, target: str) -> None:
    """Renames a file, durably, into a folder that need not be there. In an object store that is a copy and a delete."""
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
