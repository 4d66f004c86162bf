"""The row of a file, which all readers of files yield."""

from collections.abc import Mapping
from dataclasses import dataclass, field

REPEATED_HEADER = "repeats the column names, as where files are joined; delete this row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a file: its number (the first data row is 1), its values, or the reason why it is `unreadable`.

    `raw`: the bytes of a row that is JSON or unreadable (only the beginning if it is too long); otherwise empty.
    """

    number: int
    record: Mapping[str, object]
    unreadable: str = ""
    raw: bytes = field(default=b"", repr=False)


def repeats_header(record: Mapping[str, object]) -> bool:
    """Return whether the values of a row are the names of their columns; a row of one value may be a company."""
    return len(record) > 1 and all(isinstance(value, str) and value.strip() == name for name, value in record.items())
