"""The fields of a workspace's indices, the documents of its records, and a query for events, without I/O."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from similarity.errors import IndexUnavailable
from similarity.feedback.protocol import FeedbackEvent, Look, Place, SavedList, Shown, Verdict
from similarity.feedback.rules import microseconds, time_of
from similarity.formats.json_text import check_depth
from similarity.index.elastic.mapping import Body

SCHEMA_VERSION = 1
KEYWORD = {"type": "keyword"}
STORED_ONLY = {"type": "object", "enabled": False}
NEWEST_FIRST = [{"at": "desc"}, {"user": "desc"}, {"id": "desc"}]

FEEDBACK_FIELDS: Body = {
    "user": KEYWORD,
    "id": KEYWORD,
    "at": {"type": "long"},  # UTC microseconds, as every time here
    "anchor": KEYWORD,
    "hit": KEYWORD,
    "verdict": KEYWORD,
    "shown": STORED_ONLY,
    "note": {"type": "keyword", "index": False, "doc_values": False},
}
# Lists and looks share an index: both are few, and are removed together.
LISTS_FIELDS: Body = {
    "kind": KEYWORD,
    "name": KEYWORD,
    "user": KEYWORD,
    "at": {"type": "long"},
    "question": STORED_ONLY,
    "seen": KEYWORD,
}


def event_source(event: FeedbackEvent) -> Body:
    """Return the document of an event."""
    return {**asdict(event), "at": microseconds(event.at)}


def event_of(source: Mapping[str, Any]) -> FeedbackEvent:
    """Return the event of a document."""
    members = {**source, "at": time_of(source["at"]), "verdict": Verdict(source["verdict"])}
    return FeedbackEvent(**{**members, "shown": Shown(**source["shown"])})


def list_source(saved: SavedList) -> Body:
    """Return the document of a list."""
    return {
        "kind": "list",
        "name": saved.name,
        "user": saved.saved_by,
        "at": microseconds(saved.saved_at),
        "question": dict(saved.question),
    }


def list_of(source: Mapping[str, Any]) -> SavedList:
    """Return the list of a document."""
    at = time_of(source["at"])
    try:
        question = check_depth(source["question"])
    except ValueError as error:
        raise IndexUnavailable(
            f"the workspace holds a list that cannot be read ({error}); delete it or restore a backup"
        ) from error
    return SavedList(name=source["name"], question=question, saved_by=source["user"], saved_at=at)


def look_source(look: Look) -> Body:
    """Return the document of a look."""
    return {
        "kind": "look",
        "name": look.list_name,
        "user": look.user,
        "at": microseconds(look.at),
        "seen": list(look.seen),
    }


def look_of(source: Mapping[str, Any]) -> Look:
    """Return the look of a document."""
    seen = tuple(source["seen"])
    return Look(list_name=source["name"], user=source["user"], at=time_of(source["at"]), seen=seen)


def events_query(*, companies: Collection[str] = (), user: str = "", before: Place | None = None, size: int) -> Body:
    """Return the query for one page of events, newest first. `companies`: only events about one of them."""
    conditions: list[Body] = []
    if companies:
        sides = [{"terms": {side: sorted(companies)}} for side in ("anchor", "hit")]
        conditions.append({"bool": {"should": sides, "minimum_should_match": 1}})
    if user:
        conditions.append({"term": {"user": user}})
    body: Body = {"query": {"bool": {"filter": conditions}}, "sort": NEWEST_FIRST, "size": size}
    if before:
        moment, by, event_id = before
        body["search_after"] = [microseconds(moment), by, event_id]
    return body
