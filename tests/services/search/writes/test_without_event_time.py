"""Writes that carry no event time: they follow whatever is stored, or are refused."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from similarity.company import DeletedCompany, EmbeddedCompany, utc_now, version_of
from similarity.index.protocol import WriteResult
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_candidate, add_live
from tests.factories import ENCODER_ID, make_embedded
from tests.fakes import CountingEncoder
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import ANVILS, bulk, put, writing_client


def in_days(days: float) -> int:
    """The version of a write at that distance from now."""
    ahead = utc_now() + timedelta(days=days)
    return version_of(ahead, now=ahead)


def writing_to(index: SqliteIndex) -> AbstractContextManager[TestClient]:
    return writing_client(index, {ENCODER_ID: CountingEncoder()})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """A live and a candidate generation."""
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        add_candidate(index, "second")
        yield index


@pytest.fixture
def client(index: SqliteIndex) -> Iterator[TestClient]:
    with writing_to(index) as client:
        yield client


def versions(index: SqliteIndex, company_id: str = "acme") -> list[int]:
    """What both generations hold."""
    return [index.stored_versions(name, [company_id])[company_id] for name in ("first", "second")]


def test_a_delete_removes_a_company_whose_event_time_lies_ahead(client: TestClient, index: SqliteIndex) -> None:
    soon = put(client, event_time=(utc_now() + timedelta(minutes=4)).isoformat()).json()
    deleted = client.delete("/companies/acme")
    assert (deleted.status_code, deleted.json()["outcome"]) == (200, "applied")
    assert deleted.json()["version"] == soon["version"] + 1
    assert [index.get(name, ["acme"]) for name in ("first", "second")] == [{}, {}]
    back = put(client, name="Back").json()
    assert (back["outcome"], back["version"]) == ("applied", soon["version"] + 2)
    assert versions(index) == [back["version"]] * 2


def test_a_clock_that_stood_a_day_ahead_freezes_no_company(client: TestClient, index: SqliteIndex) -> None:
    ahead = in_days(1)
    index.upsert("first", [make_embedded("acme", version=ahead), DeletedCompany(id="gone", version=ahead + 1)])
    index.upsert("second", [make_embedded("acme", version=ahead + 4)])
    assert put(client, name="New").json()["version"] == ahead + 6
    assert index.get("first", ["acme"])["acme"].company.name == "New"
    assert put(client, "gone").json()["version"] == ahead + 2
    assert (versions(index), versions(index, "gone")) == ([ahead + 6] * 2, [ahead + 2] * 2)
    assert client.delete("/companies/acme").json()["version"] == ahead + 7
    assert index.get("first", ["acme"]) == {}


def test_the_last_line_of_a_bulk_upload_is_what_stays(client: TestClient, index: SqliteIndex) -> None:
    ahead = in_days(1)
    index.upsert("first", [make_embedded("acme", version=ahead)])
    company = json.dumps({"id": "acme", **ANVILS, "name": "New"})
    old = json.dumps({"id": "acme", **ANVILS, "name": "Old", "event_time": utc_now().isoformat()})
    delete = json.dumps({"id": "acme", "deleted": True})
    answer = bulk(client, company, delete, old, company)
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [result["outcome"] for result in results] == ["applied", "applied", "superseded", "applied"]
    assert versions(index) == [ahead + 4] * 2
    assert index.get("first", ["acme"])["acme"].company.name == "New"


@pytest.mark.parametrize("names", [("One", "Two", "One"), ("", "One", ""), ("", "One", "", "Two", "One")])
def test_the_last_line_stays_also_if_an_earlier_one_says_the_same(
    client: TestClient, index: SqliteIndex, names: Sequence[str]
) -> None:
    """All lines have one time, so the last line had the version and the content of an earlier one."""
    lines = [{"id": "acme", **({**ANVILS, "name": name} if name else {"deleted": True})} for name in names]
    results = [json.loads(line) for line in bulk(client, *map(json.dumps, lines)).text.splitlines()]
    assert {result["outcome"] for result in results} == {"applied"}
    found = {each.company.name for each in index.get("first", ["acme"]).values()}
    assert found == {name for name in names[-1:] if name}


def test_a_version_that_nothing_can_follow_is_said(client: TestClient, index: SqliteIndex) -> None:
    index.upsert("first", [make_embedded("acme", version=2**63 - 1)])
    problem(put(client), "write-rejected")


class Contended(SqliteIndex):
    """Another writer is faster, `times` times."""

    times = 0

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        if self.times:
            self.times -= 1
            other = max(document.version for document in documents) // 2 * 2 + 10
            super().upsert(generation, [make_embedded("acme", version=other, name=f"Other {other}")])
        return super().upsert(generation, documents)


@pytest.fixture
def contended(tmp_path: Path) -> Iterator[Contended]:
    with closing(Contended(tmp_path / "contended.db")) as index:
        add_live(index, "first")
        yield index


def test_a_write_that_others_overtake_is_tried_again_and_at_last_refused(contended: Contended) -> None:
    with writing_to(contended) as client:
        contended.times = 3
        assert put(client).json()["outcome"] == "applied"
        for answer in (put, lambda client: client.delete("/companies/acme")):
            contended.times = 99
            assert "send it again" in problem(answer(client), "write-conflict")["detail"]
        [line] = bulk(client, json.dumps({"id": "acme", "deleted": True})).text.splitlines()
        assert (json.loads(line)["outcome"], "send it again" in line) == ("failed", True)
        assert contended.get("first", ["acme"])["acme"].company.name.startswith("Other")


def test_writes_of_several_processes_are_applied_one_after_the_other_or_refused(tmp_path: Path) -> None:
    ahead = in_days(1)
    with ExitStack() as opened:
        indexes = [opened.enter_context(closing(SqliteIndex(tmp_path / "index.db"))) for _ in range(4)]
        add_live(indexes[0], "first")
        indexes[0].upsert("first", [make_embedded("acme", version=ahead)])
        clients = [opened.enter_context(writing_to(index)) for index in indexes]
        for client in clients:  # an application builds its routes with its first request
            assert put(client).json()["outcome"] == "applied"

        def write(number: int) -> Any:
            client = clients[number % 4]
            return client.delete("/companies/acme") if number % 3 == 0 else put(client, name=f"Name {number}")

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(write, range(80)))
        # Two deletes at the same version are one: the second is unchanged.
        applied = [each.json()["version"] for each in answers if each.json().get("outcome") == "applied"]
        assert {answer.status_code for answer in answers} <= {200, 409}
        assert len(applied) == len(set(applied)) > 40
        assert indexes[0].stored_versions("first", ["acme"]) == {"acme": max(applied)}
