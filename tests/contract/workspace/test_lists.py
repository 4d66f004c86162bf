"""Lists are a name and a question, shared; what each user saw last is kept beside them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from similarity.errors import InvalidInput
from similarity.feedback.protocol import ListExists, Look, SavedList, UnknownList, Workspace
from tests.contract.workspace.conftest import Opener
from tests.workspace_records import make_list, make_shortlist, moment

QUESTION: dict[str, Any] = {
    "anchors": [{"company": "nike", "weight": 2.0}, {"text": 'läuft — "schnell"', "weight": 1.0}],
    "negatives": [],
    "filters": [{"field": "attributes.employees", "at_least": 10.5, "at_most": None}],
    "exclude": ["adidas"],
    "rank": "cosine",
    "min_probability": 0.5,
    "k": 25,
}


def look(*seen: str, user: str = "ann", name: str = "shoes", at: int = 0) -> Look:
    return Look(list_name=name, user=user, at=moment(at), seen=seen)


def test_a_list_comes_back_as_it_was_saved(workspace: Workspace) -> None:
    saved = make_list("Schuhe / Läufer — 2026", at=moment(5), **QUESTION)
    assert workspace.save_list(saved) is True
    assert workspace.saved_list(saved.name) == saved


def test_lists_are_named_in_order(workspace: Workspace) -> None:
    for name in ("b", "a", "B", "ä"):
        workspace.save_list(make_list(name))
    assert [each.name for each in workspace.lists()] == ["B", "a", "b", "ä"]


def test_an_unknown_list_is_said_to_be_unknown(workspace: Workspace) -> None:
    workspace.save_list(make_list("Shoes"))
    for ask in (workspace.saved_list, workspace.remove_list):
        with pytest.raises(UnknownList, match="shoes"):
            ask("shoes")
    with pytest.raises(UnknownList, match="shoes"):
        workspace.add_look(look("adidas"))
    assert workspace.last_look("shoes", "ann") is None


def test_the_last_look_of_each_user_is_kept(workspace: Workspace) -> None:
    workspace.save_list(make_list())
    workspace.add_look(look("adidas", "puma"))
    workspace.add_look(look(user="bob"))
    workspace.add_look(look("puma", "asics", at=1))
    assert workspace.last_look("shoes", "ann") == look("puma", "asics", at=1)
    assert workspace.last_look("shoes", "bob") == look(user="bob")
    assert workspace.last_look("shoes", "cid") is None
    workspace.save_list(make_list("boots"))
    workspace.add_look(look("clogs", name="boots"))
    assert workspace.looks("ann") == [look("clogs", name="boots"), look("puma", "asics", at=1)]
    assert workspace.looks("cid") == []


def test_a_long_list_of_exclusions_is_kept(workspace: Workspace) -> None:
    saved = make_list(exclude=[f"company-{number}.example.com" for number in range(10_000)])
    workspace.save_list(saved)
    assert workspace.saved_list("shoes") == saved


def test_the_length_of_a_list_is_told_without_the_list(workspace: Workspace) -> None:
    for saved in (make_list("short"), make_shortlist("long", *(f"id-{number:04}" for number in range(1_000)))):
        workspace.save_list(saved)
    lengths = workspace.list_lengths()
    assert 10 < lengths.pop("short") < 1_000
    assert 10_000 <= lengths.pop("long") < 12_000
    assert lengths == {}


def test_a_shortlist_comes_back_with_its_companies_in_order(workspace: Workspace) -> None:
    saved = make_shortlist("contacted", "puma", "adidas", "a/b c")
    workspace.save_list(saved)
    assert workspace.saved_list("contacted") == saved
    assert workspace.saved_list("contacted").companies == ("puma", "adidas", "a/b c")
    workspace.save_list(make_list("shoes"))
    assert {each.name: each.companies for each in workspace.lists()}["shoes"] is None


def test_an_empty_shortlist_stays_a_shortlist(workspace: Workspace) -> None:
    workspace.save_list(make_shortlist("contacted"))
    assert workspace.saved_list("contacted").companies == ()


def with_company(company: str) -> Any:
    return lambda saved: replace(saved, question={"companies": [*(saved.companies or ()), company]})


def test_a_change_replaces_the_list_and_keeps_looks(workspace: Workspace) -> None:
    workspace.save_list(make_shortlist("contacted", "puma"))
    workspace.add_look(look("puma", name="contacted"))
    changed = workspace.change_list("contacted", with_company("asics"))
    assert changed == workspace.saved_list("contacted") == make_shortlist("contacted", "puma", "asics")
    assert workspace.last_look("contacted", "ann") == look("puma", name="contacted")


def test_a_change_of_an_unknown_list_is_refused(workspace: Workspace) -> None:
    with pytest.raises(UnknownList, match="contacted"):
        workspace.change_list("contacted", with_company("puma"))
    assert workspace.lists() == []


def test_a_change_that_fails_changes_nothing(workspace: Workspace) -> None:
    workspace.save_list(make_shortlist("contacted", "puma"))

    def refuse(_: SavedList) -> SavedList:
        raise InvalidInput("too long")

    with pytest.raises(InvalidInput, match="too long"):
        workspace.change_list("contacted", refuse)
    assert workspace.saved_list("contacted") == make_shortlist("contacted", "puma")


def test_no_company_is_lost_when_several_processes_add_to_a_list(open_named: Opener) -> None:
    views = [open_named("shared") for _ in range(4)]
    views[0].save_list(make_shortlist("contacted"))

    def add(number: int) -> None:
        views[number % len(views)].change_list("contacted", with_company(f"c{number}"))

    with ThreadPoolExecutor(len(views)) as pool:
        list(pool.map(add, range(24)))
    assert set(views[0].saved_list("contacted").companies or ()) == {f"c{number}" for number in range(24)}


def test_a_list_that_is_not_to_be_replaced_stays(workspace: Workspace) -> None:
    kept = make_shortlist("contacted", "puma")
    assert workspace.save_list(kept, replace=False)
    with pytest.raises(ListExists, match="there is a list 'contacted' already"):
        workspace.save_list(make_shortlist("contacted", "nike"), replace=False)
    assert workspace.lists() == [kept]
