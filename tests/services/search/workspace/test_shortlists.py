"""Shortlists over HTTP: companies that are kept by name, excluded, exported and compared."""

import csv
import io
import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import openpyxl
import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.asking.service import SearchService
from services.search.guards.callers import Caller
from services.search.workspace import shortlists
from services.search.workspace.shortlists import ComparisonQuery, MembersQuery, ShortlistService
from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.model.ranker import ComparableWeights, Ranker
from similarity.search.reranking import scores
from similarity.search.searcher import Searcher
from tests.contract.steps import add_live
from tests.factories import ENCODER_ID
from tests.services.search.corpus import CALIBRATION, VERSION, add_generation, companies, company
from tests.services.search.workspace.test_lists import QUESTION, hits, kind, save
from tests.workspace_records import make_shortlist

NAME = "already contacted"


def keep(client: TestClient, name: str = NAME, *, ids: list[str]) -> Any:
    answer = client.put(f"/lists/{name}", json={"companies": ids})
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def members(client: TestClient, name: str = NAME, **query: Any) -> Any:
    answer = client.get(f"/lists/{name}/companies", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ranked(client: TestClient, question: dict[str, Any]) -> list[str]:
    answer = client.post("/similar", json={"reasons": 0, **question})
    assert answer.status_code == 200, answer.text
    return [hit["company"]["id"] for hit in answer.json()["hits"]]


def delete(index: SqliteIndex, company_id: str) -> None:
    index.upsert("first", [DeletedCompany(id=company_id, version=VERSION + 1)])


@pytest.fixture
def whole(index: SqliteIndex, workspace: SqliteWorkspace) -> TestClient:
    """The whole service, for queries beside lists; without keys, the caller is called `local`."""
    return TestClient(create_app(index=index, workspace=workspace))


# ---- Saving


def test_companies_are_kept_by_their_ids_each_once(client: TestClient) -> None:
    answer = client.put(f"/lists/{NAME}", json={"companies": ["Boots GmbH", "clogs", "boots.de", "boots", "acme.com"]})
    assert answer.status_code == 201
    saved = answer.json()
    assert (saved["companies"], saved["size"], saved["question"]) == (["boots", "clogs", "acme"], 3, None)
    assert client.get(f"/lists/{NAME}").json() == saved
    assert client.get("/lists", params={"new": "true"}).json()["lists"] == [saved]


def test_a_query_says_that_it_is_no_shortlist(client: TestClient) -> None:
    saved = save(client)
    assert (saved["companies"], saved["size"]) == (None, None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"companies": ["boots", "nobody"]}, (404, "unknown-company")),
        ({"companies": ["Zapatos"]}, (404, "unknown-company")),  # only similar to "Zapatos SA"
        ({"companies": ["Delta"]}, (409, "contested-name")),
        ({"companies": ["boots"], "question": QUESTION}, (422, "invalid-request")),
        ({}, (422, "invalid-request")),
        ({"companies": [""]}, (422, "invalid-request")),
        ({"companies": ["boots"] * 10_001}, (422, "invalid-request")),
        ({"question": QUESTION | {"exclude_lists": ["nothing"]}}, (404, "unknown-list")),
        (
            {"question": QUESTION | {"filters": [{"field": "attributes.size", "at_least": "large"}]}},
            (422, "invalid-request"),
        ),
    ],
)
def test_what_cannot_be_saved_is_a_problem_and_saves_nothing(
    client: TestClient, workspace: SqliteWorkspace, body: Any, expected: tuple[int, str]
) -> None:
    assert kind(client.put(f"/lists/{NAME}", json=body)) == expected
    assert workspace.lists() == []


def test_all_unknown_companies_of_a_list_are_named_at_once(client: TestClient) -> None:
    unknown = [f"nobody {number}" for number in range(7)]
    detail = client.put(f"/lists/{NAME}", json={"companies": ["boots", *unknown]}).json()["detail"]
    assert [each for each in unknown if each in detail] == unknown[:5]
    assert detail.endswith("; and 2 more")


def test_a_long_list_is_kept_whole_and_left_out_among_all_lists(client: TestClient, index: SqliteIndex) -> None:
    ids = [f"company-{number:05}" for number in range(2_000)]
    index.upsert("first", [company(each, 0.2, 6, name=each.title()) for each in ids])
    assert keep(client, ids=ids)["size"] == 2_000
    [among_all] = client.get("/lists").json()["lists"]
    assert (among_all["companies"], among_all["size"]) == (None, 2_000)
    assert client.get(f"/lists/{NAME}").json()["companies"] == ids


