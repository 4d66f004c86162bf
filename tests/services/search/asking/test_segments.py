"""The lines of business of a company over HTTP, and by the client."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import openpyxl
import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.client import Anchor, Client
from tests.contract.steps import add_candidate
from tests.factories import make_embedded
from tests.services.search.corpus import filled_index
from tests.services.search.wire.test_failures import problem
from tests.similarity.search.explanations.test_segments import GROUP
from tests.word_encoder import WordEncoder


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    axes = np.eye(3, dtype=np.float32)
    index = filled_index(tmp_path_factory.mktemp("segments") / "index.db")
    group = make_embedded("group", name="Group AG", description=GROUP.description, vector=axes[0])
    shipyard = make_embedded("shipyard", name="Shipyard", vector=axes[1])
    add_candidate(index, "second", dimension=3)
    index.upsert("second", [group, make_embedded("cobbler", name="Cobbler", vector=axes[0]), shipyard])
    index.promote("second")
    with TestClient(create_app(index=index, encoder=WordEncoder("shoes", "boats"))) as client:
        yield client
    index.close()


def about(**anchor: Any) -> dict[str, Any]:
    return {"anchors": [anchor]}


def test_a_company_has_numbered_segments(asking: TestClient) -> None:
    found = asking.get("/segments/Group AG").json()
    assert found["company"]["id"] == "group"
    assert [each["number"] for each in found["segments"]] == [1, 2]
    assert found["segments"][1]["text"].startswith("rent out sailing boats on alpine lakes; paint racing boats")
    assert asking.get("/segments/cobbler").json()["segments"] == []


def test_an_anchor_may_be_one_of_them(asking: TestClient) -> None:
    answer = asking.post("/similar", json=about(company="group", segment=2)).json()
    assert [hit["company"]["id"] for hit in answer["hits"]] == ["shipyard", "cobbler"]
    assert answer["anchors"][0]["segment"]["number"] == 2
    assert answer["anchors"][0]["company"]["description"] == GROUP.description


@pytest.mark.parametrize(
    ("anchor", "words"),
    [
        ({"company": "group", "segment": 3}, "there is no segment 3 of Group AG"),
        ({"company": "group", "segment": 0}, "greater than or equal to 1"),
        ({"text": "sells shoes", "segment": 1}, "only a company has segments"),
    ],
)
def test_what_is_no_segment_is_refused(asking: TestClient, anchor: dict[str, Any], words: str) -> None:
    assert words in str(problem(asking.post("/similar", json=about(**anchor)), "invalid-request"))


def test_an_excel_file_says_which_segment_its_question_is_about(asking: TestClient) -> None:
    answer = asking.post("/similar?format=xlsx", json={**about(company="group", segment=2), "reasons": 0})
    rows = openpyxl.load_workbook(io.BytesIO(answer.content))["question"].values
    [like] = [value for part, value in rows if part == "like"]
    assert str(like).startswith("Group AG (group), line of business 2: \u201crent out sailing boats on alpine lakes;")


def test_segments_count_as_reasons_of_a_batch(asking: TestClient) -> None:
    questions = [{**about(company="group", segment=2), "reasons": 1}] * 26
    refused = asking.post("/similar/batch", json={"questions": questions})
    assert "52 reasons and segments" in str(problem(refused, "invalid-request"))
    answers = asking.post("/similar/batch", json={"questions": questions[:25]}).json()["answers"]
    assert [each["status"] for each in answers] == [200] * 25


def test_the_client_asks_for_them(asking: TestClient) -> None:
    client = Client("http://testserver", http=asking)
    segments = client.segments("group").segments
    assert [each.number for each in segments] == [1, 2]
    ranking = client.similar(Anchor(company="group", segment=2))
    assert ranking.hits[0].company.id == "shipyard"
    assert ranking.anchors[0].segment == segments[1]
