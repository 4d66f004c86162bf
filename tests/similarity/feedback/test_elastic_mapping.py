"""Records survive the way to a document and back, and documents have one id each."""

import json
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from similarity.feedback import elastic_mapping as mapping
from similarity.feedback.protocol import FeedbackEvent, Look, Shown, Verdict
from similarity.feedback.rules import microseconds
from similarity.index.elastic.documents import document_id
from tests.workspace_records import NOON, make_event, make_list, moment

COMPANIES = st.lists(st.from_regex(r"[A-Za-z0-9._:-]{1,20}", fullmatch=True), min_size=2, max_size=2, unique=True)
SHOWN = st.builds(
    Shown,
    rank=st.none() | st.integers(1, 1000),
    score=st.none() | st.floats(-1, 1),
    probability=st.none() | st.floats(0, 1),
    generation=st.text(max_size=5),
)
EVENTS = st.builds(
    lambda at, sides, verdict, shown, note: make_event(
        at=NOON + at, anchor=sides[0], hit=sides[1], verdict=verdict, shown=shown, note=note
    ),
    st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)),
    COMPANIES,
    st.sampled_from(Verdict),
    SHOWN,
    st.text(max_size=20),
)


def sent(source: dict[str, Any]) -> Any:
    """A document as it comes back from a server."""
    return json.loads(json.dumps(source))


@given(EVENTS)
def test_an_event_comes_back_from_its_document(event: FeedbackEvent) -> None:
    assert mapping.event_of(sent(mapping.event_source(event))) == event


def test_a_list_and_a_look_come_back_from_their_documents() -> None:
    saved = make_list(k=3, exclude=["a"])
    assert mapping.list_of(sent(mapping.list_source(saved))) == saved
    look = Look(list_name="shoes", user="ann", at=moment(3), seen=("a", "b"))
    assert mapping.look_of(sent(mapping.look_source(look))) == look


def test_every_field_of_a_document_is_mapped() -> None:
    assert set(mapping.event_source(make_event())) == set(mapping.FEEDBACK_FIELDS)
    look = Look(list_name="shoes", user="ann", at=NOON, seen=())
    assert set(mapping.list_source(make_list())) | set(mapping.look_source(look)) == set(mapping.LISTS_FIELDS)


def test_ids_of_documents_do_not_meet_however_the_names_are_cut() -> None:
    keys = {
        document_id("event", "a", "bc"),
        document_id("event", "ab", "c"),
        document_id("look", "a", "bc"),
        document_id("look", "ab", "c"),
        document_id("list", "abc"),
    }
    assert len(keys) == 5


def test_a_page_goes_on_behind_the_last_event() -> None:
    body = mapping.events_query(company="nike", user="ann", before=make_event(at=moment(5)).place, size=7)
    assert body["search_after"] == [microseconds(moment(5)), "ann", "e1"]
    assert (body["size"], len(body["sort"]), len(body["query"]["bool"]["filter"])) == (7, 3, 2)
