"""The mappings and settings of a workspace's indices, and the conversion of its records to documents (no I/O)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from similarity.feedback.protocol import FeedbackEvent, Look, Place, SavedList, Shown, Verdict
from similarity.feedback.rules import microseconds, time_of, unreadable
from similarity.formats.json_text import check_depth
from similarity.index.elastic.mapping import Body
from similarity.index.name_hashes import CompanyNames

SCHEMA_VERSION = 1
KEYWORD = {"type": "keyword"}
STORED_ONLY = {"type": "object", "enabled": False}
NEWEST_FIRST = [{"at": "desc"}, {"user": "desc"}, {"id": "desc"}]

FEEDBACK_FIELDS: Mapping[str, Any] = {
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
LISTS_FIELDS: Mapping[str, Any] = {
    "kind": KEYWORD,
    "name": KEYWORD,
    "user": KEYWORD,
    "at": {"type": "long"},
    "question": STORED_ONLY,
    "seen": KEYWORD,
}


def index_body(fields: Mapping[str, Any]) -> Body:
    """Return mapping and settings of one of the indices: strict, with a replica if there is a second node."""
    return {
        "mappings": {"dynamic": "strict", "_meta": {"schema": SCHEMA_VERSION}, "properties": dict(fields)},
        "settings": {
            "index": {
                "number_of_shards": 1,
                "auto_expand_replicas": "0-1",
                # An acknowledged write is on disk.
                "translog.durability": "request",
            }
        },
    }


def event_key(user: str, event_id: str) -> str:
    """The document id of an event."""
    return _digest("event", user, event_id)


def list_key(name: str) -> str:
    """The document id of a list."""
    return _digest("list", name)


def look_key(name: str, user: str) -> str:
    """The document id of a user's look at a list."""
    return _digest("look", name, user)


def event_source(event: FeedbackEvent) -> Body:
    """An event as its document."""
    return {**asdict(event), "at": microseconds(event.at)}


def event_of(source: Mapping[str, Any]) -> FeedbackEvent:
    """The event of a document."""
    members = {**source, "at": time_of(source["at"]), "verdict": Verdict(source["verdict"])}
    return FeedbackEvent(**{**members, "shown": Shown(**source["shown"])})


def without_names(source: Mapping[str, Any], names: CompanyNames) -> Body:
    """Return the members of an event's document that must change, because their free text contains a name."""
    shown = {member: "" for member in ("generation", "bundle_id") if names.are_in(source["shown"][member])}
    changed: Body = {"shown": {**source["shown"], **shown}} if shown else {}
    return changed | ({"note": ""} if names.are_in(source["note"]) else {})


def list_source(saved: SavedList) -> Body:
    """A list as its document."""
    return {
        "kind": "list",
        "name": saved.name,
        "user": saved.saved_by,
        "at": microseconds(saved.saved_at),
        "question": dict(saved.question),
    }


def list_of(source: Mapping[str, Any]) -> SavedList:
    """The list of a document."""
    at = time_of(source["at"])
    try:
        question = check_depth(source["question"])
    except ValueError as error:
        raise unreadable("list", error) from error
    return SavedList(name=source["name"], question=question, saved_by=source["user"], saved_at=at)


def look_source(look: Look) -> Body:
    """A look as its document."""
    return {
        "kind": "look",
        "name": look.list_name,
        "user": look.user,
        "at": microseconds(look.at),
        "seen": list(look.seen),
    }


def look_of(source: Mapping[str, Any]) -> Look:
    """The look of a document."""
    seen = tuple(source["seen"])
    return Look(list_name=source["name"], user=source["user"], at=time_of(source["at"]), seen=seen)


def events_query(*, company: str, user: str, before: Place | None, size: int) -> Body:
    """One page of events, newest first."""
    conditions: list[Body] = [about(company)] if company else []
    if user:
        conditions.append({"term": {"user": user}})
    body: Body = {"query": {"bool": {"filter": conditions}}, "sort": NEWEST_FIRST, "size": size}
    if before:
        moment, by, event_id = before
        body["search_after"] = [microseconds(moment), by, event_id]
    return body


def about(company: str) -> Body:
    """Return the query for events with a company on either side."""
    return {"bool": {"should": [{"term": {side: company}} for side in ("anchor", "hit")], "minimum_should_match": 1}}


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
