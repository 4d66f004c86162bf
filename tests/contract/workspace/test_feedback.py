"""Events are only ever appended, read newest first, and may be sent again."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

from similarity.feedback.protocol import EventConflict, Shown, Workspace
from tests.workspace_records import make_event, moment

SHOWN = Shown(rank=3, score=0.7312345678, probability=0.81, generation="2026-01-31", bundle_id="04c1e0f3a2b8d955")


def test_an_event_comes_back_as_it_was_given(workspace: Workspace) -> None:
    event = make_event(shown=SHOWN, note="Sells 'the same' — but\nonly to clubs.", at=moment(7))
    assert workspace.add_event(event) == event
    assert list(workspace.events()) == [event]


def test_a_workspace_that_answers_has_no_trouble(workspace: Workspace) -> None:
    workspace.check()
    workspace.add_event(make_event())
    workspace.check()


def test_events_are_read_newest_first_and_ties_in_one_order(workspace: Workspace) -> None:
    for event_id, user, at in (("a", "ann", 1), ("b", "bob", 3), ("c", "ann", 2), ("a", "bob", 3), ("z", "ann", 3)):
        workspace.add_event(make_event(event_id, user=user, at=moment(at)))
    read = [(event.user, event.id) for event in workspace.events()]
    assert read == [("bob", "b"), ("bob", "a"), ("ann", "z"), ("ann", "c"), ("ann", "a")]


@pytest.mark.parametrize(
    "other", [{"verdict": "unsure"}, {"hit": "puma"}, {"note": "on second thoughts"}, {"shown": SHOWN}]
)
def test_an_id_that_says_something_else_is_a_conflict(workspace: Workspace, other: dict[str, object]) -> None:
    first = make_event()
    workspace.add_event(first)
    with pytest.raises(EventConflict, match="send the new event with another id"):
        workspace.add_event(make_event(**other))  # type: ignore[arg-type]  # the parameters of one test, of several types
    assert list(workspace.events()) == [first]


def test_reading_goes_on_from_a_place(workspace: Workspace) -> None:
    for number in range(6):
        workspace.add_event(make_event(str(number), at=moment(number // 2)))
    first = list(islice(workspace.events(), 3))
    rest = list(workspace.events(before=first[-1].place))
    assert [event.id for event in (*first, *rest)] == ["5", "4", "3", "2", "1", "0"]


def test_an_id_sent_from_everywhere_at_once_is_kept_once(open_named: Callable[[str], Workspace]) -> None:
    workspaces = [open_named("shared") for _ in range(4)]
    with ThreadPoolExecutor(8) as threads:
        kept = set(
            threads.map(lambda number: workspaces[number % 4].add_event(make_event(at=moment(number))), range(16))
        )
    assert len(kept) == 1
    assert set(workspaces[0].events()) == kept


def test_more_events_than_a_page_are_all_read(workspace: Workspace) -> None:
    # Pages are of 20 and then 500 events; ties of time cross their edges.
    sent = [make_event(f"{number:04}", at=moment(number // 7)) for number in range(525)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(workspace.add_event, sent))
    assert list(workspace.events()) == sent[::-1]