def test_companies_are_added_and_removed(client: TestClient, workspace: SqliteWorkspace) -> None:
    keep(client, ids=["boots", "clogs"])
    change = {"add": ["Zapatos SA", "boots"], "remove": ["Clogs", "acme.com"]}
    for user in ("bob", "cid"):  # the same change twice
        answer = client.post(f"/lists/{NAME}/companies", json=change, headers={"Test-User": user})
        assert (answer.status_code, answer.json()["companies"]) == (200, ["boots", "zapatos"])
    assert workspace.saved_list(NAME).saved_by == "cid"


def test_what_is_on_a_list_is_an_id_also_if_another_company_has_that_name(
    client: TestClient, index: SqliteIndex
) -> None:
    index.upsert("first", [company("twin", 0.2, 6, name="Clogs"), company("clogs-inc", 0.2, 7, name="Twin")])
    keep(client, ids=["boots", "twin", "clogs-inc"])
    delete(index, "twin")
    answer = client.post(f"/lists/{NAME}/companies", json={"remove": ["twin"]})
    assert (answer.status_code, answer.json()["companies"]) == (200, ["boots", "clogs-inc"])
    again = client.post(f"/lists/{NAME}/companies", json={"remove": ["twin"]})
    assert kind(again) == (409, "contested-name")
    assert "'twin' was the id of a deleted company, and clogs-inc (Twin" in again.json()["detail"]
    delete(index, "clogs-inc")
    assert client.post(f"/lists/{NAME}/companies", json={"remove": ["twin"]}).status_code == 200  # and no other has it


