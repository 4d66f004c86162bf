"""The registry under many hands at once, and after crashes between its steps."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from time import sleep
from typing import Any

import pytest
from elasticsearch import ConnectionTimeout

from similarity.errors import GenerationConflict, IndexUnavailable, SimilarityError, UnknownGeneration
from similarity.index.elastic import ElasticIndex
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.registry import Entry
from similarity.index.elastic.registry_store import BODY, RegistryStore
from similarity.index.protocol import GenerationState
from tests.contract.steps import add_candidate, add_live
from tests.factories import make_embedded, make_generation
from tests.integration.elasticsearch_place import Place

pytestmark = pytest.mark.integration

THREADS, ROUNDS = 8, 20


def at_once(steps: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each step returns, or the library's error it raised, when all begin together."""
    begin = Barrier(len(steps))

    def run(step: Callable[[], Any]) -> Any:
        begin.wait()
        try:
            return step()
        except SimilarityError as error:
            return error

    with ThreadPoolExecutor(len(steps)) as threads:
        return list(threads.map(run, steps))


def test_no_step_is_lost_when_many_take_them_at_once(place: Place) -> None:
    def work(index: ElasticIndex, number: int) -> list[int]:
        fences = []
        for _ in range(ROUNDS):
            lease = index.take_lease(f"writer.{number}", holder=f"holder-{number}", seconds=60)
            assert index.renew_lease(lease, seconds=60, acknowledged=number).fence == lease.fence
            fences.append(lease.fence)
        index.create_generation(make_generation(f"of-{number}"))
        return fences

    indices = [place.open() for _ in range(THREADS)]
    answers = at_once([partial(work, index, number) for number, index in enumerate(indices)])
    assert sorted(fence for fences in answers for fence in fences) == list(range(1, THREADS * ROUNDS + 1))
    registry = place.registry().read()
    assert (registry.fence, registry.revision) == (THREADS * ROUNDS, THREADS)
    assert {(lease.name, lease.acknowledged) for lease in registry.leases} == {
        (f"writer.{n}", n) for n in range(THREADS)
    }
    assert len(registry.generations()) == len(place.indices()) == THREADS


def test_of_two_that_promote_at_once_one_wins(place: Place) -> None:
    add_live(place.open(), "first")
    add_candidate(place.open(), "second")
    answers = at_once([partial(place.open().promote, "second") for _ in range(4)])
    refused = [answer for answer in answers if answer is not None]
    assert [type(answer) for answer in refused] == [GenerationConflict] * 3
    registry = place.registry().read()
    assert registry.live().record.name == "second"
    assert registry.promotions == 2


def test_of_two_candidates_promoted_at_once_one_is_live_and_one_previous(place: Place) -> None:
    for name in ("first", "second"):
        add_candidate(place.open(), name)
    assert at_once([partial(place.open().promote, name) for name in ("first", "second")]) == [None, None]
    states = {generation.state for generation in place.open().generations()}
    assert states == {GenerationState.LIVE, GenerationState.PREVIOUS}


def test_the_first_index_of_all_may_be_made_by_many_at_once(place: Place) -> None:
    names = [f"g{number}" for number in range(4)]
    steps = [partial(place.open().create_generation, make_generation(name)) for name in names]
    assert at_once(steps) == [None] * 4
    assert sorted(generation.name for generation in place.open().generations()) == names


def test_a_registry_that_another_is_just_making_is_waited_for(place: Place) -> None:
    nowhere = {"index.number_of_shards": 1, "index.routing.allocation.include._name": "nobody"}
    name = f"{place.name}-registry"
    place.client.indices.create(index=name, wait_for_active_shards="0", settings=nowhere, mappings=BODY["mappings"])
    index = place.open()
    with pytest.raises(IndexUnavailable, match="No shard available"):
        index.leases()  # whoever only reads is told at once
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(index.take_lease, "one", holder="a", seconds=60)
        sleep(1.0)
        assert not waiting.done()
        place.client.indices.put_settings(index=name, settings={"index.routing.allocation.include._name": None})
        assert waiting.result(30).fence == 1


def test_a_crash_before_the_index_was_made_is_made_good(place: Place) -> None:
    entry = Entry(record=make_generation("first"), index=f"{place.name}-first-1")
    place.registry().change(lambda registry: registry.add(entry))
    index = place.open()
    assert place.indices() == []
    with pytest.raises(UnknownGeneration):
        index.upsert("first", [make_embedded("a")])
    index.register_candidate("first")
    index.upsert("first", [make_embedded("a")])
    index.promote("first")
    assert place.indices() == [f"{place.name}-first-1"]
    assert index.stats("first").companies == 1


def test_a_generation_whose_index_was_never_made_can_be_retired(place: Place) -> None:
    entry = Entry(record=make_generation("first"), index=f"{place.name}-first-1")
    place.registry().change(lambda registry: registry.add(entry))
    place.open().retire("first")
    assert place.open().generations() == []
    assert place.registry().read().retired == ()


@pytest.mark.parametrize("next_step", ["create", "retire"])
def test_an_interrupted_deletion_is_finished_by_the_next_step(place: Place, next_step: str) -> None:
    index = place.open()
    for name in ("first", "second", "third"):
        add_live(index, name)
    leftover = place.index_of("first")
    place.registry().change(lambda registry: registry.retire("first"))
    assert leftover in place.indices()
    if next_step == "create":
        index.create_generation(make_generation("fourth"))
    else:
        index.retire("second")
    assert leftover not in place.indices()
    assert place.registry().read().retired == ()


def test_a_step_whose_answer_was_lost_is_not_taken_twice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(place.settings)
    send = cluster.client.index
    lost: list[Any] = []

    def send_and_lose(**arguments: Any) -> Any:
        answer = send(**arguments)
        if not lost:
            lost.append(answer)
            raise ConnectionTimeout("planned")
        return answer

    monkeypatch.setattr(cluster.client, "index", send_and_lose)
    store = RegistryStore(cluster, clock=place.clock)
    for expected in (1, 2):
        changed = store.change(
            lambda registry: registry.take_lease("reembed", holder="a", seconds=60, now=place.clock())
        )
        assert changed.fence == expected
    cluster.close()
    assert lost
    assert place.registry().read().fence == 2
