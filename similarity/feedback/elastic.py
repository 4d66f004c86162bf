"""The workspace on Elasticsearch: two indices, which all replicas of the service share.

A read refreshes its index first, so that it sees all earlier writes of all processes. This is cheap enough, because
people write verdicts and lists rarely. A write that saves a document gives its id, so it can be repeated if its
response is lost (`Cluster.retrying`). Deletes and conditional changes are sent only once.

There are no transactions, so the mark of erasures is compared after a save: an erasure changes the mark before it
searches. If the mark is the same, an erasure that comes later finds the saved document; otherwise the save is undone.
"""

import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.feedback import elastic_mapping as mapping
from similarity.feedback.forgetting import forgotten_event, forgotten_list, renamed_lists
from similarity.feedback.protocol import FeedbackEvent, Forgotten, Look, Place, SavedList, UnknownList
from similarity.feedback.rules import erased_meanwhile, page_sizes, same_or_conflict, unknown_list
from similarity.index.elastic import ElasticSettings
from similarity.index.elastic.compaction import compact as compact_index
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import document_id
from similarity.index.elastic.mapping import Body, small_index
from similarity.index.name_hashes import CompanyNames

PAGE_EVENTS = 500
PAGE_LISTS = 50  # fewer, because the query of one list may have 10,000 companies
MAX_ROUNDS = 20
"""Rounds of a change or an erasure before it gives up, because other processes change the documents each time."""
CONFLICT, NOT_FOUND = 409, 404
MARK_DOCUMENT = document_id("erasure mark")


