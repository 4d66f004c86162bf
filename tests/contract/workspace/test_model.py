"""Random histories of a workspace, compared step by step with a list and dicts that follow the contract's words."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from similarity.feedback.protocol import (
    EventConflict,
    FeedbackEvent,
    Look,
    SavedList,
    UnknownList,
    Verdict,
    Workspace,
)
from tests.workspace_records import forget, make_event, make_list, moment

IDS = "abcd"
USERS = ("ann", "bob", "cid")
NAMES = ("shoes", "Shoes", "boots")
PAIRS = st.lists(st.sampled_from(IDS), min_size=2, max_size=2, unique=True)
ANCHORS = st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True)


class WorkspaceHistory(RuleBasedStateMachine):
    """Two views of one workspace, as two processes have, and its model. Every step goes through one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.views = self.open_views()
        self.clock = count(1)
        self.events: list[FeedbackEvent] = []
        self.lists: dict[str, SavedList] = {}
        self.looks: dict[tuple[str, str], Look] = {}

    def open_views(self) -> tuple[Workspace, Workspace]:
        raise NotImplementedError("the test says which store it runs on")

    def teardown(self) -> None:
        for view in self.views:
            view.close()

    @rule(
        view=st.integers(0, 1),
        event_id=st.sampled_from([f"e{number}" for number in range(6)]),
        user=st.sampled_from(USERS),
        pair=PAIRS,
        verdict=st.sampled_from(Verdict),
    )
    def judge(self, view: int, event_id: str, user: str, pair: list[str], verdict: Verdict) -> None:
        at = moment(next(self.clock))
        event = make_event(event_id, user=user, at=at, anchor=pair[0], hit=pair[1], verdict=verdict)
        known = [each for each in self.events if (each.user, each.id) == (user, event_id)]
        if not known:
            assert self.views[view].add_event(event) == event
            self.events.append(event)
        elif (known[0].anchor, known[0].hit, known[0].verdict) == (*pair, verdict):
            assert self.views[view].add_event(event) == known[0]
        else:
            with pytest.raises(EventConflict):
                self.views[view].add_event(event)

    @rule(view=st.integers(0, 1), name=st.sampled_from(NAMES), anchors=ANCHORS, excluded=st.sampled_from(IDS))
    def save(self, view: int, name: str, anchors: list[str], excluded: str) -> None:
        saved = make_list(
            name, at=moment(next(self.clock)), anchors=[{"company": each} for each in anchors], exclude=[excluded]
        )
        assert self.views[view].save_list(saved) is (name not in self.lists)
        self.lists[name] = saved

    @rule(view=st.integers(0, 1), name=st.sampled_from(NAMES))
    def remove(self, view: int, name: str) -> None:
        if name not in self.lists:
            with pytest.raises(UnknownList):
                self.views[view].remove_list(name)
            return
        self.views[view].remove_list(name)
        self.drop_list(name)

    def drop_list(self, name: str) -> None:
        del self.lists[name]
        self.looks = {key: look for key, look in self.looks.items() if key[0] != name}

    @rule(
        view=st.integers(0, 1),
        name=st.sampled_from(NAMES),
        user=st.sampled_from(USERS),
        seen=st.lists(st.sampled_from(IDS), unique=True),
    )
    def look(self, view: int, name: str, user: str, seen: list[str]) -> None:
        look = Look(list_name=name, user=user, at=moment(next(self.clock)), seen=tuple(seen))
        if name in self.lists:
            self.views[view].add_look(look)
            self.looks[name, user] = look
        else:
            with pytest.raises(UnknownList):
                self.views[view].add_look(look)

    def names(self, saved: SavedList, company: str) -> bool:
        return {"company": company} in saved.question["anchors"] or company in saved.question["exclude"]

    @rule(view=st.integers(0, 1), company=st.sampled_from(IDS))
    def forget(self, view: int, company: str) -> None:
        kept = [event for event in self.events if company not in event.pair]
        named = [saved for saved in self.lists.values() if self.names(saved, company)]
        forgotten = forget(self.views[view], company)
        assert (forgotten.events, forgotten.lists) == (len(self.events) - len(kept), len(named))
        self.events = kept
        for saved in named:
            anchors = [each for each in saved.question["anchors"] if each["company"] != company]
            exclude = [each for each in saved.question["exclude"] if each != company]
            if anchors:
                question = {"anchors": anchors, "exclude": exclude}
                self.lists[saved.name] = replace(saved, question=question)
            else:
                self.drop_list(saved.name)
        for key, look in self.looks.items():
            seen = tuple(each for each in look.seen if each != company)
            self.looks[key] = Look(list_name=look.list_name, user=look.user, at=look.at, seen=seen)

    @invariant()
    def events_are_those_of_the_model(self) -> None:
        for view in self.views:
            assert list(view.events()) == self.events[::-1]
        about_a = [event for event in self.events[::-1] if "a" in event.pair and event.user == "ann"]
        assert list(self.views[0].events(company="a", user="ann")) == about_a

    @invariant()
    def lists_and_looks_are_those_of_the_model(self) -> None:
        for view in self.views:
            assert view.lists() == [self.lists[name] for name in sorted(self.lists)]
            for name, saved in self.lists.items():
                assert view.saved_list(name) == saved
            for name in NAMES:
                for user in USERS:
                    assert view.last_look(name, user) == self.looks.get((name, user))


def test_every_history_agrees_with_the_model(open_named: Callable[[str], Workspace], histories: int) -> None:
    names = count()

    class History(WorkspaceHistory):
        def open_views(self) -> tuple[Workspace, Workspace]:
            name = f"h{next(names)}"
            return open_named(name), open_named(name)

    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=histories // 3,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
