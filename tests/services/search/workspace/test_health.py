"""Whether feedback works is said by the readiness check, and what is away takes nothing else down."""

import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.workspace.health import AWAY, SLOW, WorkspaceHealth
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from tests.services.search.workspace_app import given


class Hanging(SqliteWorkspace):
    """Answers when it may; counts who asks."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_answer = threading.Event()
        self.asked = 0

    def check(self) -> None:
        self.asked += 1
        assert self.may_answer.wait(timeout=20)
        super().check()


def test_a_workspace_that_is_away_is_named_and_questions_are_answered(
    read_only_index: SqliteIndex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = SqliteWorkspace(tmp_path / "w.db")
    client = TestClient(create_app(index=read_only_index, workspace=workspace))
    assert client.get("/readyz").json()["feedback"] is True
    workspace.close()
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert (ready.json()["feedback"], ready.json()["feedback_reason"]) == (False, AWAY)
    # The reason that may name files is for the log.
    assert str(tmp_path) not in ready.text
    assert str(tmp_path) in caplog.text
    assert client.get("/similar/acme").status_code == 200
    refusal = client.post("/feedback", json=given())
    assert (refusal.status_code, refusal.json()["type"]) == (503, "/docs#index-unavailable")


def test_a_workspace_that_hangs_is_waited_for_by_one_thread_and_not_long(tmp_path: Path) -> None:
    with closing(Hanging(tmp_path / "w.db")) as workspace:
        health = WorkspaceHealth(workspace, seconds=0.05)
        assert [health.trouble() for _ in range(5)] == [SLOW] * 5
        assert workspace.asked == 1
        workspace.may_answer.set()
        deadline = time.monotonic() + 20
        while health.trouble() is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert health.trouble() is None


def test_an_error_that_nobody_foresaw_is_trouble_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SqliteWorkspace):
        def check(self) -> None:
            raise ValueError("out of order")

    with closing(Broken(tmp_path / "w.db")) as workspace:
        assert WorkspaceHealth(workspace).trouble() == AWAY
    assert "out of order" in caplog.text
