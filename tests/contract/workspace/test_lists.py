"""Lists are a name and a question, shared; what each user saw last is kept beside them."""

from typing import Any

import pytest

from similarity.feedback.protocol import Look, UnknownList, Workspace
from tests.workspace_records import make_list, moment

QUESTION: dict[str, Any] = {
    "anchors": [{"company": "nike", "weight": 2.0}, {"text": 'läuft — "schnell"', "weight": 1.0}],
    "negatives": [],
    "filters": [{"field": "attributes.employees", "at_least": 10.5, "at_most": None}],
    "exclude": ["adidas"],
    "mode": "hybrid",
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
