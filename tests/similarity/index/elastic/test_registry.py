"""The registry's steps, one by one and as random histories beside a dict."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from elasticsearch.serializer import JsonSerializer
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from similarity.errors import GenerationConflict, LeaseHeld, LeaseLost, NoLiveGeneration, UnknownGeneration
from similarity.index.elastic.registry import Entry, Registry, from_source
from similarity.index.protocol import Generation, GenerationState, Lease
from similarity.model.calibration import Calibration
from tests.factories import make_generation

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
BUILDING, CANDIDATE = GenerationState.BUILDING, GenerationState.CANDIDATE
LIVE, PREVIOUS = GenerationState.LIVE, GenerationState.PREVIOUS


def after_json(registry: Registry) -> Registry:
    """The registry as the client sends it and the server returns it."""
    return from_source(json.loads(JsonSerializer().dumps(asdict(registry))))


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
    calibrated = make_generation("third", calibration=Calibration(slope=12.5, intercept=-7.0))
    registry = added(live(live(Registry(), "first"), "second"), calibrated, "index-third").retire("first")
    registry = take(registry, holder="b").take_lease("writer.1", holder="w", seconds=0.5, now=NOW)
    registry = registry.renew_lease(held(registry), seconds=90, acknowledged=3, now=NOW)
    assert after_json(registry) == registry
    assert after_json(registry).live().record.promoted_at == NOW


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


class RegistryHistory(RuleBasedStateMachine):
    """A registry that passes through JSON at every step, beside dicts that follow the contract's words."""

    NAMES = st.sampled_from(["a", "b", "c"])
    HOLDERS = st.sampled_from(["x", "y"])

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.now = NOW
        self.states: dict[str, GenerationState] = {}
        self.went_live: list[str] = []
        self.leases: dict[str, Lease] = {}
        self.handed_out: list[Lease] = []
        self.retired = 0

    def step(self, registry: Registry) -> None:
        self.registry = after_json(registry)

    @rule(seconds=st.sampled_from([1, 30, 60]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(name=NAMES)
    def add(self, name: str) -> None:
        generation = make_generation(name)
        if name in self.states:
            with pytest.raises(GenerationConflict):
                added(self.registry, generation, name)
        else:
            self.step(added(self.registry, generation, f"{name}-{self.registry.revision}"))
            self.states[name] = BUILDING

    @rule(name=NAMES)
    def register(self, name: str) -> None:
        if self.states.get(name) is BUILDING:
            self.step(self.registry.register_candidate(name))
            self.states[name] = CANDIDATE
        else:
            with pytest.raises((GenerationConflict, UnknownGeneration)):
                self.registry.register_candidate(name)

    def go_live(self, name: str) -> None:
        self.states = {each: PREVIOUS if state is LIVE else state for each, state in self.states.items()}
        self.states[name] = LIVE
        self.went_live = [*(each for each in self.went_live if each != name), name]

    @rule(name=NAMES, data=st.data())
    def promote(self, name: str, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from([None, *self.handed_out]))
        is_held = lease is None or (
            (mine := self.leases.get(lease.name)) is not None
            and mine.fence == lease.fence
            and mine.expires_at > self.now
        )
        if is_held and self.states.get(name) is CANDIDATE:
            self.step(self.registry.promote(name, lease=lease, now=self.now))
            self.go_live(name)
        else:
            with pytest.raises((GenerationConflict, UnknownGeneration, LeaseLost)):
                self.registry.promote(name, lease=lease, now=self.now)

    @rule()
    def roll_back(self) -> None:
        previous = [name for name in self.went_live if self.states.get(name) is PREVIOUS]
        if LIVE in self.states.values() and previous:
            live, target = self.registry.live().index, self.registry.before_live().index
            self.step(self.registry.roll_back(live=live, target=target, now=self.now))
            self.go_live(previous[-1])
        else:
            with pytest.raises((GenerationConflict, NoLiveGeneration)):
                self.registry.before_live()

    @rule(name=NAMES)
    def retire(self, name: str) -> None:
        if name in self.states and self.states[name] is not LIVE:
            self.step(self.registry.retire(name))
            del self.states[name]
            self.went_live = [each for each in self.went_live if each != name]
            self.retired += 1
        else:
            with pytest.raises((GenerationConflict, UnknownGeneration)):
                self.registry.retire(name)

    @rule(name=NAMES, holder=HOLDERS)
    def take(self, name: str, holder: str) -> None:
        rival = self.leases.get(name)
        if rival and rival.holder != holder and rival.expires_at > self.now:
            with pytest.raises(LeaseHeld):
                self.registry.take_lease(name, holder=holder, seconds=60, now=self.now)
            return
        before = self.registry.fence
        self.step(self.registry.take_lease(name, holder=holder, seconds=60, now=self.now))
        self.leases[name] = held(self.registry, name)
        self.handed_out.append(self.leases[name])
        assert self.registry.fence == self.leases[name].fence == before + 1

    @rule(data=st.data(), acknowledged=st.none() | st.integers(0, 9))
    def renew(self, data: st.DataObject, acknowledged: int | None) -> None:
        lease = data.draw(st.sampled_from(self.handed_out or [Lease(name="a", holder="x", fence=0, expires_at=NOW)]))
        mine = self.leases.get(lease.name)
        if mine is None or mine.fence != lease.fence:
            with pytest.raises(LeaseLost):
                self.registry.renew_lease(lease, seconds=60, acknowledged=acknowledged, now=self.now)
            return
        self.step(self.registry.renew_lease(lease, seconds=60, acknowledged=acknowledged, now=self.now))
        self.leases[lease.name] = replace(
            mine,
            expires_at=self.now + timedelta(seconds=60),
            acknowledged=mine.acknowledged if acknowledged is None else acknowledged,
        )

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        for lease in data.draw(st.lists(st.sampled_from(self.handed_out), max_size=1)) if self.handed_out else []:
            self.step(self.registry.release_lease(lease))
            if self.leases.get(lease.name, lease).fence == lease.fence:
                self.leases.pop(lease.name, None)

    @invariant()
    def the_registry_is_what_the_dicts_say(self) -> None:
        assert {each.name: each.state for each in self.registry.generations()} == self.states
        assert {lease.name: lease for lease in self.registry.leases} == self.leases
        current = [lease.name for lease in self.registry.current_leases(now=self.now)]
        assert current == sorted(name for name, lease in self.leases.items() if lease.expires_at > self.now)
        assert len(self.registry.retired) == self.retired
        indices = [*(entry.index for entry in self.registry.entries), *self.registry.retired]
        assert len(indices) == len(set(indices))


RegistryHistory.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, derandomize=True)
TestRegistryHistory = RegistryHistory.TestCase
