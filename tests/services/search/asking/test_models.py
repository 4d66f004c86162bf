"""The models at hand for questions."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from services.search.asking.models import SECONDS_BETWEEN_LOOKS, Models
from similarity.ingest import Encoder
from tests.factories import ENCODER_ID, make_company, make_generation
from tests.fakes import CountingEncoder
from tests.services.search.asgi import Clock

LIVE = make_generation()


class Shelf(Mapping[str, Encoder]):
    """Encoders, and how often each was asked for."""

    def __init__(self) -> None:
        self.encoders: dict[str, Encoder] = {}
        self.asked = Counter[str]()
        self.open = threading.Event()
        self.open.set()
        self.failing = False

    def __getitem__(self, encoder_id: str) -> Encoder:
        self.asked[encoder_id] += 1
        assert self.open.wait(timeout=10)
        if self.failing:
            raise OSError("no memory left")
        return self.encoders[encoder_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.encoders)

    def __len__(self) -> int:
        return len(self.encoders)


def test_an_encoder_is_opened_once_when_a_generation_asks_for_it() -> None:
    shelf = Shelf()
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    models = Models(shelf)
    assert not shelf.asked
    assert models.texts(LIVE).encoder_id == ENCODER_ID
    assert models.explainer(LIVE) is models.explainer(LIVE) is not None
    assert shelf.asked == {ENCODER_ID: 1}


def test_an_encoder_that_is_missing_is_not_looked_for_with_every_question() -> None:
    shelf, clock = Shelf(), Clock()
    models = Models(shelf, clock=clock)
    for _ in range(10):
        assert models.explainer(LIVE) is None
        assert models.texts(LIVE).missing_for(LIVE) is not None
    assert shelf.asked == {ENCODER_ID: 1}
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    clock.now += SECONDS_BETWEEN_LOOKS
    assert models.texts(LIVE).missing_for(LIVE) is None


def test_an_encoder_is_opened_beside_the_questions_and_waited_for_by_those_that_need_it() -> None:
    shelf = Shelf()
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    shelf.open.clear()
    models = Models(shelf)
    models.notice(LIVE)
    models.notice(LIVE)
    found: list[str | None] = []
    waiting = threading.Thread(target=lambda: found.append(models.texts(LIVE).encoder_id))
    waiting.start()
    waiting.join(timeout=0.05)
    assert waiting.is_alive()
    shelf.open.set()
    waiting.join(timeout=10)
    assert found == [ENCODER_ID]
    assert shelf.asked == {ENCODER_ID: 1}


def test_an_encoder_that_cannot_be_opened_fails_those_who_wait_and_is_tried_anew() -> None:
    shelf = Shelf()
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    shelf.failing = True
    models = Models(shelf)
    with pytest.raises(OSError, match="no memory left"):
        models.texts(LIVE)
    shelf.failing = False
    assert models.texts(LIVE).encoder_id == ENCODER_ID


def test_forgetting_concerns_every_model_that_is_open() -> None:
    shelf = Shelf()
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    models = Models(shelf)
    models.forget({"acme"})
    explainer = models.explainer(LIVE)
    models.texts(make_generation(encoder_id="missing"))
    assert explainer is not None
    acme, boots = make_company("acme"), make_company("boots")
    explainer.phrases([acme], [boots])
    before = explainer.remembered_bytes
    models.forget({"acme"})
    assert 0 < explainer.remembered_bytes < before
