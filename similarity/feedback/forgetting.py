"""Removal of one company from events and saved lists (no I/O)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from similarity.feedback.protocol import FeedbackEvent, SavedList
from similarity.feedback.rules import microseconds
from similarity.index.name_hashes import CompanyNames


def forgotten_event(event: FeedbackEvent, names: CompanyNames) -> FeedbackEvent:
    """Return an event about other companies, without the free texts that contain a name of the erased company.

    Clients may send any text as the note, and as the names of generation and bundle.
    """

    def kept(text: str) -> str:
        return "" if names.contained_in(text) else text

    if not any(map(names.contained_in, (event.note, event.shown.generation, event.shown.bundle_id))):
        return event
    shown = replace(event.shown, generation=kept(event.shown.generation), bundle_id=kept(event.shown.bundle_id))
    return replace(event, note=kept(event.note), shown=shown)


def renamed_lists(lists: Iterable[SavedList], names: CompanyNames) -> dict[str, str]:
    """Return the new name ("list" and a unique code) of each list whose name contains a name, by its old name."""
    return {
        saved.name: f"list {names.pseudonym(f'{saved.name} {microseconds(saved.saved_at)}')}"
        for saved in lists
        if names.contained_in(saved.name)
    }


def forgotten_list(saved: SavedList, names: CompanyNames, renamed: Mapping[str, str]) -> SavedList | None:
    """Return a list without a company; None if no anchor remains; the same object if the company is not in it.

    `renamed`: the `renamed_lists` of the workspace. A shortlist stays even if it becomes empty.
    """
    name, question = renamed.get(saved.name, saved.name), forgotten_question(saved.question, names, renamed)
    if question is None:
        return None
    return saved if (name, question) == (saved.name, saved.question) else replace(saved, name=name, question=question)


def forgotten_question(
    question: Mapping[str, Any], names: CompanyNames, renamed: Mapping[str, str]
) -> Mapping[str, Any] | None:
    """Return the query without a company; None if no anchor remains; the same object if the company is not in it.

    Anchors and negatives are removed if they are this company or a text with its name. Values of `exclude` and of
    filters are removed if they contain its name. A filter without values and limits is removed, and so is a filter on
    an attribute whose name contains the company's name. An ordinary word, such as the industry Energy, is treated as a
    name only where a company is expected: in `exclude` and in filters on domains.

    The id is removed from a shortlist. Names of other lists in `exclude_lists` follow `renamed`. If such a list no
    longer exists, its name becomes a code: the query still fails instead of returning companies that it excluded.
    """

    def is_it(anchor: Mapping[str, Any]) -> bool:
        return names.matches(anchor.get("company")) or names.contained_in(anchor.get("text") or "")

    def name_of(other: str) -> str:
        return renamed.get(other, f"list {names.pseudonym(other)}") if names.contained_in(other) else other

    members = ("anchors", "negatives", "exclude", "exclude_lists", "filters", "companies")
    held = {member: list(question.get(member) or []) for member in members}
    kept = {
        "anchors": [each for each in held["anchors"] if not is_it(each)],
        "negatives": [each for each in held["negatives"] if not is_it(each)],
        "exclude": [each for each in held["exclude"] if not names.occur_in(each)],
        "exclude_lists": [name_of(each) for each in held["exclude_lists"]],
        "companies": [each for each in held["companies"] if each != names.id],
        "filters": [left for each in held["filters"] if (left := _forgotten_filter(each, names))],
    }
    if held["anchors"] and not kept["anchors"]:
        return None
    changed = {member: values for member, values in kept.items() if values != held[member]}
    return {**question, **changed} if changed else question


def _forgotten_filter(given: Mapping[str, Any], names: CompanyNames) -> Mapping[str, Any] | None:
    if names.contained_in(str(given.get("field")).removeprefix("attributes.")):
        return None

    def is_it(value: str) -> bool:
        if given.get("field") == "domain":
            return names.occur_in(value)
        return names.contained_in(value) and not names.belongs_to_another(value)

    members = ("any_of", "none_of")
    kept = {member: [each for each in given.get(member) or [] if not is_it(each)] for member in members}
    changed = {member: values for member, values in kept.items() if values != list(given.get(member) or [])}
    has_range = any(given.get(limit) is not None for limit in ("at_least", "at_most", "above", "below"))
    if changed and not has_range and not any(kept.values()):
        return None
    return {**given, **changed} if changed else given
