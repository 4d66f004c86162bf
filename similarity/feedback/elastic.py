"""The workspace on Elasticsearch: two indices, which all replicas of the service share.

A read refreshes its index first, so that it sees all earlier writes of all processes. This is cheap enough, because
people write verdicts and lists rarely. A write that saves a document gives its id, so it can be repeated if its
response is lost (`Cluster.retrying`). Deletes and conditional changes are sent only once.

There are no transactions. An erasure changes its mark before it searches, and writes every list, also those that stay
as they are. A save that replaces a list reads the list, compares the mark, and writes only if the list is unchanged:
if an erasure has searched the list meanwhile, it writes nothing. A save of a new document compares the mark after the
write: if it is the same, an erasure that comes later finds the document; otherwise the document is deleted again.
"""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.feedback import elastic_mapping as mapping
from similarity.feedback import forgetting
from similarity.feedback.elastic_indices import CONFLICT, WorkspaceIndices, unchanged
from similarity.feedback.protocol import FeedbackEvent, Forgotten, Look, Place, SavedList
from similarity.feedback.rules import erased_meanwhile, list_exists, page_sizes, same_or_conflict, unknown_list
from similarity.index.elastic import ElasticSettings
from similarity.index.elastic.compaction import compact as compact_index
from similarity.index.elastic.documents import document_id
from similarity.index.elastic.mapping import Body
from similarity.index.name_hashes import ErasedCompanies

PAGE_EVENTS = 500
MAX_ROUNDS = 20
"""Rounds of a change or an erasure before it gives up, because other processes change the documents each time."""
MARK_DOCUMENT = document_id("erasure mark")


