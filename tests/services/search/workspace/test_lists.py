"""Saved lists over HTTP: a shared question, asked again, with what is new to each who looks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.asking.question_schemas import DEFAULT_EXPLAINED
from services.search.asking.service import SearchService
from services.search.guards.callers import Caller
from services.search.wire import problems
from services.search.wire.problem_documents import Problem
from services.search.workspace.lists import MAX_LISTS, QUICK_SECONDS, QUICKLY_ASKED, SECONDS_TO_COUNT, ListsService
from similarity.company import DeletedCompany
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.search.searcher import Searcher
from tests.services.search.corpus import VERSION, company
from tests.services.search.wire.test_failures import problem
from tests.workspace_records import make_list, make_shortlist

QUESTION: dict[str, Any] = {"anchors": [{"company": "acme"}], "k": 3}


def save(client: TestClient, name: str = "shoes", question: Mapping[str, Any] = QUESTION, *, user: str = "ann") -> Any:
    answer = client.put(f"/lists/{name}", json={"question": question}, headers={"Test-User": user})
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def hits(client: TestClient, name: str = "shoes", *, user: str = "ann", **query: Any) -> dict[str, bool]:
    """Which hits there are, and whether they are new."""
    answer = client.get(f"/lists/{name}/hits", params=query, headers={"Test-User": user})
    assert answer.status_code == 200, answer.text
    return {hit["company"]["id"]: hit["new"] for hit in answer.json()["hits"]}


def look(client: TestClient, name: str = "shoes", *, user: str = "ann", ids: list[str] | None = None) -> Any:
    body = None if ids is None else {"ids": ids}
    answer = client.post(f"/lists/{name}/looked", headers={"Test-User": user}, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def kind(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].removeprefix("/docs#")


def test_a_list_is_saved_with_its_question_and_who_saved_it(client: TestClient) -> None:
    answer = client.put("/lists/running shoes", json={"question": QUESTION})
    assert answer.status_code == 201
    saved = answer.json()
    assert (saved["name"], saved["saved_by"], saved["looked_at"]) == ("running shoes", "ann", None)
    assert saved["saved_at"] == "2025-03-01T12:00:00Z"
    assert (saved["question"]["k"], saved["question"]["reasons"]) == (3, DEFAULT_EXPLAINED)
    assert client.get("/lists/running shoes").json() == saved
    assert client.get("/lists").json() == {"lists": [saved]}


def test_a_new_list_replaces_none_if_asked(client: TestClient) -> None:
    only_new = {"If-None-Match": "*"}
    assert client.put("/lists/ours", json={"companies": ["acme"]}, headers=only_new).status_code == 201
    answer = client.put("/lists/ours", json={"companies": ["boots"]}, headers=only_new)
    assert "choose another name" in problem(answer, "list-exists")["detail"]
    assert client.get("/lists/ours").json()["companies"] == ["acme"]
    for method, headers in (("PUT", {"If-Match": "*"}), ("PUT", {"If-None-Match": '"tag"'}), ("DELETE", only_new)):
        refused = client.request(method, "/lists/ours", json={"companies": ["boots"]}, headers=headers)
        assert "POST /lists/NAME/companies" in problem(refused, "refused")["detail"]
    assert client.get("/lists/ours").json()["companies"] == ["acme"]


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_query_that_an_earlier_release_stored_with_its_mode_is_run_without_it(
    client: TestClient, workspace: SqliteWorkspace, mode: str
) -> None:
    save(client)
    workspace.save_list(make_list("old", **QUESTION, mode=mode))
    assert client.get("/lists/old").json()["question"] == QUESTION
    assert hits(client, "old") == hits(client, "shoes")
    assert [each["new"] for each in client.get("/lists?new=true").json()["lists"]] == [3, 3]
    assert client.put("/lists/new", json={"question": {**QUESTION, "mode": mode}}).status_code == 422


def test_one_request_says_how_much_is_new_on_every_list(client: TestClient, workspace: SqliteWorkspace) -> None:
    save(client, "a", QUESTION)
    save(client, "b", QUESTION | {"k": 2})
    look(client, "b", ids=["clogs"])
    look(client, "a", user="bob")
    unusable = make_list("c", anchors=[{"company": "nobody"}])
    workspace.save_list(unusable)
    workspace.save_list(make_list("d", anchors=[{"text": "sells leather shoes"}]))  # there is no encoder here

    def told(user: str) -> dict[str, int | None]:
        answer = client.get("/lists", params={"new": "true"}, headers={"Test-User": user})
        assert answer.status_code == 200, answer.text
        return {each["name"]: each["new"] for each in answer.json()["lists"]}

    assert told("ann") == {"a": 3, "b": 1, "c": None, "d": None}
    assert told("bob") == {"a": 0, "b": 2, "c": None, "d": None}
    assert {each["new"] for each in client.get("/lists").json()["lists"]} == {None}


def test_asking_many_lists_at_once_is_heavy(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    began: list[int] = []
    service = ListsService(SearchService(Searcher(index)), workspace, before_heavy_work=lambda: began.append(1))
    ann = Caller(name="ann", scopes=frozenset())
    for number in range(QUICKLY_ASKED):
        workspace.save_list(make_list(f"list {number}", anchors=[{"company": "acme"}]))
    service.lists(ann, count_new=True)
    assert began == []
    workspace.save_list(make_list("one more", anchors=[{"company": "acme"}]))
    service.lists(ann)
    assert began == []
    service.lists(ann, count_new=True)
    assert began == [1]


def test_queries_of_few_lists_that_take_long_are_heavy(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    began: list[int] = []
    moments = iter([0.0, 0.0, QUICK_SECONDS, QUICK_SECONDS + 0.1])
    service = ListsService(
        SearchService(Searcher(index)),
        workspace,
        seconds=lambda: next(moments),
        before_heavy_work=lambda: began.append(len(list(moments))),
    )
    for name in "abc":
        workspace.save_list(make_list(name, anchors=[{"company": "acme"}]))
    service.lists(Caller(name="ann", scopes=frozenset()), count_new=True)
    assert began == [0]


def test_counting_hits_of_a_line_of_business_is_heavy(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    def refuse() -> None:
        raise Problem(problems.OVERLOADED, "busy")

    service = ListsService(SearchService(Searcher(index)), workspace, before_heavy_work=refuse)
    workspace.save_list(make_list(anchors=[{"company": "acme", "segment": 1}]))
    with pytest.raises(Problem, match="busy"):
        service.lists(Caller(name="ann", scopes=frozenset()), count_new=True)


def test_new_hits_are_counted_for_a_limited_time(index: SqliteIndex, workspace: SqliteWorkspace) -> None:
    moments = iter([0.0, 0.0, SECONDS_TO_COUNT, SECONDS_TO_COUNT + 1])
    service = ListsService(SearchService(Searcher(index)), workspace, seconds=lambda: next(moments))
    for name in "abcd":
        workspace.save_list(make_list(name, anchors=[{"company": "acme"}]))
    found = service.lists(Caller(name="ann", scopes=frozenset()), count_new=True).lists
    assert [each.new is not None for each in found] == [True, True, False, False]


def test_the_table_of_a_list_says_what_is_new(client: TestClient) -> None:
    save(client)
    look(client, ids=["clogs"])
    header, *lines = client.get("/lists/shoes/hits?format=csv&reasons=0").text.splitlines()
    assert header.endswith(",reason,warning,new")
    assert {line.split(",")[1]: line.rpartition(",")[2] for line in lines} == {
        "boots": "True",
        "clogs": "False",
        "zapatos": "True",
    }


def test_saving_again_replaces_it_for_everybody(client: TestClient) -> None:
    save(client)
    answer = client.put("/lists/shoes", json={"question": QUESTION | {"k": 1}}, headers={"Test-User": "bob"})
    assert (answer.status_code, answer.json()["saved_by"]) == (200, "bob")
    assert list(hits(client)) == ["boots"]


def test_other_names_are_kept_as_ids(client: TestClient) -> None:
    question = {"anchors": [{"company": "Acme", "weight": 2.0}], "negatives": [{"company": "boots.de"}]}
    saved = save(client, question=question)["question"]
    assert saved["anchors"] == [{"company": "acme", "weight": 2.0}]
    assert saved["negatives"] == [{"company": "boots"}]


@pytest.mark.parametrize(
    ("name", "question", "expected"),
    [
        ("shoes", {"anchors": [{"company": "nobody"}]}, (404, "unknown-company")),
        ("shoes", {"anchors": [{"company": "Zapatos"}]}, (404, "unknown-company")),  # only similar to "Zapatos SA"
        ("shoes", {"anchors": [{"company": "acme"}], "negatives": [{"company": "Delta"}]}, (409, "contested-name")),
        ("shoes", {"anchors": []}, (422, "invalid-request")),
        ("shoes", QUESTION | {"cursor": "abc"}, (422, "invalid-request")),
        ("shoes", QUESTION | {"k": 251}, (422, "invalid-request")),
        ("x" * 101, QUESTION, (422, "invalid-request")),
        (" shoes", QUESTION, (422, "invalid-request")),
        ("sho%00es", QUESTION, (422, "invalid-request")),
        ("...", QUESTION, (422, "invalid-request")),
    ],
)
def test_what_cannot_be_saved_is_a_problem_and_saves_nothing(
    client: TestClient, workspace: SqliteWorkspace, name: str, question: Any, expected: tuple[int, str]
) -> None:
    assert kind(client.put(f"/lists/{name}", json={"question": question})) == expected
    assert workspace.lists() == []


def test_there_is_a_limit_but_saving_again_is_always_possible(client: TestClient, workspace: SqliteWorkspace) -> None:
    for number in range(MAX_LISTS):
        workspace.save_list(make_list(str(number)))
    assert kind(client.put("/lists/one more", json={"question": QUESTION})) == (409, "too-many-lists")
    save(client, "7")


def test_an_excluded_id_that_was_deleted_stays_beside_the_company_of_that_name(
    client: TestClient, index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    index.upsert("first", [company("twin", 0.2, 6), company("twin-inc", 0.2, 7, name="Twin")])
    index.upsert("first", [DeletedCompany(id="twin", version=VERSION + 1)])
    question = {**QUESTION, "exclude": ["twin"]}
    for _ in range(2):  # also as it was read, as by an undo
        save(client, "shoes", question)
        question = dict(workspace.saved_list("shoes").question)
        assert question["exclude"] == ["twin", "twin-inc"]
    index.upsert("first", [DeletedCompany(id="twin-inc", version=VERSION + 1)])
    save(client, "shoes", {**QUESTION, "exclude": ["twin"]})
    assert workspace.saved_list("shoes").question["exclude"] == ["twin"]


def test_exclusions_of_deleted_ids_count_against_the_limit(
    client: TestClient, index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.search.workspace.lists.MAX_EXCLUDED", 2)
    index.upsert("first", [company("twin", 0.2, 6), company("twin-inc", 0.2, 7, name="Twin")])
    index.upsert("first", [DeletedCompany(id="twin", version=VERSION + 1)])
    answer = client.put("/lists/shoes", json={"question": {**QUESTION, "exclude": ["twin", "acme"]}})
    assert answer.status_code == 422, answer.text
    assert "more than 2 companies" in answer.json()["detail"]


def test_long_lists_have_a_limit_together(
    client: TestClient, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.search.workspace.lists.MAX_LONG_CHARACTERS", 50_000)
    long = {**QUESTION, "exclude": [f"nobody {number}" for number in range(2_000)]}
    assert client.put("/lists/long", json={"question": long}).status_code == 201
    assert kind(client.put("/lists/longer", json={"question": long})) == (409, "too-many-lists")
    assert client.put("/lists/long", json={"question": long}).status_code == 200
    save(client, "short")


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("DELETE", ""), ("GET", "/hits"), ("POST", "/looked")])
def test_an_unknown_list_is_a_problem(client: TestClient, method: str, path: str) -> None:
    save(client, "Shoes")
    assert kind(client.request(method, f"/lists/shoes{path}")) == (404, "unknown-list")


def test_a_deleted_list_is_gone_for_everybody(client: TestClient) -> None:
    save(client)
    answer = client.delete("/lists/shoes", headers={"Test-User": "bob"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.get("/lists").json() == {"lists": []}


def test_all_is_new_before_the_first_look_and_nothing_after_it(client: TestClient) -> None:
    save(client)
    assert hits(client) == {"boots": True, "clogs": True, "zapatos": True}
    assert look(client) == {"name": "shoes", "looked_at": "2025-03-01T12:00:00Z", "seen": 3}
    assert hits(client) == {"boots": False, "clogs": False, "zapatos": False}
    assert client.get("/lists/shoes").json()["looked_at"] == "2025-03-01T12:00:00Z"
    assert client.get("/lists").json()["lists"][0]["looked_at"] == "2025-03-01T12:00:00Z"


def test_a_company_that_came_since_the_last_look_is_new(client: TestClient, index: SqliteIndex) -> None:
    save(client)
    look(client)
    index.upsert("first", [company("sandals", 0.85, 6), DeletedCompany(id="clogs", version=VERSION + 1)])
    assert hits(client) == {"boots": False, "sandals": True, "zapatos": False}


def test_looks_are_everyones_own(client: TestClient) -> None:
    save(client)
    look(client, user="ann")
    assert set(hits(client, user="bob").values()) == {True}
    assert client.get("/lists/shoes", headers={"Test-User": "bob"}).json()["looked_at"] is None


def test_who_saw_other_hits_than_the_first_says_which(client: TestClient) -> None:
    save(client)
    assert look(client, ids=["boots", "zapatos", "boots"])["seen"] == 2
    assert hits(client) == {"boots": False, "clogs": True, "zapatos": False}
    assert look(client, ids=["boots", "Boots-Ltd", "unknown"])["seen"] == 1
    assert kind(client.post("/lists/shoes/looked", json={"ids": ["two words"]})) == (422, "invalid-request")
    twice = client.post(
        "/lists/shoes/looked",
        content='{"ids": ["boots"], "ids": ["clogs"]}',
        headers={"Content-Type": "application/json"},
    )
    assert kind(twice) == (422, "invalid-request")
    assert (
        client.post("/lists/shoes/looked", content="", headers={"Content-Type": "application/json"}).json()["seen"] == 3
    )


def test_the_same_company_under_another_id_is_not_new(client: TestClient, index: SqliteIndex) -> None:
    save(client)
    look(client)
    index.upsert("first", [company("boots-2", 0.95, 6, name="Boots", domain="boots.de")])
    assert hits(client)["boots-2"] is False


def test_an_excluded_company_stays_so_when_its_name_changes_and_another_takes_it(
    client: TestClient, index: SqliteIndex
) -> None:
    given = ["Boots GmbH", "boots.de", "Delta", "Boot", "zapatos"]  # Delta is the name of two companies
    saved = save(client, question=QUESTION | {"exclude": given, "k": 4})
    assert saved["question"]["exclude"] == ["boots", "Delta", "Boot", "zapatos"]
    before = hits(client)
    index.upsert(
        "first",
        [
            replace(company("boots", 0.9, 1, name="Stiefel GmbH"), version=VERSION + 2),
            company("pizza", 0.85, 6, name="Boots GmbH"),
        ],
    )
    assert hits(client) == before | {"pizza": True}


def test_the_id_of_a_deleted_company_is_not_read_as_the_name_of_another(client: TestClient, index: SqliteIndex) -> None:
    save(client, question=QUESTION | {"exclude": ["boots"]})
    index.upsert("first", [DeletedCompany(id="boots", version=VERSION + 2), company("pizza", 0.85, 6, name="Boots")])
    assert "pizza" in hits(client)


def test_hits_are_read_page_by_page(client: TestClient) -> None:
    save(client)
    first = client.get("/lists/shoes/hits", params={"k": 2, "reasons": 0}).json()
    assert (first["name"], first["looked_at"], len(first["hits"])) == ("shoes", None, 2)
    assert "zapatos" in hits(client, k=2, cursor=first["next_cursor"])


def test_a_very_long_question_is_left_out_among_all_lists(client: TestClient) -> None:
    save(client, question=QUESTION | {"exclude": [f"company-{number}" for number in range(2_000)]})
    assert client.get("/lists").json()["lists"][0]["question"] is None
    assert len(client.get("/lists/shoes").json()["question"]["exclude"]) == 2_000


def test_a_question_that_is_too_long_is_not_saved(client: TestClient) -> None:
    question = QUESTION | {"exclude": [f"{'x' * 60}-{number}" for number in range(5_000)]}
    answer = client.put("/lists/shoes", json={"question": question})
    assert answer.status_code == 422
    assert "at most 300,000" in answer.json()["detail"]


def test_a_question_of_another_release_is_said_to_be_unusable(client: TestClient, workspace: SqliteWorkspace) -> None:
    workspace.save_list(replace(make_list(), question={"anchors": [{"company": "acme"}], "flavour": "sweet"}))
    assert kind(client.get("/lists/shoes/hits")) == (409, "unusable-list")


def test_a_list_whose_only_anchor_was_deleted_says_so(client: TestClient, index: SqliteIndex) -> None:
    save(client)
    index.upsert("first", [DeletedCompany(id="acme", version=VERSION + 1)])
    assert kind(client.get("/lists/shoes/hits")) == (404, "unknown-company")


def test_the_id_of_a_deleted_company_is_not_taken_for_the_name_of_another_one(
    client: TestClient, index: SqliteIndex
) -> None:
    save(client)
    save(client, "two", {**QUESTION, "anchors": [{"company": "boots"}], "negatives": [{"company": "acme"}]})
    index.upsert("first", [DeletedCompany(id="acme", version=VERSION + 1), company("heir", 0.7, 6, name="Acme")])
    assert kind(client.get("/lists/shoes/hits")) == (404, "unknown-company")
    assert [each["new"] for each in client.get("/lists?new=true").json()["lists"]] == [None, 3]
    answer = client.get("/lists/two/hits").json()
    assert (answer["negatives"], [each["asked"] for each in answer["misses"]]) == ([], ["acme"])


def test_an_id_that_was_deleted_is_not_saved_as_the_company_of_that_name(
    client: TestClient, index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    index.upsert("first", [company("twin", 0.2, 6), company("twin-inc", 0.2, 7, name="Twin")])
    index.upsert("first", [DeletedCompany(id="twin", version=VERSION + 1)])
    workspace.save_list(make_shortlist("contacted", "acme", "twin"))
    anchored, unlike = ({"anchors": [{"company": "twin"}]}, {**QUESTION, "negatives": [{"company": "twin"}]})
    for answer in (
        client.put("/lists/contacted", json={"companies": ["acme", "twin"]}),
        client.post("/lists/contacted/companies", json={"add": ["twin"]}),
        client.put("/lists/shoes", json={"question": anchored}),
        client.put("/lists/shoes", json={"question": unlike}),
        client.post("/feedback", json={"anchor": "twin", "hit": "acme", "verdict": "competitor"}),
    ):
        assert kind(answer) == (409, "contested-name"), answer.text
        assert "'twin' was the id of a deleted company, and twin-inc (Twin) goes by it" in answer.json()["detail"]
    assert workspace.saved_list("contacted").companies == ("acme", "twin")
    client.post("/lists/contacted/companies", json={"remove": ["twin"]})
    assert workspace.saved_list("contacted").companies == ("acme",)


def test_reading_is_enough_to_look_and_feedback_is_needed_to_save(client: TestClient) -> None:
    save(client)
    reader = {"Test-Scopes": "read"}
    for path in ("/lists", "/lists/shoes", "/lists/shoes/hits"):
        assert client.get(path, headers=reader).status_code == 200
    assert client.post("/lists/shoes/looked", headers=reader).status_code == 200
    assert client.put("/lists/shoes", json={"question": QUESTION}, headers=reader).status_code == 403
    assert client.delete("/lists/shoes", headers=reader).status_code == 403