def test_a_change_with_as_many_longer_ids_is_a_longer_list(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(client, ids=["boots"])
    monkeypatch.setattr("services.search.workspace.lists.MAX_QUESTION_SHOWN", 5)
    monkeypatch.setattr("services.search.workspace.lists.MAX_LONG_CHARACTERS", len('{"companies": ["boots"]}') + 1)
    path = f"/lists/{NAME}/companies"
    longer = client.post(path, json={"add": ["delta-air"], "remove": ["boots"]})
    assert kind(longer) == (409, "too-many-lists")
    assert client.post(path, json={"add": ["clogs"], "remove": ["boots"]}).json()["companies"] == ["clogs"]


def test_a_change_that_is_refused_changes_nothing(client: TestClient, workspace: SqliteWorkspace) -> None:
    keep(client, ids=["boots"])
    save(client, "shoes")
    path = f"/lists/{NAME}/companies"
    assert kind(client.post(path, json={"add": ["Zapatos"]})) == (404, "unknown-company")
    assert kind(client.post(path, json={"remove": ["Zapatos"]})) == (404, "unknown-company")
    assert kind(client.post("/lists/nothing/companies", json={"add": ["boots"]})) == (404, "unknown-list")
    assert kind(client.post("/lists/shoes/companies", json={"add": ["boots"]})) == (409, "wrong-kind-of-list")
    workspace.save_list(make_shortlist("full", *(f"c{number}" for number in range(10_000))))
    answer = client.post("/lists/full/companies", json={"add": ["boots"]})
    assert (answer.status_code, "more than 10,000" in answer.json()["detail"]) == (422, True)
    assert [workspace.saved_list(each).companies for each in (NAME, "shoes")] == [("boots",), None]


def test_a_deleted_company_stays_on_a_list_that_is_changed(client: TestClient, index: SqliteIndex) -> None:
    keep(client, ids=["boots", "clogs"])
    delete(index, "boots")
    answer = client.post(f"/lists/{NAME}/companies", json={"add": ["zapatos"]})
    assert answer.json()["companies"] == ["boots", "clogs", "zapatos"]


@pytest.mark.parametrize("path", ["/hits", "/looked"])
def test_a_shortlist_has_no_hits(client: TestClient, path: str) -> None:
    keep(client, ids=["boots"])
    method = "GET" if path == "/hits" else "POST"
    assert kind(client.request(method, f"/lists/{NAME}{path}")) == (409, "wrong-kind-of-list")


def test_reading_is_enough_to_export_and_feedback_is_needed_to_change(client: TestClient) -> None:
    keep(client, ids=["boots"])
    reader = {"Test-Scopes": "read"}
    for path in ("companies?format=csv", "companies?company=acme", "compare?company=acme"):
        assert client.get(f"/lists/{NAME}/{path}", headers=reader).status_code == 200
    assert client.post(f"/lists/{NAME}/companies", json={"add": ["clogs"]}, headers=reader).status_code == 403


# ---- Excluding


def test_a_list_is_excluded_as_it_is_when_asked(whole: TestClient) -> None:
    keep(whole, ids=["boots"])
    question = {"anchors": [{"company": "acme"}], "k": 2, "exclude_lists": [NAME]}
    address = f"/similar/acme?k=2&reasons=0&exclude_list={NAME}"
    assert ranked(whole, question) == ["clogs", "zapatos"]
    keep(whole, ids=["clogs"])
    assert ranked(whole, question) == ["boots", "zapatos"]
    assert [hit["company"]["id"] for hit in whole.get(address).json()["hits"]] == ["boots", "zapatos"]
    points = whole.post("/map", json=question).json()["points"]
    assert [each["id"] for each in points if each["role"] == "hit"] == ["boots", "zapatos"]
    [answer] = whole.post("/similar/batch", json={"questions": [question]}).json()["answers"]
    assert [hit["company"]["id"] for hit in answer["answer"]["hits"]] == ["boots", "zapatos"]


def test_a_saved_query_reads_the_list_when_it_is_run(whole: TestClient) -> None:
    keep(whole, ids=["boots"])
    save(whole, "shoes", QUESTION | {"exclude_lists": [NAME]})
    assert "boots" not in hits(whole)
    whole.post(f"/lists/{NAME}/companies", json={"add": ["clogs"], "remove": ["boots"]})
    assert "clogs" not in hits(whole)
    assert "boots" in hits(whole)
    whole.delete(f"/lists/{NAME}")
    assert kind(whole.get("/lists/shoes/hits")) == (404, "unknown-list")
    assert [each["new"] for each in whole.get("/lists?new=true").json()["lists"]] == [None]


def test_duplicates_of_a_listed_company_are_excluded_too(whole: TestClient, index: SqliteIndex) -> None:
    index.upsert("first", [company("boots-2", 0.95, 6, name="Boots", domain="boots.de")])
    keep(whole, ids=["boots"])
    assert ranked(whole, {"anchors": [{"company": "acme"}], "k": 1, "exclude_lists": [NAME]}) == ["clogs"]


def test_deleted_companies_on_an_excluded_list_are_no_misses(whole: TestClient, index: SqliteIndex) -> None:
    keep(whole, ids=["boots", "clogs"])
    delete(index, "boots")
    answer = whole.post("/similar", json={"anchors": [{"company": "acme"}], "exclude_lists": [NAME]}).json()
    assert answer["misses"] == []
    assert "clogs" not in [hit["company"]["id"] for hit in answer["hits"]]


def test_an_unknown_list_is_a_problem_and_so_is_a_query(whole: TestClient) -> None:
    save(whole, "shoes")
    known = {"anchors": [{"company": "acme"}]}
    for name, expected in (("nothing", (404, "unknown-list")), ("shoes", (409, "wrong-kind-of-list"))):
        assert kind(whole.post("/similar", json={**known, "exclude_lists": [name]})) == expected
        assert kind(whole.get(f"/similar/acme?exclude_list={name}")) == expected
        questions = [known, {**known, "exclude_lists": [name]}, known]
        answers = whole.post("/similar/batch", json={"questions": questions}).json()["answers"]
        assert [each["status"] for each in answers] == [200, expected[0], 200]


def test_excluded_lists_may_hold_as_many_companies_as_a_query_excludes(
    whole: TestClient, workspace: SqliteWorkspace
) -> None:
    for name in ("one", "two"):
        workspace.save_list(make_shortlist(name, *(f"{name}-{number}" for number in range(5_001))))
    question = {"anchors": [{"company": "acme"}], "exclude_lists": ["one", "two"]}
    answer = whole.post("/similar", json=question)
    assert (answer.status_code, "10,002 companies together" in answer.json()["detail"]) == (422, True)
    answers = whole.post("/similar/batch", json={"questions": [question]}).json()["answers"]
    assert [each["status"] for each in answers] == [422]


def test_pages_go_on_while_the_list_grows(whole: TestClient) -> None:
    keep(whole, ids=["zapatos"])
    question = {"anchors": [{"company": "acme"}], "k": 1, "exclude_lists": [NAME], "reasons": 0}
    first = whole.post("/similar", json=question).json()
    assert [hit["company"]["id"] for hit in first["hits"]] == ["boots"]
    whole.post(f"/lists/{NAME}/companies", json={"add": ["boots"]})
    cursor = {"cursor": first["next_cursor"]}
    assert ranked(whole, question | cursor) == ["clogs"]
    assert kind(whole.post("/similar", json=question | cursor | {"exclude_lists": []})) == (422, "wrong-cursor")


# ---- Exporting


def test_a_table_names_each_company_once_and_says_which_are_deleted(client: TestClient, index: SqliteIndex) -> None:
    index.upsert("first", [company("evil", 0.2, 6, name="=1+1", domain="evil.com")])
    keep(client, ids=["clogs", "evil", "boots"])
    delete(index, "clogs")
    answer = client.get(f"/lists/{NAME}/companies?format=csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="already-contacted.csv"'
    assert answer.content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [(row["id"], row["name"], row["domain"], row["employees"], row["deleted"]) for row in rows] == [
        ("evil", "'=1+1", "evil.com", "", "False"),
        ("boots", "Boots GmbH", "boots.de", "12", "False"),
        ("clogs", "", "", "", "True"),
    ]
    assert client.get(f"/lists/{NAME}/companies", headers={"Accept": "text/csv"}).content == answer.content


def test_a_renamed_company_has_its_new_name(client: TestClient, index: SqliteIndex) -> None:
    keep(client, ids=["boots"])
    index.upsert("first", [replace_name(company("boots", 0.9, 1), "Stiefel AG")])
    [member] = members(client)["companies"]
    assert (member["id"], member["name"], member["deleted"]) == ("boots", "Stiefel AG", False)


def replace_name(document: EmbeddedCompany, name: str) -> EmbeddedCompany:
    return replace(document, company=replace(document.company, name=name), version=VERSION + 1)


def test_an_excel_file_has_rank_probability_and_verdict(whole: TestClient, index: SqliteIndex) -> None:
    add_generation(index, "second", companies(), calibration=CALIBRATION)
    index.promote("second")
    keep(whole, ids=["as-nord", "clogs", "boots"])
    whole.post("/feedback", json={"anchor": "boots", "hit": "acme", "verdict": "competitor", "note": "same shops"})
    answer = whole.get(f"/lists/{NAME}/companies?format=xlsx&company=Acme")
    [header, *rows] = openpyxl.load_workbook(io.BytesIO(answer.content)).worksheets[0].values
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["id"], row["rank"], row["verdict"], row["note"]) for row in table] == [
        ("boots", 1, "competitor", "same shops"),
        ("clogs", 2, None, None),
        ("as-nord", 5, None, None),
    ]
    table_of_text = whole.get(f"/lists/{NAME}/companies?format=csv&company=Acme").text
    assert table_of_text.splitlines()[0].endswith("score,probability,verdict,deleted")  # programs read these columns
    assert [row["score"] for row in table] == pytest.approx([0.9, 0.8, 0.1], abs=1e-3)
    logit = CALIBRATION.slope * 0.9 + CALIBRATION.intercept
    assert table[0]["probability"] == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-3)