class ElasticWorkspace:
    """A `Workspace` in the indices `<name>-feedback` and `<name>-lists`, which are created at the first request."""

    def __init__(self, settings: ElasticSettings) -> None:
        self._indices = WorkspaceIndices(settings)

    def erasure_mark(self) -> str:
        hit = self._list_hit(MARK_DOCUMENT)
        return "" if hit is None else str(hit["_source"]["name"])

    def add_event(self, event: FeedbackEvent, *, since: str | None = None) -> FeedbackEvent:
        self._indices.make_ready()
        key = document_id("event", event.user, event.id)
        with self._indices.cluster.explained():
            client = self._indices.cluster.retrying.options(ignore_status=CONFLICT)
            answer = client.create(index=self._indices.feedback, id=key, document=mapping.event_source(event))
        if answer.meta.status != CONFLICT:
            if self._is_erased(since):
                self._indices.cluster.bulk(self._indices.feedback, [{"delete": {"_id": key}}])
                raise erased_meanwhile()
            return event
        stored = self._indices.cluster.documents(self._indices.feedback, [key], vectors=False)
        if key not in stored:
            raise IndexUnavailable(f"event {event.id!r} was erased while it was being stored; send it again")
        return same_or_conflict(event, known=mapping.event_of(stored[key]))

    def events(self, *, company: str = "", user: str = "", before: Place | None = None) -> Iterator[FeedbackEvent]:
        self._indices.make_ready()
        self._indices.cluster.refresh(self._indices.feedback)
        for size in page_sizes():
            query = mapping.events_query(companies=[company] if company else [], user=user, before=before, size=size)
            hits = self._indices.cluster.search(self._indices.feedback, query)["hits"]["hits"]
            page = [mapping.event_of(hit["_source"]) for hit in hits]
            yield from page
            if len(page) < size:
                return
            before = page[-1].place

    def save_list(self, saved: SavedList, *, since: str | None = None, replace: bool = True) -> bool:
        key, source = document_id("list", saved.name), mapping.list_source(saved)
        for _ in range(MAX_ROUNDS):
            hit = self._list_hit(key, since)
            if hit is None and self._write(key, source, since, op_type="create"):
                return True
            if hit is not None and not replace:
                raise list_exists(saved.name)
            if hit is not None and self._indices.replace(self._indices.lists, hit, source, is_repeatable=True):
                return False
        raise _always_changed(saved.name)

    def change_list(
        self, name: str, change: Callable[[SavedList], SavedList], *, since: str | None = None
    ) -> SavedList:
        for _ in range(MAX_ROUNDS):
            hit = self._list_hit(document_id("list", name), since)
            if hit is None:
                raise unknown_list(name)
            changed = change(mapping.list_of(hit["_source"]))
            if self._indices.replace(self._indices.lists, hit, mapping.list_source(changed)):
                return changed
        raise _always_changed(name)

    def lists(self) -> list[SavedList]:
        self._indices.make_ready()
        return [mapping.list_of(hit["_source"]) for hit in self._indices.listed("list")]

    def list_lengths(self) -> dict[str, int]:
        return {saved.name: len(json.dumps(saved.question)) for saved in self.lists()}

    def saved_list(self, name: str) -> SavedList:
        hit = self._list_hit(document_id("list", name))
        if hit is None:
            raise unknown_list(name)
        return mapping.list_of(hit["_source"])

    def remove_list(self, name: str) -> None:
        self._indices.make_ready()
        if not self._indices.delete(document_id("list", name)):
            raise unknown_list(name)
        self._indices.remove_looks(name)

    def add_look(self, look: Look, *, since: str | None = None) -> None:
        if self._list_hit(document_id("list", look.list_name)) is None:
            raise unknown_list(look.list_name)
        self._write(document_id("look", look.list_name, look.user), mapping.look_source(look), since)

    def last_look(self, name: str, user: str) -> Look | None:
        hit = self._list_hit(document_id("look", name, user))
        return None if hit is None else mapping.look_of(hit["_source"])

    def looks(self, user: str) -> list[Look]:
        self._indices.make_ready()
        return [mapping.look_of(hit["_source"]) for hit in self._indices.listed("look", user=[user])]

    def forget_companies(self, companies: ErasedCompanies) -> dict[str, Forgotten]:
        self._indices.make_ready()
        # The mark must change before the search; see the module's docstring.
        self._write(MARK_DOCUMENT, {"kind": "erasure mark", "name": secrets.token_hex(16)})
        return forgetting.counts_by_company(
            companies,
            events=self._forget_events(companies),
            lists=self._forget_in_lists(companies),
            looks=self._forget_in_looks(companies),
            notes=self._forget_in_notes(companies),
        )

    def compact(self) -> bool:
        self._indices.make_ready()
        are_complete = [
            compact_index(self._indices.cluster, index) for index in (self._indices.feedback, self._indices.lists)
        ]
        return all(are_complete)

    def check(self) -> None:
        self._indices.make_ready()
        for index in (self._indices.feedback, self._indices.lists):
            try:
                self._indices.cluster.documents(index, ["no-document"], vectors=False)
            except UnknownGeneration as error:
                raise IndexUnavailable(
                    f"the index {index} was deleted; restore it from a snapshot, or restart to create an empty index"
                ) from error

    def close(self) -> None:
        self._indices.cluster.close()

    def _list_hit(self, key: str, since: str | None = None) -> Mapping[str, Any] | None:
        """Return the newest version of a list, a look or the mark, as a hit of a search; None if it does not exist.

        Raises ErasedMeanwhile if there was an erasure after the mark `since`.
        """
        self._indices.make_ready()
        hit = self._indices.hit(key)
        if self._is_erased(since):
            raise erased_meanwhile()
        return hit

    def _forget_events(self, companies: ErasedCompanies) -> Counter[str]:
        """Delete all events about the companies; return their numbers by company."""
        deleted = Counter[str]()
        self._indices.cluster.refresh(self._indices.feedback)
        query = {**mapping.events_query(companies=companies.ids, size=PAGE_EVENTS), "_source": ["anchor", "hit"]}
        for page in self._indices.cluster.pages(self._indices.feedback, query):
            companies.require(companies.ids.intersection(each for hit in page for each in hit["_source"].values()))
            self._indices.cluster.bulk(self._indices.feedback, [{"delete": {"_id": hit["_id"]}} for hit in page])
            deleted.update(each for hit in page for each in hit["_source"].values() if each in companies.ids)
        return deleted

    def _forget_in_lists(self, companies: ErasedCompanies) -> Counter[str]:
        """Remove the companies from all lists, and write every list; return the numbers of changes by company.

        Repeated if a list is saved meanwhile.
        """
        changed, renamed, written = Counter[str](), dict[str, str](), set[str]()  # `written`: ids of documents
        for _ in range(MAX_ROUNDS):
            has_conflict = False
            # Queries have the names of the first round already.
            renamed = forgetting.renamed_lists(self.lists(), companies) | renamed
            # Rename lists last: if this call is interrupted, the next one needs the old names to change the queries.
            for hit in (
                hit
                for is_renamed in (False, True)
                for hit in self._indices.listed("list")
                if (hit["_source"]["name"] in renamed) is is_renamed
            ):
                saved = mapping.list_of(hit["_source"])
                cleaned, found = forgetting.forgotten_list(saved, companies, renamed)
                if cleaned is saved and hit["_id"] in written:
                    continue
                companies.require(found)
                if cleaned is None:
                    is_written = self._remove(hit)
                elif cleaned.name != saved.name:
                    if hit["_id"] in written:  # it was renamed, and is here again: a new list
                        cleaned = replace(cleaned, name=f"{cleaned.name} {secrets.token_hex(4)}")
                    is_written = not has_conflict and self._rename(hit, cleaned, partial(companies.require, found))
                else:
                    is_written = self._indices.replace(self._indices.lists, hit, mapping.list_source(cleaned))
                if is_written:
                    written.add(hit["_id"])
                    changed.update(found)
                else:
                    has_conflict = True
            if not has_conflict:
                return changed
        raise IndexUnavailable(
            "lists were saved all the time, so companies are not erased from all of them; erase them again"
        )

    def _remove(self, hit: Mapping[str, Any]) -> bool:
        """Remove the list of a hit and its looks. If the list was changed after the search, return False."""
        if not self._indices.delete(hit["_id"], **unchanged(hit)) and self._list_hit(hit["_id"]) is not None:
            return False
        self._indices.remove_looks(hit["_source"]["name"])
        return True

    def _rename(self, hit: Mapping[str, Any], renamed: SavedList, require: Callable[[], None]) -> bool:
        """Rename the list of a hit and its looks. Returns False if the lists must be searched again.

        The new list is written and the old one deleted in one request, which a kill of this process does not divide. If
        a user has changed or removed the old list meanwhile, the new one is deleted again.
        """
        name, key = hit["_source"]["name"], document_id("list", renamed.name)
        existing = self._indices.hit(key)
        if existing is not None and existing["_seq_no"] < hit["_seq_no"]:  # of a call that was interrupted earlier
            self._indices.delete(key, **unchanged(existing))
            return False
        for look in self._indices.listed("look", name=[name]):
            look_key = document_id("look", renamed.name, look["_source"]["user"])
            self._write(look_key, {**look["_source"], "name": renamed.name})
        require()
        if existing is not None:
            if self._indices.delete(hit["_id"], **unchanged(hit)):
                self._indices.remove_looks(name)
            return False
        created, is_deleted = self._indices.move(hit, key, mapping.list_source(renamed))
        if created is not None and not is_deleted and self._indices.delete(key, **unchanged(created)):
            self._indices.remove_looks(renamed.name)
        if is_deleted:
            self._indices.remove_looks(name)
        return created is not None and is_deleted

    def _is_erased(self, since: str | None) -> bool:
        """Return whether an erasure began to search after the mark `since`."""
        return since is not None and self.erasure_mark() != since

    def _write(self, key: str, source: Body, since: str | None = None, **parameters: Any) -> Mapping[str, Any] | None:
        """Write a new list, a look or the mark; return the answer, as a hit without its source, None if it is not new.

        Raises ErasedMeanwhile if there was an erasure after the mark `since`; the written document is then deleted.
        """
        with self._indices.cluster.explained():
            client = self._indices.cluster.retrying.options(ignore_status=CONFLICT)
            answer = client.index(index=self._indices.lists, id=key, document=source, **parameters)
        if answer.meta.status != CONFLICT and self._is_erased(since):
            # If it is not unchanged, another user has replaced it meanwhile, or it lacks the company already.
            self._indices.delete(key, **unchanged(answer.body))
            raise erased_meanwhile()
        return answer.body if answer.meta.status != CONFLICT and answer["result"] == "created" else None

    def _forget_in_notes(self, companies: ErasedCompanies) -> Counter[str]:
        """Empty the free texts of events that contain a name; return the numbers of changed events by company.

        Free texts are not indexed, so every event is read.
        """
        query = {**mapping.events_query(size=PAGE_EVENTS), "seq_no_primary_term": True}
        cleared = Counter[str]()
        for _ in range(MAX_ROUNDS):
            has_conflict = False
            self._indices.cluster.refresh(self._indices.feedback)
            for hit in chain.from_iterable(self._indices.cluster.pages(self._indices.feedback, query)):
                cleaned, found = forgetting.forgotten_event(mapping.event_of(hit["_source"]), companies)
                companies.require(found)
                if found and self._indices.replace(self._indices.feedback, hit, mapping.event_source(cleaned)):
                    cleared.update(found)
                else:
                    has_conflict |= bool(found)  # another erasure has changed it, and looks for other names
            if not has_conflict:
                return cleared
        raise IndexUnavailable("other erasures changed notes all the time; erase the companies again")

    def _forget_in_looks(self, companies: ErasedCompanies) -> Counter[str]:
        """Remove the companies from the hits of all looks; return the numbers of changed looks by company."""
        changed = Counter[str]()
        for _ in range(MAX_ROUNDS):
            looks = list(self._indices.listed("look", seen=sorted(companies.ids)))
            if not looks:
                break
            for hit in looks:
                cleaned, found = forgetting.forgotten_look(mapping.look_of(hit["_source"]), companies)
                companies.require(found)
                if self._indices.replace(self._indices.lists, hit, mapping.look_source(cleaned)):
                    changed.update(found)
        else:
            raise IndexUnavailable(
                "looks were stored all the time, so companies are not erased from all of them; erase them again"
            )
        # Looks at lists that are gone, because a call was interrupted between list and looks.
        for name in self._indices.names_of_looks():
            if companies.contained_in(name) and self._indices.hit(document_id("list", name)) is None:
                self._indices.remove_looks(name)
        return changed


def _always_changed(name: str) -> IndexUnavailable:
    return IndexUnavailable(f"the list {name!r} is changed by others all the time; send the change again")
