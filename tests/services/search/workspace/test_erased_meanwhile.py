"""Erasures that run between the look-up of a company and the save: nothing of the company is saved."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from similarity.feedback.protocol import FeedbackEvent
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.upkeep.erasure import Eraser
from tests.services.search.workspace_app import given

ANCHORS: dict[str, Any] = {"anchors": [{"company": "acme"}, {"company": "boots"}]}
SAVES: dict[str, tuple[str, Callable[[TestClient], Any]]] = {
    "verdict": ("add_event", lambda client: client.post("/feedback", json=given("boots"))),
    "query": ("save_list", lambda client: client.put("/lists/q", json={"question": ANCHORS})),
    "shortlist": ("save_list", lambda client: client.put("/lists/s", json={"companies": ["clogs", "boots"]})),
    "change": ("change_list", lambda client: client.post("/lists/kept/companies", json={"add": ["boots"]})),
    "hits": ("add_look", lambda client: client.post("/lists/asked/looked")),
    "look": ("add_look", lambda client: client.post("/lists/asked/looked", json={"ids": ["boots"]})),
}


@pytest.mark.parametrize("name", SAVES)
def test_an_erasure_between_look_up_and_save(
    client: TestClient,
    index: SqliteIndex,
    workspace: SqliteWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    method, save = SAVES[name]
    client.put("/lists/kept", json={"companies": ["clogs"]})
    client.put("/lists/asked", json={"question": {"anchors": [{"company": "acme"}]}})
    original = getattr(workspace, method)

    def erased_first(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(workspace, method, original)
        eraser = Eraser(index, workspace)
        eraser.accept("boots")
        eraser.finish()
        return original(*arguments, **named)

    monkeypatch.setattr(workspace, method, erased_first)
    answer = save(client)
    assert answer.status_code in {200, 201, 404}, answer.text
    assert b"boots" not in b"".join(file.read_bytes().lower() for file in workspace.path.parent.glob("*.workspace*"))


def test_a_note_is_saved_as_if_it_had_been_sent_after_the_erasure(
    client: TestClient, index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, marks = workspace.add_event, list[str | None]()

    def erased_first(event: FeedbackEvent, *, since: str | None = None) -> FeedbackEvent:
        marks.append(since)
        if len(marks) == 1:
            eraser = Eraser(index, workspace)
            eraser.accept("boots")
            eraser.finish()
        return original(event, since=since)

    monkeypatch.setattr(workspace, "add_event", erased_first)
    assert client.post("/feedback", json=given("clogs", note="a likely rival")).status_code == 201
    assert [event.note for event in workspace.events()] == ["a likely rival"]
    assert len(set(marks)) == 2


def test_a_save_gives_up_when_there_is_an_erasure_at_each_try(
    client: TestClient, index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = workspace.add_event

    def erased_first(*arguments: Any, **named: Any) -> Any:
        eraser = Eraser(index, workspace)
        eraser.accept("never-stored")
        eraser.finish()
        return original(*arguments, **named)

    monkeypatch.setattr(workspace, "add_event", erased_first)
    answer = client.post("/feedback", json=given("clogs"))
    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#erased-meanwhile")
    assert not list(workspace.events())
