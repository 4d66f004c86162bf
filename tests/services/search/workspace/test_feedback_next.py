"""Suggestions come from the neighbours of companies that people judged or saved, and are new to everybody."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from similarity.model.ranker import Ranker
from similarity.search.searcher import Searcher
from tests.factories import make_generation
from tests.services.search.corpus import CALIBRATION, companies, company, filled_index
from tests.services.search.workspace_app import StandingClock, given, workspace_client
from tests.workspace_records import make_list, moment


@pytest.fixture
def client(tmp_path: Path, workspace: SqliteWorkspace) -> Iterator[TestClient]:
    with closing(filled_index(tmp_path / "calibrated.db", calibration=CALIBRATION)) as index:
        yield workspace_client(index, workspace, StandingClock())


def suggested(client: TestClient, **query: Any) -> Any:
    answer = client.get("/feedback/next", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def hits(answer: Any) -> list[str]:
    return [pair["hit"]["id"] for pair in answer["pairs"]]


def test_the_neighbour_at_even_odds_comes_first_and_says_why(client: TestClient) -> None:
    answer = suggested(client, anchor="Acme")
    # The calibration gives 0.5 at cosine 0.5, which is where `zapatos` is.
    first = answer["pairs"][0]
    assert (first["anchor"]["id"], first["hit"]["id"], first["hit"]["name"]) == ("acme", "zapatos", "Zapatos SA")
    assert (first["probability"], first["score"]) == (0.5, 0.5)
    assert first["why"][0] == "uncertain: a competitor with probability 0.50"
    assert first["worth"] >= 0.5
    assert answer["anchors"] == ["acme"]
    assert (answer["generation"], answer["model"]["bundle_id"]) == ("first", "bundle-1")
    worths = [pair["worth"] for pair in answer["pairs"]]
    assert worths == sorted(worths, reverse=True)
    assert all(pair["why"] for pair in answer["pairs"])


def test_a_hit_has_its_rank_in_both_rankings_and_the_probability_of_the_second_stage(
    tmp_path: Path, workspace: SqliteWorkspace
) -> None:
    description = "Sells hand-made mountain shoes."
    ranker = Ranker(encoder_id="encoder-1", cosine=1.0, shared_words=5.0, intercept=0.0)
    with closing(SqliteIndex(tmp_path / "ranker.db")) as index:
        index.create_generation(make_generation(calibration=CALIBRATION, ranker=ranker))
        index.register_candidate("first")
        like = company("like", 0.2, 2, description=description)
        index.upsert("first", [*companies(), company("anchor", 1.0, 1, description=description), like])
        index.promote("first")
        client = workspace_client(index, workspace, StandingClock())
        pair = next(each for each in suggested(client, anchor="anchor")["pairs"] if each["hit"]["id"] == "like")
        hit = Searcher(index).search("anchor").hits[0]
    assert (pair["cosine_rank"], pair["business_rank"]) == (6, 1)
    assert (hit.company.id, hit.probability) == ("like", pair["probability"])
    assert pair["score"] == pytest.approx(hit.score, abs=1e-6)


def test_an_anchor_that_was_deleted_is_not_taken_for_a_company_with_that_name(
    client: TestClient, workspace: SqliteWorkspace
) -> None:
    workspace.save_list(make_list(anchors=[{"company": "Delta"}, {"company": "boots"}]))
    assert suggested(client)["anchors"] == ["boots"]


def test_what_anybody_judged_is_not_suggested_again(client: TestClient) -> None:
    client.post("/feedback", json=given("zapatos", "unsure"), headers={"Test-User": "bob"})
    assert "zapatos" not in hits(suggested(client, anchor="acme"))
    assert "acme" not in hits(suggested(client, anchor="zapatos"))


def test_a_pair_whose_only_verdict_was_withdrawn_is_suggested_again(client: TestClient) -> None:
    client.post("/feedback", json=given("zapatos", "competitor"))
    client.post("/feedback", json=given("zapatos", "withdrawn"))
    assert hits(suggested(client, anchor="acme"))[0] == "zapatos"
    assert suggested(client)["anchors"] == []


def test_without_an_anchor_the_companies_used_last_are_looked_at(
    client: TestClient, workspace: SqliteWorkspace
) -> None:
    client.post("/feedback", json=given("boots"))
    assert suggested(client)["anchors"] == ["acme"]
    anchors = [{"company": "clogs"}, {"text": "sells leather shoes"}, {"company": "erased-meanwhile"}]
    workspace.save_list(make_list(at=moment(1), anchors=anchors))
    assert suggested(client)["anchors"] == ["clogs", "acme"]


def test_no_more_than_k_are_suggested(client: TestClient) -> None:
    assert len(suggested(client, anchor="acme", k=2)["pairs"]) == 2
    assert client.get("/feedback/next", params={"k": 101}).status_code == 422


def test_where_there_is_nothing_it_says_what_to_do(client: TestClient) -> None:
    answer = suggested(client)
    assert (answer["pairs"], answer["anchors"]) == ([], [])
    assert "?anchor=" in answer["note"]


def test_an_unknown_anchor_is_a_problem(client: TestClient) -> None:
    assert client.get("/feedback/next", params={"anchor": "nobody"}).status_code == 404