# ---- Comparing


def compared(client: TestClient, **query: Any) -> dict[str, list[str]]:
    answer = client.get(f"/lists/{NAME}/compare", params=query)
    assert answer.status_code == 200, answer.text
    return {part: [each["id"] for each in answer.json()[part]] for part in ("in_both", "only_here", "only_there")}


def test_reading_many_companies_of_lists_is_heavy(
    index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[int] = []
    service = ShortlistService(SearchService(Searcher(index)), workspace, before_heavy_work=lambda: began.append(1))
    ann = Caller(name="ann", scopes=frozenset())
    workspace.save_list(make_shortlist("a", "acme", "boots"))
    workspace.save_list(make_shortlist("b", "clogs"))
    monkeypatch.setattr(shortlists, "QUICKLY_READ", 2)
    service.members("a", MembersQuery(), ann)
    service.compare("a", ComparisonQuery(company="acme"), ann)
    assert began == []
    service.compare("a", ComparisonQuery(other="b"), ann)
    assert began == [1]
    workspace.save_list(make_shortlist("a", "acme", "boots", "clogs"))
    service.members("a", MembersQuery(), ann)
    assert began == [1, 1]


def test_companies_of_lists_and_references_are_read_a_few_at_a_time(
    index: SqliteIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"c{number}" for number in range(120)]
    index.upsert("first", [company(each, 0.5, 6) for each in ids])
    workspace.save_list(make_shortlist("a", *ids))
    reads: list[int] = []
    get = SqliteIndex.get

    def counted(self: SqliteIndex, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        reads.append(len(ids))
        return get(self, generation, ids)

    monkeypatch.setattr(SqliteIndex, "get", counted)
    search = SearchService(Searcher(index))
    found = ShortlistService(search, workspace).members("a", MembersQuery(), Caller(name="ann", scopes=frozenset()))
    assert [each.id for each in found.companies if not each.deleted] == ids
    assert search.ids_of(ids) == ids
    assert max(reads) == 50


def test_a_list_is_compared_with_the_first_hits_of_a_company(client: TestClient, index: SqliteIndex) -> None:
    keep(client, ids=["as-nord", "clogs", "zapatos"])
    delete(index, "as-nord")
    assert compared(client, company="Acme", k=3) == {
        "in_both": ["clogs", "zapatos"],
        "only_here": ["as-nord"],
        "only_there": ["boots"],
    }
    answer = client.get(f"/lists/{NAME}/compare?company=acme&k=1").json()
    assert [(each["id"], each["rank"]) for each in answer["only_here"]] == [
        ("clogs", 2),
        ("zapatos", 3),
        ("as-nord", None),
    ]
    assert (answer["company"]["name"], answer["other"]) == ("Acme Shoes, Inc.", None)


@pytest.mark.parametrize("rank", [None, "business", "comparable", "cosine"])
def test_a_list_is_placed_in_the_ranking_that_is_asked_for(
    whole: TestClient, index: SqliteIndex, rank: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "FACTS_FADE", 0.0)  # three companies are a sparse neighbourhood
    weights = ComparableWeights(
        business=1.0, size_gap=0.0, size_unknown=0.0, same_country=9.0, slope=1.0, intercept=0.0
    )
    add_live(index, "second", ranker=Ranker(encoder_id=ENCODER_ID, cosine=5.0, intercept=-3.0, comparable=weights))
    index.upsert("second", companies())
    keep(whole, ids=["boots", "clogs"])
    query = {} if rank is None else {"rank": rank}
    ranking = whole.get("/similar/acme", params={"reasons": 0, **query}).json()["hits"]
    expected = {hit["company"]["id"]: (hit["rank"], hit["probability"]) for hit in ranking}
    assert expected["clogs"][0] == (1 if rank == "comparable" else 2)
    for each in members(whole, company="acme", **query)["companies"]:
        assert (each["rank"], each["probability"]) == expected[each["id"]]
    compared = whole.get(f"/lists/{NAME}/compare", params={"company": "acme", "k": 1, **query}).json()
    assert [each["id"] for each in compared["in_both"]] == ["clogs" if rank == "comparable" else "boots"]


def test_a_member_that_is_a_duplicate_of_a_hit_counts_as_that_hit(client: TestClient, index: SqliteIndex) -> None:
    index.upsert("first", [company("boots-2", 0.85, 6, name="Boots", domain="boots.de")])
    keep(client, ids=["boots-2"])
    assert compared(client, company="acme", k=2) == {"in_both": ["boots-2"], "only_here": [], "only_there": ["clogs"]}


def test_two_lists_are_compared(client: TestClient) -> None:
    keep(client, ids=["boots", "clogs"])
    keep(client, "clients", ids=["zapatos", "clogs"])
    assert compared(client, other="clients") == {
        "in_both": ["clogs"],
        "only_here": ["boots"],
        "only_there": ["zapatos"],
    }
    assert compared(client, other=NAME) == {"in_both": ["boots", "clogs"], "only_here": [], "only_there": []}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (422, "invalid-request")),
        ("company=acme&other=clients", (422, "invalid-request")),
        ("company=nobody", (404, "unknown-company")),
        ("other=nothing", (404, "unknown-list")),
        ("other=shoes", (409, "wrong-kind-of-list")),
    ],
)
def test_what_cannot_be_compared_is_a_problem(client: TestClient, query: str, expected: tuple[int, str]) -> None:
    keep(client, ids=["boots"])
    save(client, "shoes")
    assert kind(client.get(f"/lists/{NAME}/compare?{query}")) == expected
