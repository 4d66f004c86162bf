"""Removal of erased companies from events, lists and looks (no I/O).

Each function also returns the ids of the companies that were in the record; none if the record stays as it is.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from similarity.feedback.protocol import FeedbackEvent, Forgotten, Look, SavedList
from similarity.feedback.rules import microseconds
from similarity.index.name_hashes import ErasedCompanies


def counts_by_company(companies: ErasedCompanies, **counts: Counter[str]) -> dict[str, Forgotten]:
    """Return the counts of an erasure by company. `counts`: for each field of `Forgotten`, the records by company."""
    return {each: Forgotten(**{kind: number[each] for kind, number in counts.items()}) for each in companies.ids}


def forgotten_event(event: FeedbackEvent, companies: ErasedCompanies) -> tuple[FeedbackEvent, frozenset[str]]:
    """Return an event about other companies, without the free texts that contain a name of an erased company.

    Clients may send any text as the note, and as the names of generation and bundle.
    """
    texts = (event.note, event.shown.generation, event.shown.bundle_id)
    found = frozenset[str]().union(*map(companies.contained_in, texts))
    if not found:
        return event, found
    note, generation, bundle_id = ("" if companies.contained_in(text) else text for text in texts)
    return replace(event, note=note, shown=replace(event.shown, generation=generation, bundle_id=bundle_id)), found


def forgotten_look(look: Look, companies: ErasedCompanies) -> tuple[Look, frozenset[str]]:
    """Return a look without the erased companies among its hits."""
    found = companies.ids.intersection(look.seen)
    return (replace(look, seen=tuple(each for each in look.seen if each not in found)) if found else look), found


def renamed_lists(lists: Iterable[SavedList], companies: ErasedCompanies) -> dict[str, str]:
    """Return the new name ("list" and a unique code) of each list whose name contains a name, by its old name.

    It depends on the old name only, so an erasure that was interrupted gives it again. If another list already has it,
    because a list of this name was renamed earlier, it also depends on the time of the last change.
    """
    by_name = {saved.name: saved for saved in lists}
    return {
        name: new if (new := _replacement(companies, name)) not in by_name else _replacement(companies, f"{name} {at}")
        for name, at in ((name, microseconds(saved.saved_at)) for name, saved in by_name.items())
        if companies.contained_in(name)
    }


def _replacement(companies: ErasedCompanies, text: str) -> str:
    return f"list {companies.pseudonym(text)}"


def forgotten_list(
    saved: SavedList, companies: ErasedCompanies, renamed: Mapping[str, str]
) -> tuple[SavedList | None, frozenset[str]]:
    """Return a list without the erased companies; None if no anchor remains.

    `renamed`: the `renamed_lists` of the workspace. A shortlist stays even if it becomes empty.
    """
    search = _Search(companies, renamed)
    question = search.forgotten_question(saved.question)
    name = search.name_of(saved.name)
    if question is None:
        return None, frozenset(search.found)
    if (name, question) == (saved.name, saved.question):
        return saved, frozenset()
    return replace(saved, name=name, question=question), frozenset(search.found)


@dataclass(frozen=True, slots=True)
class _Search:
    """Removes erased companies from one list. `found`: the ids of those that were in it."""

    companies: ErasedCompanies
    renamed: Mapping[str, str]
    found: set[str] = field(default_factory=set)

    def forgotten_question(self, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the query without the companies; None if no anchor remains; the same object if none is in it.

        Anchors and negatives are removed if they are such a company or a text with its name. Values of `exclude` and of
        filters are removed if they contain its name. A filter without values and limits is removed, and so is a filter
        on an attribute whose name contains the company's name. An ordinary word, such as the industry Energy, is
        treated as a name only where a company is expected: in `exclude` and in filters on domains.

        The id is removed from a shortlist. Names of other lists in `exclude_lists` follow `renamed`. If such a list no
        longer exists, its name becomes a code: the query still fails instead of returning companies that it excluded.
        """
        members = ("anchors", "negatives", "exclude", "exclude_lists", "filters", "companies")
        held = {member: list(question.get(member) or []) for member in members}
        kept = {
            "anchors": [each for each in held["anchors"] if not self._is_anchor(each)],
            "negatives": [each for each in held["negatives"] if not self._is_anchor(each)],
            "exclude": [each for each in held["exclude"] if not self._noted(self.companies.occur_in(each))],
            "exclude_lists": [self.name_of(each) for each in held["exclude_lists"]],
            "companies": [each for each in held["companies"] if not self._noted(self.companies.ids & {each})],
            "filters": [left for each in held["filters"] if (left := self._forgotten_filter(each))],
        }
        if held["anchors"] and not kept["anchors"]:
            return None
        changed = {member: values for member, values in kept.items() if values != held[member]}
        return {**question, **changed} if changed else question

    def name_of(self, name: str) -> str:
        """Return the name of a list after the erasure."""
        if not self._noted(self.companies.contained_in(name)):
            return name
        return self.renamed.get(name, _replacement(self.companies, f"missing {name}"))

    def _is_anchor(self, anchor: Mapping[str, Any]) -> bool:
        by_reference = self.companies.matches(anchor.get("company"))
        return self._noted(by_reference | self.companies.contained_in(anchor.get("text") or ""))

    def _forgotten_filter(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if self._noted(self.companies.contained_in(str(given.get("field")).removeprefix("attributes."))):
            return None

        def is_it(value: str) -> bool:
            if given.get("field") == "domain":
                return self._noted(self.companies.occur_in(value))
            return self._noted(self.companies.contained_in(value, unless_anothers=True))

        members = ("any_of", "none_of")
        kept = {member: [each for each in given.get(member) or [] if not is_it(each)] for member in members}
        changed = {member: values for member, values in kept.items() if values != list(given.get(member) or [])}
        has_range = any(given.get(limit) is not None for limit in ("at_least", "at_most", "above", "below"))
        if changed and not has_range and not any(kept.values()):
            return None
        return {**given, **changed} if changed else given

    def _noted(self, ids: Collection[str]) -> bool:
        self.found.update(ids)
        return bool(ids)