class ElasticWorkspace:
    """A `Workspace` in the indices `<name>-feedback` and `<name>-lists`, which are created at the first request."""

    def __init__(self, settings: ElasticSettings) -> None:
        self._cluster = Cluster(settings)
        self._feedback = f"{settings.name}-feedback"
        self._lists = f"{settings.name}-lists"
        self._is_ready = False

    def erasure_mark(self) -> str:
        source = self._list_document(MARK_DOCUMENT)
        return "" if source is None else str(source["name"])

    def add_event(self, event: FeedbackEvent, *, since: str | None = None) -> FeedbackEvent:
        self._make_ready()
        key = document_id("event", event.user, event.id)
        with self._cluster.explained():
            client = self._cluster.retrying.options(ignore_status=CONFLICT)
            answer = client.create(index=self._feedback, id=key, document=mapping.event_source(event))
        if answer.meta.status != CONFLICT:
            if self._is_erased(since):
                self._cluster.bulk(self._feedback, [{"delete": {"_id": key}}])
                raise erased_meanwhile()
            return event
        stored = self._cluster.documents(self._feedback, [key], vectors=False)
        if key not in stored:
            raise IndexUnavailable(f"event {event.id!r} was erased while it was being stored; send it again")
        return same_or_conflict(event, known=mapping.event_of(stored[key]))

    def events(self, *, company: str = "", user: str = "", before: Place | None = None) -> Iterator[FeedbackEvent]:
        self._make_ready()
        self._cluster.refresh(self._feedback)
        for size in page_sizes():
            query = mapping.events_query(company=company, user=user, before=before, size=size)
            hits = self._cluster.search(self._feedback, query)["hits"]["hits"]
            page = [mapping.event_of(hit["_source"]) for hit in hits]
            yield from page
            if len(page) < size:
                return
            before = page[-1].place

    def save_list(self, saved: SavedList, *, since: str | None = None) -> bool:
        self._make_ready()
        return self._write(document_id("list", saved.name), mapping.list_source(saved), since)

    def change_list(
        self, name: str, change: Callable[[SavedList], SavedList], *, since: str | None = None
    ) -> SavedList:
        for _ in range(MAX_ROUNDS):
            hit = next(self._listed({"kind": "list", "name": name}), None)
            if hit is None:
                raise unknown_list(name)
            known = mapping.list_of(hit["_source"])
            changed = change(known)
            if self._replace(self._lists, hit, mapping.list_source(changed)):
                if self._is_erased(since):
                    self._take_out(name, set(changed.companies or ()) - set(known.companies or ()))
                    raise erased_meanwhile()
                return changed
        raise IndexUnavailable(f"the list {name!r} is changed by others all the time; send the change again")

    def lists(self) -> list[SavedList]:
        return [mapping.list_of(hit["_source"]) for hit in self._listed({"kind": "list"})]

    def list_lengths(self) -> dict[str, int]:
        return {saved.name: len(json.dumps(saved.question)) for saved in self.lists()}

    def saved_list(self, name: str) -> SavedList:
        source = self._list_document(document_id("list", name))
        if source is None:
            raise unknown_list(name)
        return mapping.list_of(source)

    def remove_list(self, name: str) -> None:
        self._make_ready()
        if not self._delete(document_id("list", name)):
            raise unknown_list(name)
        self._remove_looks(name)

    def _remove_looks(self, name: str) -> None:
        while looks := list(self._listed({"kind": "look", "name": name})):
            for look in looks:
                self._delete(look["_id"])

    def add_look(self, look: Look, *, since: str | None = None) -> None:
        if self._list_document(document_id("list", look.list_name)) is None:
            raise unknown_list(look.list_name)
        self._write(document_id("look", look.list_name, look.user), mapping.look_source(look), since)

    def last_look(self, name: str, user: str) -> Look | None:
        source = self._list_document(document_id("look", name, user))
        return None if source is None else mapping.look_of(source)

    def looks(self, user: str) -> list[Look]:
        return [mapping.look_of(hit["_source"]) for hit in self._listed({"kind": "look", "user": user})]

    def forget_company(self, names: CompanyNames) -> Forgotten:
        self._make_ready()
        # The mark must change before the search; see the module's docstring.
        self._write(MARK_DOCUMENT, {"kind": "erasure mark", "name": secrets.token_hex(16)})
        return Forgotten(
            events=self._forget_events(names.id),
            lists=self._forget_in_lists(names),
            looks=self._forget_in_looks(names.id),
            notes=self._forget_in_notes(names),
        )

    def compact(self) -> bool:
        self._make_ready()
        are_complete = [compact_index(self._cluster, index) for index in (self._feedback, self._lists)]
        return all(are_complete)

    def check(self) -> None:
        self._make_ready()
        for index in (self._feedback, self._lists):
            try:
                self._cluster.documents(index, ["no-document"], vectors=False)
            except UnknownGeneration as error:
                raise IndexUnavailable(
                    f"the index {index} was deleted; restore it from a snapshot, or restart to create an empty index"
                ) from error

    def close(self) -> None:
        self._cluster.close()

    def _make_ready(self) -> None:
        """Create missing indices. Raises IndexUnavailable if an index has the schema of another release.

        Only the first call sends requests.
        """
        if self._is_ready:
            return
        for index, fields in ((self._feedback, mapping.FEEDBACK_FIELDS), (self._lists, mapping.LISTS_FIELDS)):
            with self._cluster.explained():
                found = self._cluster.retrying.options(ignore_status=NOT_FOUND).indices.get_mapping(index=index)
            if found.meta.status == NOT_FOUND:
                self._cluster.create_index(index, **small_index(fields, schema=mapping.SCHEMA_VERSION, replicas="0-1"))
                continue
            schema = found[index]["mappings"].get("_meta", {}).get("schema")
            if schema != mapping.SCHEMA_VERSION:
                raise IndexUnavailable(
                    f"the index {index} is not a workspace of this release (schema {schema}; this release reads "
                    f"{mapping.SCHEMA_VERSION}); upgrade this installation, or choose another index name"
                )
        self._is_ready = True

    def _list_document(self, key: str) -> Mapping[str, Any] | None:
        """Return the newest source of a list, a look or the mark; None if it does not exist."""
        self._make_ready()
        return self._cluster.documents(self._lists, [key], vectors=False).get(key)

    def _listed(self, terms: Body) -> Iterator[Mapping[str, Any]]:
        """Yield the hits of all lists or looks with these field values, in the order of the lists' names."""
        self._make_ready()
        self._cluster.refresh(self._lists)
        query: Body = {
            "query": {"bool": {"filter": [{"term": {field: value}} for field, value in terms.items()]}},
            "sort": [{"name": "asc"}, {"user": "asc"}],
            "size": PAGE_LISTS,
            "seq_no_primary_term": True,
        }
        return chain.from_iterable(self._cluster.pages(self._lists, query))

    def _delete(self, key: str, **unchanged: Any) -> bool:
        """Delete a list or look; return whether it existed and was `unchanged`.

        The request is sent once: another would not find it.
        """
        with self._cluster.explained():
            client = self._cluster.client.options(ignore_status=(NOT_FOUND, CONFLICT))
            return client.delete(index=self._lists, id=key, **unchanged).meta.status not in {NOT_FOUND, CONFLICT}

    def _forget_events(self, company_id: str) -> int:
        """Delete all events about the company; return their number."""
        deleted = 0
        self._cluster.refresh(self._feedback)
        query = {**mapping.events_query(company=company_id, size=PAGE_EVENTS), "_source": False}
        for page in self._cluster.pages(self._feedback, query):
            self._cluster.bulk(self._feedback, [{"delete": {"_id": hit["_id"]}} for hit in page])
            deleted += len(page)
        return deleted

    def _forget_in_lists(self, names: CompanyNames) -> int:
        """Remove the company from all lists; return the number of changes. Repeated if a list is saved meanwhile."""
        changed, renamed = 0, dict[str, str]()
        for _ in range(MAX_ROUNDS):
            has_conflict = False
            renamed = renamed_lists(self.lists(), names) | renamed  # queries have the names of the first round already
            # Rename lists last: if this call is interrupted, the next one needs the old names to change the queries.
            for hit in (
                hit
                for is_renamed in (False, True)
                for hit in self._listed({"kind": "list"})
                if (hit["_source"]["name"] in renamed) is is_renamed
            ):
                saved = mapping.list_of(hit["_source"])
                cleaned = forgotten_list(saved, names, renamed)
                if cleaned is saved:
                    continue
                if cleaned is None:
                    with suppress(UnknownList):
                        self.remove_list(saved.name)
                elif cleaned.name != saved.name:
                    if has_conflict or not self._rename(hit, cleaned):
                        has_conflict = True
                        continue
                elif not self._replace(self._lists, hit, mapping.list_source(cleaned)):
                    has_conflict = True
                    continue
                changed += 1
            if not has_conflict:
                return changed
        raise IndexUnavailable(
            f"{names.id} is not erased from all lists, because lists were saved at the same time; erase it again"
        )

    def _rename(self, hit: Mapping[str, Any], renamed: SavedList) -> bool:
        """Rename the list of a hit and its looks. If the list was changed after the search, return False.

        If a call is interrupted, a second call completes it.
        """
        name = hit["_source"]["name"]
        self.save_list(renamed)
        for look in self._listed({"kind": "look", "name": name}):
            self.add_look(replace(mapping.look_of(look["_source"]), list_name=renamed.name))
        if not self._delete(hit["_id"], **_unchanged(hit)) and self._list_document(hit["_id"]) is not None:
            self.remove_list(renamed.name)
            return False
        self._remove_looks(name)
        return True

    def _is_erased(self, since: str | None) -> bool:
        """Return whether an erasure began to search after the mark `since`."""
        return since is not None and self.erasure_mark() != since

    def _take_out(self, name: str, companies: Collection[str]) -> None:
        """Take companies off a shortlist, if it still exists."""

        def without(saved: SavedList) -> SavedList:
            return replace(
                saved, question={"companies": [id_ for id_ in saved.companies or () if id_ not in companies]}
            )

        with suppress(UnknownList):
            self.change_list(name, without)

    def _write(self, key: str, source: Body, since: str | None = None) -> bool:
        """Write a list, a look or the mark; return whether it is new.

        Raises ErasedMeanwhile if there was an erasure after the mark `since`; the written document is then deleted.
        """
        with self._cluster.explained():
            answer = self._cluster.retrying.index(index=self._lists, id=key, document=source)
        if self._is_erased(since):
            written = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
            with self._cluster.explained():
                # A newer version was saved by another user, or lacks the company already: it stays.
                client = self._cluster.client.options(ignore_status=[CONFLICT, NOT_FOUND])
                client.delete(index=self._lists, id=key, **written)
            raise erased_meanwhile()
        return bool(answer["result"] == "created")

    def _forget_in_notes(self, names: CompanyNames) -> int:
        """Empty the free texts of events that contain a name of the company; return the number of changed events.

        Free texts are not indexed, so every event is read.
        """
        query = {**mapping.events_query(size=PAGE_EVENTS), "seq_no_primary_term": True}
        cleared = 0
        self._cluster.refresh(self._feedback)
        for hit in chain.from_iterable(self._cluster.pages(self._feedback, query)):
            event = mapping.event_of(hit["_source"])
            cleaned = forgotten_event(event, names)
            # Only erasures change events. If `_replace` finds a change, another erasure has removed the event or text.
            cleared += cleaned != event and self._replace(self._feedback, hit, mapping.event_source(cleaned))
        return cleared

    def _forget_in_looks(self, company_id: str) -> int:
        """Remove the company from the hits of all looks; return the number of changed looks."""
        changed = 0
        for _ in range(MAX_ROUNDS):
            looks = list(self._listed({"kind": "look", "seen": company_id}))
            if not looks:
                return changed
            for hit in looks:
                seen_ids = [seen_id for seen_id in hit["_source"]["seen"] if seen_id != company_id]
                changed += self._replace(self._lists, hit, {**hit["_source"], "seen": seen_ids})
        raise IndexUnavailable(
            f"{company_id} is not erased from all looks, because looks were stored at the same time; erase it again"
        )

    def _replace(self, index: str, hit: Mapping[str, Any], source: Body) -> bool:
        """Replace the document of a hit. If the document was changed after the search, return False.

        The request is sent once: a repetition would find the change of the first attempt.
        """
        with self._cluster.explained():
            client = self._cluster.client.options(ignore_status=CONFLICT)
            answer = client.index(index=index, id=hit["_id"], document=source, **_unchanged(hit))
        return bool(answer.meta.status != CONFLICT)


def _unchanged(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request that fails if the document of a hit was changed after the search."""
    return {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
