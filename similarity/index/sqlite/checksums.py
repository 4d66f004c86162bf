"""Checksums over what the embedded index's file holds, verified wherever it is read into memory.

SQLite notices a broken page, not a flipped bit in a value. So each row of `documents` holds three
checksums: over itself, over its company's profile, and over its vector; and each row of
`generations` holds one over itself, with the number of its companies, so that rows which damage
hides are missed. `lookups` and `words` repeat what profiles say; `checking` compares them. `records` has the
checksums of the workspace's tables and of those that erasures need.

CRC-32 finds every burst of up to 32 bits and misses one in four billion other changes. It takes
0.4 µs for a vector of 384 numbers, a third of BLAKE2b. It is no protection against a person.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from similarity.company import Vector
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.rows import vector_of


class Header(NamedTuple):
    """The columns of `documents` that its `checksum` covers, in this order."""

    document: int
    generation: int
    id: str
    sequence: int
    version: int
    deleted: int
    text_hash: str
    language: str
    embedded_at: int
    profile_checksum: int | None
    vector_checksum: int | None


HEADER_COLUMNS = ", ".join(f"documents.{name}" for name in (*Header._fields, "checksum"))
"""What a query selects first for `checked_header`."""
AFTER_HEADER = len(Header._fields) + 1
VECTOR_COLUMNS = "documents.document, documents.generation, documents.id, vectors.vector, documents.vector_checksum"
"""What a query selects for `checked_vector`."""


def checksum(*values: str | float | None) -> int:
    """The checksum over a row's values, their types included."""
    # ascii() and not repr(), whose escapes differ between Python's versions.
    return crc32(ascii(values).encode())


def vector_checksum(document: int, generation: int, company_id: str, vector: bytes) -> int:
    """The checksum over a vector and the document that it belongs to."""
    return crc32(vector, checksum(document, generation, company_id))


def sealed(header: Header) -> tuple[str | int | None, ...]:
    """The header and the checksum over it: a whole row of `documents`."""
    return (*header, checksum(*header))


def checked_header(row: Sequence[Any]) -> Header:
    """The header that a row of `HEADER_COLUMNS` begins with. DamagedRow if it differs from its checksum."""
    header = Header._make(row[: AFTER_HEADER - 1])
    if checksum(*header) != row[AFTER_HEADER - 1]:
        raise DamagedRow(f"{document_name(header.document, header.id)} differs from its checksum")
    return header


def check_profile(header: Header, profile: Sequence[Any]) -> None:
    """Raises DamagedRow if the columns of `companies` are not those that were written for this document."""
    if checksum(*profile) != header.profile_checksum:
        raise DamagedRow(f"the profile of {document_name(header.document, header.id)} differs from its checksum")


def checked_vector(document: int, generation: int, company_id: str, vector: Any, expected: int | None) -> Vector:
    """The vector of a document, from a row of `VECTOR_COLUMNS`. DamagedRow if it is not what was written."""
    if not isinstance(vector, bytes) or vector_checksum(document, generation, company_id, vector) != expected:
        raise DamagedRow(f"the vector of {document_name(document, company_id)} differs from its checksum")
    return vector_of(vector)


def document_name(document: object, company_id: object) -> str:
    """What messages call a document."""
    return f"company {company_id!r:.140} (document {document})"
