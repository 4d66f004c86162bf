"""A live generation of a few companies, a second encoder, and an index that dies or is disturbed on call."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from similarity.company import DeletedCompany
from similarity.generations.reembed import Options
from similarity.index.ledger import ErasureLedger
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Change, VersionedCompany
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from tests.contract.clock import Clock
from tests.factories import DIMENSION, make_company, make_generation, unit_vector
from tests.fakes import CountingEncoder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = make_generation("second", encoder_id="encoder-2", bundle_id="bundle-2", created_at=NOW)
COMPANIES = 10
DELETED = ("c03", "c07")

Stored: TypeAlias = dict[str, tuple[int, str, bytes]]


class SecondEncoder(CountingEncoder):
    """Reads the same texts into other vectors."""

    encoder_id = "encoder-2"

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        self.texts += texts
        vectors = [unit_vector(crc32(text.encode()) + 1) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(len(texts), DIMENSION)


class Dead(BaseException):
    """The process was killed; nothing of it runs any more."""


class Watched:
    """Passes every call on to an index, counts them, and lets `on_call(number)` happen before each."""

    def __init__(self, index: CompanyIndex, on_call: Callable[[int], None] = lambda number: None) -> None:
        self.index = index
        self.on_call = on_call
        self.calls = 0

    @property
    def ledger(self) -> ErasureLedger:
        """The index's own; calls of it are not counted."""
        return self.index.ledger

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.index, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            self.on_call(self.calls)
            return method(*arguments, **named)

        return call


class Mortal(Watched):
    """An index whose process is killed at call number `last`: before it takes effect, or right after."""

    def __init__(self, index: CompanyIndex, last: int, *, after: bool) -> None:
        super().__init__(index)
        self.last = last
        self.after = after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.index, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls > self.last or (self.calls == self.last and not self.after):
                raise Dead
            result = method(*arguments, **named)
            if self.calls == self.last:
                raise Dead
            return result

        return call


def change(company_id: str, version: int = 2, **fields: Any) -> VersionedCompany:
    return VersionedCompany(company=make_company(company_id, **fields), version=version)


def write(index: CompanyIndex, *changes: Change) -> None:
    with WriterLease(index) as writer:
        write_changes(writer, {"encoder-1": CountingEncoder(), "encoder-2": SecondEncoder()}, changes, now=NOW)


def fill_first(index: CompanyIndex) -> None:
    """Makes `first` live with ten companies, two of them deleted."""
    index.create_generation(make_generation("first"))
    index.register_candidate("first")
    write(index, *(change(f"c{number:02}") for number in range(COMPANIES)))
    write(index, *(DeletedCompany(id=company_id, version=3) for company_id in DELETED))
    index.promote("first")


def opened(folder: Any, clock: Clock) -> SqliteIndex:
    return SqliteIndex(folder / "index.db", clock=clock)


def options(clock: Clock, **changes: Any) -> Options:
    """Small chunks, no gate, and sleeping that only moves the clock."""
    usual: dict[str, Any] = {
        "gate": None,
        "max_docs_per_second": 0.8,  # four documents at once
        "clock": lambda: clock().timestamp(),
        "sleep": clock.advance,
    }
    return Options(**(usual | changes))


def stored(index: CompanyIndex, generation: str) -> Stored:
    """What a generation holds: version, hash of the text and vector by id; the last two empty of a tombstone."""
    return {
        document.id: (document.version, "", b"")
        if isinstance(document, DeletedCompany)
        else (document.version, document.text_hash, document.vector.tobytes())
        for batch in index.scan(generation)
        for document in batch
    }


def expected(index: CompanyIndex, generation: str = "first") -> Stored:
    """What `encoder-2` must make of all that a generation holds."""
    encoder = SecondEncoder()
    documents: Stored = {}
    for batch in index.scan(generation):
        for document in batch:
            if isinstance(document, DeletedCompany):
                documents[document.id] = (document.version, "", b"")
            else:
                text = document.company.description
                documents[document.id] = (document.version, document.text_hash, encoder.encode([text])[0].tobytes())
    return documents


def states(index: CompanyIndex) -> list[tuple[str, str]]:
    return [(generation.encoder_id, str(generation.state)) for generation in index.generations()]


def names(generations: Sequence[Generation]) -> list[str]:
    return [generation.name for generation in generations]
