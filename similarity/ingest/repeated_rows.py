"""Finds rows of a file that have the id of an earlier row, in 24 to 50 bytes of memory a row."""

import hashlib
from array import array

from similarity.company import DeletedCompany
from similarity.ingest.records import Change

FIRST_SLOTS = 1 << 12


class RepeatedRows:
    """Remembers the first row of each id and version.

    Rows with other event times are versions of one company, so they do not repeat each other. This is a hash table
    with open addressing: a dict would take five times the memory.
    """

    def __init__(self) -> None:
        self.harmless = 0
        """Number of rows with the content of an earlier row."""
        self._used = 0
        self._reserve(FIRST_SLOTS)

    def conflict(self, number: int, change: Change) -> str:
        """Return why a row cannot be used: an earlier row has the same id and time, and other content; else empty.

        The first row is remembered; a row with its content is harmless, and counted. A row may delete a company that an
        earlier row writes at the same time, but not the other way round, because a delete wins a tie.
        """
        key = _hash(f"{change.id}\0{change.version}")
        content = _hash(_content(change)) & 0xFFFFFFFF
        slot = self._slot(key)
        deleted = self._slot(_hash(f"{change.id}\0{change.version | 1}"))
        if deleted != slot and self._keys[deleted]:
            slot, content = deleted, -1  # no row has this content
        if not self._keys[slot]:
            self._keys[slot], self._rows[slot], self._contents[slot] = key, number, content
            self._used += 1
            if self._used * 3 > len(self._keys) * 2:
                self._grow()
        elif self._contents[slot] == content:
            self.harmless += 1
        else:
            first = self._rows[slot]
            return f"row {number} has the same id as row {first}: {change.id!r}, and other content; row {first} is kept"
        return ""

    def _slot(self, key: int) -> int:
        """Return the slot of a key, or the empty slot where it belongs."""
        mask = len(self._keys) - 1
        slot = key & mask
        while self._keys[slot] not in (0, key):
            slot = (slot + 1) & mask
        return slot

    def _reserve(self, slots: int) -> None:
        self._keys = array("Q", bytes(8 * slots))
        self._rows = array("I", bytes(4 * slots))
        self._contents = array("I", bytes(4 * slots))

    def _grow(self) -> None:
        entries = zip(self._keys, self._rows, self._contents, strict=True)
        self._reserve(2 * len(self._keys))
        for key, row, content in entries:
            if key:
                slot = self._slot(key)
                self._keys[slot], self._rows[slot], self._contents[slot] = key, row, content


def _content(change: Change) -> str:
    return "" if isinstance(change, DeletedCompany) else change.company.content_text()


def _hash(text: str) -> int:
    """Return 8 bytes of a hash, never 0, which marks an empty slot."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) or 1
