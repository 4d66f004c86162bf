"""Protect databases from being overwritten by other output."""

from contextlib import suppress
from pathlib import Path

from similarity.errors import InvalidInput

SQLITE_HEADER = b"SQLite format 3\0"
# The place of the application id in the header, https://www.sqlite.org/fileformat.html#application_id
APPLICATION_ID = slice(68, 72)


def refuse_database(path: Path) -> None:
    """Raise InvalidInput if the file is an SQLite database, such as an index or a workspace."""
    if _header(path).startswith(SQLITE_HEADER):
        raise InvalidInput(f"{path} is a database, which would be lost; name another file")


def is_other_database(path: Path, database: Path) -> bool:
    """Return whether the file is an SQLite database with another application id than `database`."""
    header = _header(path)
    return header.startswith(SQLITE_HEADER) and header[APPLICATION_ID] != _header(database)[APPLICATION_ID]


def _header(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        return file.read(100)
    return b""
