"""What each address answers when all is well."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from services.search.app import create_app
from similarity.index.sqlite import SqliteIndex
from similarity.text import DEFAULT_SETTINGS
from tests.factories import ENCODER_ID
from tests.services.search.corpus import add_generation, at_cosine, companies, company


class AxisEncoder:
    """Takes every text for a description of `acme`, and remembers the texts."""

    encoder_id = ENCODER_ID
    text_settings = DEFAULT_SETTINGS

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        self.texts += texts
        return np.array([at_cosine(1.0, 1) for _ in texts])


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [hit["company"]["id"] for hit in answer.json()["hits"]]


def test_competitors_come_best_first_with_their_cosine(client: TestClient) -> None:
    hits = client.get("/similar/acme", params={"k": 3}).json()["hits"]
    assert [(hit["rank"], hit["company"]["id"]) for hit in hits] == [(1, "boots"), (2, "clogs"), (3, "zapatos")]
    assert [hit["score"] for hit in hits] == pytest.approx([0.9, 0.8, 0.5], abs=1e-4)


def test_a_hit_carries_the_whole_company_and_its_times(client: TestClient) -> None:
    hit = client.get("/similar/acme", params={"k": 1}).json()["hits"][0]
    assert hit["company"] == {
        "id": "boots",
        "name": "Boots GmbH",
        "description": "Makes things that only boots makes.",
        "aliases": [],
        "domain": "boots.de",
        "country": "Germany",
        "industry": "Footwear",
        "tags": [],
        "attributes": {"employees": 12},
    }
    assert hit["updated_at"] == "2025-01-02T00:00:00Z"
    assert hit["embedded_at"] == "2025-03-01T12:00:00.000250Z"
    assert (hit["language"], hit["warning"], hit["probability"]) == ("en", None, None)


def test_an_answer_names_its_anchor_generation_and_model(client: TestClient) -> None:
    answer = client.get("/similar/acme").json()
    assert answer["company"]["name"] == "Acme Shoes, Inc."
    assert answer["updated_at"] == "2025-01-02T00:00:00Z"
    assert answer["generation"] == "first"
    assert answer["model"] == {"encoder_id": "encoder-1", "bundle_id": "bundle-1"}
    assert answer["redirected_from"] is None
    assert answer["approximate"] is False
    assert 0 < answer["took_ms"] < 10_000


@pytest.mark.parametrize("reference", ["acme", "Acme", "ACME SHOES, INC.", "acme.com", "https://www.acme.com/about"])
def test_the_anchor_is_never_in_its_own_answer_whatever_it_is_called(client: TestClient, reference: str) -> None:
    found = client.get(f"/similar/{reference}", params={"k": 250})
    assert sorted(ids(found)) == ["as-nord", "boots", "clogs", "delta-air", "zapatos"]


@pytest.mark.parametrize("reference", ["Acme", "acme.com", "Acme Shoes, Inc."])
def test_another_name_than_the_id_is_said_to_be_redirected(client: TestClient, reference: str) -> None:
    for path in ("similar", "companies"):
        answer = client.get(f"/{path}/{reference}").json()
        assert answer["company"]["id"] == "acme"
        assert answer["redirected_from"] == reference


def test_a_name_with_a_slash_is_found(client: TestClient) -> None:
    assert client.get("/companies/A%2FS Nord").json()["company"]["id"] == "as-nord"


def test_a_description_that_is_not_english_carries_a_warning_and_no_probability(index: SqliteIndex) -> None:
    spanish = "Fabrica y vende zapatos de piel en toda la región."
    index.upsert("first", [company("zapatos-dos", 0.4, 4, description=spanish, language="es")])
    client = TestClient(create_app(index=index))
    warning = (
        "The description is not in English ('es'), the only language that the encoder reads: its cosines mean little. "
        "No probability is given for it. Describe the company in English, or re-embed the index with an encoder that "
        "reads this language."
    )
    assert client.get("/companies/zapatos-dos").json()["warning"] == warning
    hits = client.get("/similar/acme").json()["hits"]
    assert {hit["company"]["id"]: hit["warning"] for hit in hits if hit["warning"]} == {"zapatos-dos": warning}


def test_free_text_is_encoded_and_compared_with_every_company(read_only_index: SqliteIndex) -> None:
    encoder = AxisEncoder()
    client = TestClient(create_app(index=read_only_index, encoder=encoder))
    answer = client.get("/similar", params={"text": "  makes leather shoes  ", "k": 2, "reasons": 0})
    assert ids(answer) == ["acme", "boots"]
    assert encoder.texts == ["makes leather shoes"]
    assert answer.json()["text"] == "makes leather shoes"
    assert (answer.json()["language"], answer.json()["warning"]) == ("und", None)


def test_free_text_that_is_not_english_carries_a_warning(read_only_index: SqliteIndex) -> None:
    client = TestClient(create_app(index=read_only_index, encoder=AxisEncoder()))
    text = "Das Unternehmen stellt Schuhe für Wanderer und Bergsteiger her und verkauft sie in eigenen Läden."
    answer = client.get("/similar", params={"text": text}).json()
    assert answer["language"] == "de"
    assert answer["warning"].startswith("The text is not in English ('de')")


def test_finding_keeps_to_its_limit(client: TestClient) -> None:
    assert len(client.get("/companies", params={"q": "makes"}).json()["companies"]) > 2
    assert len(client.get("/companies", params={"q": "makes", "limit": 2}).json()["companies"]) == 2


def test_a_promote_counts_from_the_next_request_on(index: SqliteIndex) -> None:
    client = TestClient(create_app(index=index))
    assert ids(client.get("/similar/acme", params={"k": 1})) == ["boots"]
    add_generation(index, "second", [*companies(), company("better", 0.95, 6)])
    assert ids(client.get("/similar/acme", params={"k": 1})) == ["boots"]
    index.promote("second")
    answer = client.get("/similar/acme", params={"k": 1})
    assert (ids(answer), answer.json()["generation"]) == (["better"], "second")


def test_the_process_is_alive_even_without_an_index(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    answer = TestClient(create_app(index=index)).get("/healthz")
    index.close()
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


def test_ready_names_both_encoders_and_the_size(read_only_index: SqliteIndex) -> None:
    ready = TestClient(create_app(index=read_only_index, encoder=AxisEncoder())).get("/readyz").json()
    assert ready == {
        "status": "ready",
        "generation": "first",
        "model": {"encoder_id": "encoder-1", "bundle_id": "bundle-1"},
        "companies": 6,
        "loaded_encoder_id": "encoder-1",
        "free_text": True,
        "free_text_reason": None,
        "feedback": True,
        "feedback_reason": None,
    }


def test_ready_says_why_free_text_cannot_be_answered(client: TestClient, read_only_index: SqliteIndex) -> None:
    other = AxisEncoder()
    other.encoder_id = "encoder-2"
    for asked in (client, TestClient(create_app(index=read_only_index, encoder=other))):
        ready = asked.get("/readyz")
        assert ready.status_code == 200
        assert (ready.json()["free_text"], ready.json()["loaded_encoder_id"]) == (False, None)
        assert ready.json()["free_text_reason"].startswith("the bundle of encoder encoder-1, which generation ")


def test_the_page_and_its_parts_are_served_from_here(client: TestClient) -> None:
    page = client.get("/", params={"company": "acme"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name, kind in [("page.css", "text/css"), ("page.js", "javascript"), ("icon.svg", "image/svg+xml")]:
        assert f"/assets/{name}" in page.text
        part = client.get(f"/assets/{name}")
        assert part.status_code == 200
        assert kind in part.headers["content-type"]
        # The one address there is is the name of the SVG language, which nobody fetches.
        assert "http" not in part.text.replace("http://www.w3.org/2000/svg", "").replace("`https://${domain}`", "")
    assert "http" not in page.text


def test_what_lasts_as_long_as_the_application_leaves_no_folder_behind(
    read_only_index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with TestClient(create_app(index=read_only_index)) as client:
        assert client.post("/feedback", json={"anchor": "acme", "hit": "boots", "verdict": "unsure"}).status_code == 201
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
