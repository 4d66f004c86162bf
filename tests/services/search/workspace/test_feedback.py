"""Feedback over HTTP: kept with its author and time, shown again, exported for training."""

import csv
import io
import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from similarity.company import DeletedCompany
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from tests.services.search.corpus import VERSION, company
from tests.services.search.workspace_app import NOON, StandingClock, given, workspace_client
from tests.workspace_records import make_event, moment
from training.data.pairs import read_pairs

SHOWN: dict[str, Any] = {"rank": 1, "score": 0.9, "probability": 0.98, "generation": "first", "bundle_id": "bundle-1"}


def judge(
    client: TestClient, hit: str = "boots", verdict: str = "competitor", *, user: str = "ann", **members: Any
) -> Any:
    answer = client.post("/feedback", json=given(hit, verdict, **members), headers={"Test-User": user})
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def verdicts(client: TestClient, anchor: str = "acme", *, user: str = "ann", **query: str) -> list[tuple[str, str]]:
    answer = client.get("/feedback", params={"anchor": anchor, **query}, headers={"Test-User": user})
    assert answer.status_code == 200, answer.text
    return [(each["hit"], each["verdict"]) for each in answer.json()["verdicts"]]


def pairs(client: TestClient, **query: str) -> list[dict[str, Any]]:
    answer = client.get("/feedback/pairs", params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_verdict_is_kept_with_who_when_and_what_was_shown(client: TestClient) -> None:
    answer = client.post("/feedback", json=given(note="same shoes", **SHOWN))
    assert answer.status_code == 201
    kept = answer.json()
    assert kept.pop("id")
    assert kept == {
        "user": "ann",
        "at": "2025-03-01T12:00:00Z",
        "anchor": "acme",
        "hit": "boots",
        "verdict": "competitor",
        **SHOWN,
        "note": "same shoes",
    }


def test_a_verdict_comes_back_with_its_latest_note(client: TestClient) -> None:
    judge(client, note="same shoes")
    judge(client, note="same shoes, other shops")
    [verdict] = client.get("/feedback", params={"anchor": "acme"}, headers={"Test-User": "ann"}).json()["verdicts"]
    assert verdict["note"] == "same shoes, other shops"


def test_a_rank_may_be_written_as_any_whole_number(client: TestClient) -> None:
    assert judge(client, rank=3.0)["rank"] == 3


def test_other_names_are_kept_as_ids(client: TestClient) -> None:
    kept = judge(client, "Boots GmbH", anchor="https://www.acme.com/about")
    assert (kept["anchor"], kept["hit"]) == ("acme", "boots")


@pytest.mark.parametrize(
    ("members", "status", "kind"),
    [
        ({"hit": "nobody"}, 404, "unknown-company"),
        ({"anchor": "nobody"}, 404, "unknown-company"),
        ({"hit": "Zapatos"}, 404, "unknown-company"),  # similar to "Zapatos SA", but a verdict needs an exact name
        ({"hit": "Delta"}, 409, "contested-name"),
        ({"hit": "acme.com"}, 422, "invalid-request"),
        ({"verdict": "maybe"}, 422, "invalid-request"),
        ({"score": 2}, 422, "invalid-request"),
        ({"rank": 0}, 422, "invalid-request"),
        ({"rank": "1"}, 422, "invalid-request"),
        ({"rank": True}, 422, "invalid-request"),
        ({"rank": 1.5}, 422, "invalid-request"),
        ({"probability": -0.1}, 422, "invalid-request"),
        ({"note": "x" * 2001}, 422, "invalid-request"),
        ({"id": "two words"}, 422, "invalid-request"),
        ({"user": "bob"}, 422, "invalid-request"),
    ],
)
def test_what_cannot_be_kept_is_a_problem_and_keeps_nothing(
    client: TestClient, workspace: SqliteWorkspace, members: dict[str, Any], status: int, kind: str
) -> None:
    answer = client.post("/feedback", json=given() | members)
    assert (answer.status_code, answer.json()["type"]) == (status, f"/docs#{kind}")
    assert answer.headers["content-type"] == "application/problem+json"
    assert status != 422 or answer.json()["errors"]
    assert list(workspace.events()) == []


def test_the_same_event_sent_again_is_kept_once(client: TestClient, clock: StandingClock) -> None:
    first = client.post("/feedback", json=given(id="mine-1", **SHOWN))
    clock.now += timedelta(minutes=1)
    again = client.post("/feedback", json=given(id="mine-1", **SHOWN))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()


def test_an_id_that_says_something_else_is_a_conflict(client: TestClient) -> None:
    judge(client, id="mine-1")
    answer = client.post("/feedback", json=given(verdict="unsure", id="mine-1"))
    assert (answer.status_code, answer.json()["type"]) == (409, "/docs#event-conflict")
    assert judge(client, id="mine-1", verdict="unsure", user="bob")["user"] == "bob"


def test_the_last_word_counts_even_where_the_clock_stands_still_or_goes_back(
    client: TestClient, clock: StandingClock
) -> None:
    for number in range(30):
        judge(client, verdict=("competitor", "not_competitor")[number % 2])
    clock.now -= timedelta(hours=1)
    judge(client, verdict="unsure")
    assert verdicts(client) == [("boots", "unsure")]


def test_a_withdrawn_verdict_is_history_and_counts_no_more(client: TestClient) -> None:
    judge(client, "boots", "not_competitor", user="ann")
    judge(client, "boots", "competitor", user="bob")
    assert judge(client, "boots", "withdrawn", user="ann")["verdict"] == "withdrawn"
    assert verdicts(client) == []
    assert verdicts(client, who="all") == [("boots", "competitor")]
    assert [(pair["label"], pair["users"]) for pair in pairs(client)] == [("positive", 1)]
    history = client.get("/feedback").json()["events"]
    assert [event["verdict"] for event in history] == ["withdrawn", "competitor", "not_competitor"]
    judge(client, "boots", "withdrawn", user="bob")
    assert pairs(client) == []


def test_verdicts_are_ones_own_unless_everybodys_are_asked_for(client: TestClient) -> None:
    judge(client, "boots", "competitor", user="ann")
    judge(client, "boots", "not_competitor", user="bob")
    judge(client, "clogs", "not_competitor", user="bob")
    assert verdicts(client) == [("boots", "competitor")]
    assert sorted(verdicts(client, user="bob")) == [("boots", "not_competitor"), ("clogs", "not_competitor")]
    assert len(verdicts(client, who="all")) == 3


def test_a_verdict_is_seen_from_the_other_company_too(client: TestClient) -> None:
    judge(client, "boots", "not_competitor")
    assert verdicts(client, "Boots GmbH") == [("acme", "not_competitor")]
    assert verdicts(client, "clogs") == []


def test_the_history_is_read_page_by_page(client: TestClient, clock: StandingClock) -> None:
    for number in range(5):
        clock.now = NOON + timedelta(seconds=number)
        judge(client, ("boots", "clogs")[number % 2], id=str(number), user=("ann", "bob")[number % 2])
    read, query = [], {"limit": "2"}
    while True:
        page = client.get("/feedback", params=query).json()
        assert (page["anchor"], page["verdicts"]) == (None, [])
        read += [event["id"] for event in page["events"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert read == ["4", "3", "2", "1", "0"]
    of_bob = client.get("/feedback", params={"user": "bob", "anchor": "clogs"}).json()["events"]
    assert [event["id"] for event in of_bob] == ["3", "1"]


@pytest.mark.parametrize(
    "cursor", ["nonsense", "W10=", "WzEsMl0=", "WzFlOTksICJhIiwgImIiXQ==", "WzEsICJcdWQ4MDAiLCAiYiJd", "e30=", "MQ=="]
)
def test_a_cursor_that_is_none_of_ours_is_a_problem(client: TestClient, cursor: str) -> None:
    judge(client)
    answer = client.get("/feedback", params={"cursor": cursor})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == "cursor"


@pytest.mark.parametrize("path", ["/feedback", "/feedback/pairs", "/feedback/next"])
def test_whoever_may_only_read_sees_no_feedback(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Test-Scopes": "read"})
    assert (answer.status_code, answer.json()["type"]) == (403, "/docs#scope-missing")
    assert client.post("/feedback", json=given(), headers={"Test-Scopes": "read write"}).status_code == 403


def test_training_reads_the_export_and_needs_nothing_else(
    client: TestClient, index: SqliteIndex, tmp_path: Path
) -> None:
    own_name = "Clogs makes wooden shoes for nurses."
    index.upsert("first", [company("clogs-2", 0.7, 6, name="Clogs", description=own_name)])
    judge(client, "clogs-2", "competitor")
    judge(client, "delta-air", "not_competitor")
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(client.get("/feedback/pairs").content)
    read = read_pairs(path)
    assert read.classes == ("competitor", "other")
    assert read.targets.tolist() == [[1, 0], [0, 1]]
    # As the encoder reads it: without the company's own name.
    assert "The company makes wooden shoes for nurses." in read.texts


def test_a_company_that_is_gone_is_not_exported(client: TestClient, index: SqliteIndex) -> None:
    judge(client, "boots")
    judge(client, "clogs")
    index.upsert("first", [DeletedCompany(id="boots", version=VERSION + 1)])
    assert [pair["hit_id"] for pair in pairs(client)] == ["clogs"]


def test_the_csv_is_harmless_in_a_spreadsheet_and_the_jsonl_exact(client: TestClient, index: SqliteIndex) -> None:
    formula = '=HYPERLINK("http://evil.example")'
    index.upsert("first", [company("-evil", 0.6, 6, name="Evil", description=formula)])
    judge(client, "-evil")
    answer = client.get("/feedback/pairs", headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="pairs.csv"'
    [row] = csv.DictReader(io.StringIO(answer.text))
    assert (row["text_b"], row["hit_id"], row["label"]) == (f"'{formula}", "'-evil", "positive")
    [exact] = pairs(client, format="jsonl")
    assert (exact["text_b"], exact["hit_id"]) == (formula, "-evil")


def test_an_export_of_nothing_is_an_empty_file(client: TestClient) -> None:
    assert pairs(client) == []
    assert client.get("/feedback/pairs", params={"format": "csv"}).text.splitlines() == [
        "\ufefftext_a,text_b,label,anchor_id,hit_id,users,judged_at"
    ]


def test_a_long_export_is_whole(client: TestClient, index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    hits = [f"hit-{number:03}" for number in range(250)]
    index.upsert("first", [company(hit, 0.2, 6) for hit in hits])
    for number, hit in enumerate(hits):
        workspace.add_event(make_event(hit, at=moment(number), anchor="acme", hit=hit))
    assert [pair["hit_id"] for pair in pairs(client)] == hits


def test_an_index_without_companies_is_a_problem_before_any_row(
    tmp_path: Path, workspace: SqliteWorkspace, clock: StandingClock
) -> None:
    workspace.add_event(make_event())
    with closing(SqliteIndex(tmp_path / "empty.db")) as empty:
        answer = workspace_client(empty, workspace, clock).get("/feedback/pairs")
    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#no-live-generation")
