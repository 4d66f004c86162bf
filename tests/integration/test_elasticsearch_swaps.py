"""Readers while generations are swapped: no error, no answer from two generations, no late news."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

import pytest

from similarity.company import EmbeddedCompany
from similarity.errors import UnknownGeneration
from similarity.index.elastic import ElasticIndex
from tests.contract.steps import add_candidate, add_live
from tests.factories import make_embedded, unit_vector
from tests.integration.elasticsearch_place import Place

pytestmark = pytest.mark.integration

REPLICAS = 8
ROUNDS = 10  # of two swaps each
THREADS = 4
PER_SECOND = 40


def documents(generation: str) -> list[EmbeddedCompany]:
    """The same companies in every generation, but for their names: those say where a hit is from."""
    return [make_embedded(f"c{number}", name=f"{generation} {number}") for number in range(60)]


def answer(index: ElasticIndex, seed: int) -> tuple[str, set[str]]:
    """The generation that a search used, and those that its hits are from; one retry where it vanished."""
    for attempt in (1, 2):
        live = index.live().name
        try:
            hits = index.similar(live, unit_vector(seed), k=10).hits
        except UnknownGeneration:
            if attempt == 2:
                raise
        else:
            assert len(hits) == 10
            return live, {hit.company.name.split()[0] for hit in hits}
    raise AssertionError("unreachable")


@dataclass
class Load:
    """Searches at a fixed rate, whatever the answers take: `answers` by the generation, and what went wrong."""

    indices: list[ElasticIndex]
    answers: list[tuple[str, set[str]]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    _due: int = 0
    _stop: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    def _next(self) -> int:
        with self._lock:
            self._due += 1
            return self._due

    def _search(self, index: ElasticIndex, began: float) -> None:
        while not self._stop.is_set():
            number = self._next()
            time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
            try:
                self.answers.append(answer(index, number))
            except BaseException as error:
                self.errors.append(error)

    def wait_for(self, generation: str) -> None:
        """Until there are some answers from it, however slow they are."""
        deadline = time.monotonic() + 30
        while [live for live, _ in self.answers].count(generation) <= THREADS:
            assert time.monotonic() < deadline, self.errors
            time.sleep(0.01)

    @contextmanager
    def running(self) -> Iterator[None]:
        began = time.monotonic()
        with ThreadPoolExecutor(len(self.indices)) as threads:
            for index in self.indices:
                threads.submit(self._search, index, began)
            try:
                yield
            finally:
                self._stop.set()


def test_a_promotion_is_seen_by_the_very_next_reader(place: Place) -> None:
    writer, readers = place.open(), [place.open() for _ in range(3)]
    for name in ("first", "second", "third"):
        add_live(writer, name)
        assert [reader.live().name for reader in readers] == [name] * 3


def test_after_a_rollback_every_replica_answers_from_the_old_generation(place: Place) -> None:
    writer, replicas = place.open(), [place.open() for _ in range(REPLICAS)]
    for name in ("first", "second"):
        add_candidate(writer, name)
        writer.upsert(name, documents(name))
        writer.promote(name)
    with ThreadPoolExecutor(REPLICAS) as threads:
        before = list(threads.map(answer, replicas, range(REPLICAS)))
        assert before == [("second", {"second"})] * REPLICAS
        writer.rollback()
        returned = time.monotonic()
        after = list(threads.map(answer, replicas, range(REPLICAS)))
    assert after == [("first", {"first"})] * REPLICAS
    assert time.monotonic() - returned < 10


def test_swaps_under_load_cause_no_error_and_no_mixed_answer(place: Place) -> None:
    writer = place.open()
    add_candidate(writer, "kept")
    writer.upsert("kept", documents("kept"))
    writer.promote("kept")
    load = Load([place.open() for _ in range(THREADS)])
    with load.running():
        for round_number in range(ROUNDS):
            name = f"new-{round_number}"
            add_candidate(writer, name)
            writer.upsert(name, documents(name))
            writer.promote(name)
            load.wait_for(name)
            assert writer.rollback().name == "kept"
            writer.retire(name)
    assert load.errors == []
    assert [(live, names) for live, names in load.answers if names != {live}] == []
    assert {live for live, _ in load.answers} >= {"kept", "new-0", f"new-{ROUNDS - 1}"}
    assert len(load.answers) > 10 * THREADS
