"""A rollback in an emergency on real Elasticsearch: companies are written all the while, and none is lost."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from fastapi.testclient import TestClient

from similarity.errors import GenerationConflict
from similarity.index.elastic import ElasticIndex
from tests.contract.steps import add_live
from tests.factories import ENCODER_ID, make_embedded
from tests.fakes import CountingEncoder
from tests.integration.elasticsearch_place import Place
from tests.services.search.writers import client_of, direct_writing, put

pytestmark = pytest.mark.integration

ROLLBACKS = 10
WRITES_A_SECOND = 5
COMPANIES = 25_000
"""Several pages: while they are compared, writes become visible in one generation and not yet in the other."""


def name(number: int) -> str:
    return f"c{number:06}"


class WritingThread:
    """Writes companies through the service, one of them often, and remembers what was acknowledged."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.acknowledged: dict[str, int] = {}
        self.refused: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._write_until, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _write_until(self, stop: threading.Event) -> None:
        began = time.monotonic()
        for number in count(1):
            if stop.wait(max(0, began + number / WRITES_A_SECOND - time.monotonic())):
                return
            company_id = name(0 if number % 3 == 0 else number * 7919 % COMPANIES)
            deletes = number % 10 == 0
            answer = self.client.delete(f"/companies/{company_id}") if deletes else put(self.client, company_id)
            if answer.status_code == 200 and answer.json()["outcome"] == "applied":
                self.acknowledged[company_id] = answer.json()["version"]
            else:
                self.refused.append(answer.text)


@pytest.fixture
def index(place: Place) -> ElasticIndex:
    """A live and a previous generation, both with all companies."""
    index = place.open()
    companies = [make_embedded(name(number)) for number in range(COMPANIES)]
    for generation in ("first", "second"):
        index.upsert(add_live(index, generation), companies)
    return index


def test_rollbacks_go_while_companies_are_written_and_nothing_is_lost(place: Place, index: ElasticIndex) -> None:
    writing = direct_writing(place.open(visible_at_once=False), {ENCODER_ID: CountingEncoder()})
    writer = WritingThread(client_of(writing))
    seconds = []
    with writer.running():
        time.sleep(1)
        for number in range(ROLLBACKS):
            began = time.monotonic()
            assert index.rollback().name == ("first", "second")[number % 2]
            seconds.append(time.monotonic() - began)
            time.sleep(0.2)
    writing.writes.close()
    print(f"rollbacks took {min(seconds):.2f} to {max(seconds):.2f} s")
    assert writer.refused == []
    assert len(writer.acknowledged) > ROLLBACKS
    live = index.live().name
    assert index.stored_versions(live, writer.acknowledged) == writer.acknowledged


def test_a_generation_that_was_not_written_to_is_refused_with_its_documents(place: Place, index: ElasticIndex) -> None:
    writing = direct_writing(place.open(visible_at_once=False), {ENCODER_ID: CountingEncoder()})
    writer = WritingThread(client_of(writing))
    index.upsert("second", [make_embedded("lost", version=2)])  # behind the writers' back
    with writer.running():
        time.sleep(1)
        with pytest.raises(GenerationConflict, match=r"lacks the newest version of 1 documents of 'second' \(lost\)"):
            index.rollback(wait=3)
        assert index.rollback(force=True).name == "first"
    writing.writes.close()
    assert writer.refused == []
