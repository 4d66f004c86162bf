"""A re-embed on a real Elasticsearch is killed at each of its steps, begun again, and ends as if nothing had been."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing.process import BaseProcess

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.protocol import Generation, GenerationState, WriteOutcome
from similarity.ingest.writer_leases import WriterLease
from similarity.text import TextSettings, embedding_text, text_hash
from tests.factories import make_embedded
from tests.faults.elasticsearch_inputs import Document
from tests.faults.elasticsearch_reembed import NEW, OLD, run, vector_of
from tests.faults.elasticsearch_scene import PROCESSES
from tests.servers.elasticsearch import ElasticsearchCluster

pytestmark = pytest.mark.faults

COMPANIES = 1_100  # two chunks
STEPS = ("lease", "candidate", "writers", "chunk", "backfill", "catch-up", "compact", "gate", "promote", "settle")
SECONDS_FOR_A_RUN = 120.0


@cache
def company(number: int, version: int, generation: Generation) -> Document:
    """The document of a company in a generation: deleted where the version is odd, the vector by its encoder."""
    company_id = f"c{number}"
    if version % 2:
        return DeletedCompany(id=company_id, version=version)
    plain = make_embedded(company_id, version=version, description=f"Makes version {version} of {company_id}.")
    text = embedding_text(plain.company, TextSettings())
    vector = vector_of(f"{generation.encoder_id} {text}" if generation.encoder_id == OLD.encoder_id else text)
    return replace(plain, text_hash=text_hash(text), encoder_id=generation.encoder_id, vector=vector)


def corpus(generation: Generation) -> list[Document]:
    return [company(number, 3 if number % 10 == 0 else 2, generation) for number in range(COMPANIES)]


@pytest.fixture
def old(cluster: ElasticsearchCluster, settings: ElasticSettings) -> Iterator[ElasticIndex]:
    """The index before a re-embed; nothing between it and the server."""
    with closing(ElasticIndex(replace(settings, hosts=cluster.urls, write_seconds=60))) as index:
        index.create_generation(OLD)
        index.register_candidate(OLD.name)
        index.promote(OLD.name)
        assert {each.outcome for each in index.upsert(OLD.name, corpus(OLD))} == {WriteOutcome.APPLIED}
        yield index


def start(index: ElasticIndex, *, kill_at: str = "") -> BaseProcess:
    process = PROCESSES.Process(target=run, args=(index.settings, kill_at))
    process.start()
    return process


def finish(index: ElasticIndex) -> None:
    process = start(index)
    process.join(SECONDS_FOR_A_RUN)
    assert process.exitcode == 0


def seen(index: ElasticIndex, generation: Generation) -> dict[str, object]:
    """What a generation holds, vectors rounded, times of embedding apart."""
    documents = (document for page in index.scan(generation.name) for document in page)
    return {document.id: plainly(document) for document in documents}


def plainly(document: Document) -> object:
    if not isinstance(document, EmbeddedCompany):
        return document
    return document.company, document.version, document.text_hash, np.round(document.vector, 4).tolist()


def assert_replaced(index: ElasticIndex) -> None:
    assert {each.name: each.state for each in index.generations()} == {
        OLD.name: GenerationState.PREVIOUS,
        NEW.name: GenerationState.LIVE,
    }
    assert [lease for lease in index.leases() if lease.name == "reembed"] == []


@pytest.mark.parametrize("step", STEPS)
def test_a_reembed_killed_at_any_of_its_steps_ends_as_an_uninterrupted_one(old: ElasticIndex, step: str) -> None:
    killed = start(old, kill_at=step)
    killed.join(SECONDS_FOR_A_RUN)
    assert killed.exitcode == -signal.SIGKILL
    finish(old)
    assert_replaced(old)
    assert seen(old, NEW) == {document.id: plainly(document) for document in corpus(NEW)}
    assert seen(old, OLD) == {document.id: plainly(document) for document in corpus(OLD)}


class Changes(threading.Thread):
    """A writer beside the re-embed: under a lease, to all generations, newer versions of random companies."""

    def __init__(self, settings: ElasticSettings, *, seed: int) -> None:
        super().__init__()
        self.versions = {document.id: document.version for document in corpus(OLD)}
        self.problems: list[str] = []
        self._settings = settings
        self._choice = random.Random(seed)
        self._over = threading.Event()

    def run(self) -> None:
        with closing(ElasticIndex(self._settings)) as index, WriterLease(index, seconds=5) as writer:
            for time_of_change in range(2, 10_000):
                if self._over.is_set():
                    return
                numbers = self._choice.sample(range(COMPANIES), 20)
                versions = {number: 2 * time_of_change + (self._choice.random() < 0.2) for number in numbers}
                for generation in writer.targets():
                    documents = [company(number, version, generation) for number, version in versions.items()]
                    outcomes = {each.outcome for each in index.upsert(generation.name, documents)}
                    if outcomes - {WriteOutcome.APPLIED, WriteOutcome.UNCHANGED}:
                        self.problems.append(f"{generation.name}: {outcomes}")
                self.versions |= {f"c{number}": version for number, version in versions.items()}

    def finish(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def changing(index: ElasticIndex, *, seed: int) -> Iterator[Changes]:
    changes = Changes(index.settings, seed=seed)
    changes.start()
    try:
        yield changes
    finally:
        changes.finish()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_reembed_killed_at_random_moments_misses_no_change_that_others_write(old: ElasticIndex, seed: int) -> None:
    choice = random.Random(seed)
    with changing(old, seed=seed) as changes:
        for _ in range(3):
            process = start(old)
            time.sleep(choice.uniform(0.3, 4))
            process.kill()
            process.join()
        finish(old)
    assert changes.problems == []
    assert_replaced(old)
    for generation in (OLD, NEW):
        held = {each.id: each.version for page in old.versions(generation.name) for each in page}
        assert held == changes.versions
    expected = {
        company_id: company(int(company_id[1:]), version, NEW) for company_id, version in changes.versions.items()
    }
    assert seen(old, NEW) == {company_id: plainly(document) for company_id, document in expected.items()}
