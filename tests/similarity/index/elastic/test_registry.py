"""The registry's steps that the contract tests do not see."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from elasticsearch.serializer import JsonSerializer

from similarity.errors import GenerationConflict, NoLiveGeneration, UnknownGeneration
from similarity.index.elastic.registry import Entry, Registry, from_source, to_source
from similarity.index.protocol import Generation, GenerationState, Lease
from similarity.model.calibration import Calibration
from similarity.model.ranker import Ranker
from tests.factories import make_generation

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
BUILDING, CANDIDATE = GenerationState.BUILDING, GenerationState.CANDIDATE
LIVE, PREVIOUS = GenerationState.LIVE, GenerationState.PREVIOUS


def after_json(registry: Registry) -> Registry:
    """The registry as the client sends it and the server returns it."""
    return from_source(json.loads(JsonSerializer().dumps(to_source(registry))))


def added(registry: Registry, generation: Generation, index: str) -> Registry:
    return registry.add(Entry(record=generation, index=index))


def live(registry: Registry, name: str) -> Registry:
    registry = added(registry, make_generation(name), f"index-{name}").register_candidate(name)
    return registry.promote(name, lease=None, now=NOW)


def take(registry: Registry, name: str = "reembed", *, holder: str = "a", now: datetime = NOW) -> Registry:
    return registry.take_lease(name, holder=holder, seconds=60, now=now)


def held(registry: Registry, name: str = "reembed") -> Lease:
    lease = registry.lease(name)
    assert lease
    return lease


def test_an_empty_registry_holds_nothing() -> None:
    registry = Registry()
    assert after_json(registry) == registry
    assert registry.generations() == []
    with pytest.raises(NoLiveGeneration):
        registry.live()
    with pytest.raises(UnknownGeneration, match="this index holds: none"):
        registry.named("first")


def test_everything_comes_back_after_json() -> None:
    ranker = Ranker(encoder_id="e", cosine=26.0, intercept=-24.0)
    calibrated = make_generation("third", calibration=Calibration(slope=12.5, intercept=-7.0), ranker=ranker)
    registry = added(live(live(Registry(), "first"), "second"), calibrated, "index-third").retire("first")
    registry = take(registry, holder="b").take_lease("writer.1", holder="w", seconds=0.5, now=NOW)
    registry = registry.renew_lease(held(registry), seconds=90, acknowledged=3, now=NOW)
    assert after_json(registry) == registry
    assert after_json(registry).live().record.promoted_at == NOW


def test_a_generation_without_a_ranker_has_no_member_that_earlier_releases_do_not_know() -> None:
    [entry] = to_source(live(Registry(), "first"))["entries"]
    assert {"ranker", "promotion"}.isdisjoint(entry["record"])
    assert entry["promotion"] == 1


def test_a_registry_of_an_earlier_release_has_no_retired_bundles() -> None:
    source = json.loads(JsonSerializer().dumps(to_source(live(live(Registry(), "first"), "second"))))
    assert source.pop("retired_bundles") == []
    assert from_source(source).retire("first").retired_bundles == ("bundle-1",)


def test_an_index_stays_on_the_list_until_its_deletion_is_noted() -> None:
    registry = live(live(Registry(), "first"), "second").retire("first")
    assert registry.retired == ("index-first",)
    assert registry.deleted("index-other") == registry
    assert registry.deleted("index-first").retired == ()
    assert registry.deleted("index-first").revision == registry.revision


def test_a_rollback_that_was_decided_on_older_news_is_refused() -> None:
    registry = live(live(Registry(), "first"), "second")
    rolled = registry.roll_back(live="index-second", target="index-first", now=NOW)
    assert rolled.live().record.name == "first"
    with pytest.raises(GenerationConflict, match="another process"):
        rolled.roll_back(live="index-second", target="index-first", now=NOW)
    third = live(registry, "third")
    with pytest.raises(GenerationConflict, match="another process"):
        third.roll_back(live="index-second", target="index-first", now=NOW)


def test_rollback_follows_the_order_of_going_live_not_of_the_clock() -> None:
    """Two promotions within one tick of a clock, or on machines whose clocks differ, keep their order."""
    registry = live(live(live(Registry(), "a"), "b"), "c")
    assert registry.before_live().record.name == "b"
    back = registry.roll_back(live="index-c", target="index-b", now=NOW - timedelta(days=1))
    assert back.before_live().record.name == "c"


def test_leases_that_ended_a_day_ago_are_forgotten() -> None:
    registry = take(take(Registry(), "old"), "new", now=NOW + timedelta(days=1))
    kept = registry.without_old_leases(now=NOW + timedelta(days=1, seconds=61))
    assert [lease.name for lease in kept.leases] == ["new"]
    assert registry.without_old_leases(now=NOW + timedelta(days=1)).leases == registry.leases
    assert kept.fence == registry.fence


def test_a_withdrawn_candidate_is_building_again() -> None:
    registry = added(live(Registry(), "first"), make_generation("second"), "index-second").register_candidate("second")
    withdrawn = registry.withdraw_candidate("second")
    assert withdrawn.named("second").record.state is BUILDING
    assert withdrawn.revision > registry.revision
    for name in ("first", "second"):
        with pytest.raises(GenerationConflict, match="only a candidate one can be withdrawn"):
            withdrawn.withdraw_candidate(name)
