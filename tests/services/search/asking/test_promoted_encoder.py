"""After a promote to another encoder: it is opened beside the questions that need none, before it is needed."""

import gc
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.bundle import ModelBundle
from similarity.index.bundle_store import StoredEncoders, keep_bundle
from similarity.index.sqlite import SqliteIndex
from similarity.model.encoder_protocol import Encoder
from similarity.search.queries import encoders as query_encoders
from tests.factories import ENCODER_ID, make_generation
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import companies
from tests.tiny_bundle import write_tiny_bundle


class NextEncoder(AxisEncoder):
    encoder_id = "the-next-encoder"


class Bundles(Mapping[str, Encoder]):
    """Two encoders; the promoted one is open only when `may_open` is set."""

    def __init__(self) -> None:
        self.encoders: dict[str, Encoder] = {ENCODER_ID: AxisEncoder(), NextEncoder.encoder_id: NextEncoder()}
        self.asked, self.may_open = threading.Event(), threading.Event()

    def __getitem__(self, encoder_id: str) -> Encoder:
        if encoder_id == NextEncoder.encoder_id:
            self.asked.set()
            assert self.may_open.wait(timeout=20)
        return self.encoders[encoder_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.encoders)

    def __len__(self) -> int:
        return len(self.encoders)


@pytest.mark.parametrize("path", ["/similar/acme?reasons=0", "/companies/acme", "/companies?q=acme"])
def test_a_question_that_needs_no_encoder_has_the_promoted_one_opened_and_does_not_wait(
    index: SqliteIndex, path: str
) -> None:
    bundles = Bundles()
    with TestClient(create_app(index=index, encoders=bundles)) as client:
        assert client.get("/similar?text=makes leather shoes").status_code == 200
        index.create_generation(make_generation("second", encoder_id=NextEncoder.encoder_id))
        index.register_candidate("second")
        documents = [replace(each, encoder_id=NextEncoder.encoder_id) for each in companies()]
        index.upsert("second", documents)
        index.promote("second")
        answer = client.get(path)
        assert (answer.status_code, answer.json()["generation"]) == (200, "second")
        assert bundles.asked.wait(timeout=20)
        waiting = threading.Thread(target=client.get, args=("/similar?text=makes leather shoes",))
        waiting.start()
        waiting.join(timeout=0.1)
        assert waiting.is_alive()
        bundles.may_open.set()
        waiting.join(timeout=20)
        assert client.get("/readyz").json()["loaded_encoder_id"] == NextEncoder.encoder_id


def test_encoders_are_let_go_of_when_their_generations_are_retired(
    index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_encoders, "SECONDS_BETWEEN_CLEARINGS", 0.0)
    store, opened = tmp_path / "bundles", WeakValueDictionary[str, AxisEncoder]()

    def open_encoder(bundle: ModelBundle) -> AxisEncoder:
        encoder = opened[bundle.encoder_id] = AxisEncoder()
        encoder.encoder_id = bundle.encoder_id
        return encoder

    with TestClient(create_app(index=index, encoders=StoredEncoders(store, open_encoder))) as client:
        made: list[str] = []
        for number in range(1, 4):
            bundle = write_tiny_bundle(tmp_path / f"tiny-{number}", max_tokens=16 * number)
            keep_bundle(bundle, store)
            index.create_generation(make_generation(f"next-{number}", encoder_id=bundle.encoder_id))
            index.register_candidate(f"next-{number}")
            index.promote(f"next-{number}")
            made.append(bundle.encoder_id)
            assert client.get("/readyz").json()["loaded_encoder_id"] == bundle.encoder_id
        assert set(opened) == set(made)
        index.retire("next-1")
        assert client.get("/readyz").json()["loaded_encoder_id"] == made[-1]
        for thread in threading.enumerate():
            if thread.name == "clear-encoders":
                thread.join(timeout=20)
        gc.collect()
        assert set(opened) == set(made[1:])
