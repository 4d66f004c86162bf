"""The models at hand for questions."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from similarity.errors import IndexUnavailable
from similarity.model.encoder_protocol import Encoder
from similarity.search.queries.encoders import SECONDS_BETWEEN_ATTEMPTS, SECONDS_BETWEEN_CLEARINGS, QueryEncoders
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
    models = QueryEncoders(shelf)
    assert not shelf.asked
    assert models.text_vectors(LIVE).encoder_id == ENCODER_ID
    assert models.explainer(LIVE) is models.explainer(LIVE) is not None
    assert shelf.asked == {ENCODER_ID: 1}


def test_an_encoder_that_is_missing_is_not_looked_for_with_every_question() -> None:
    shelf, clock = Shelf(), Clock()
    models = QueryEncoders(shelf, clock=clock)
    for _ in range(10):
        assert models.explainer(LIVE) is None
        assert models.text_vectors(LIVE).reason_unavailable(LIVE) is not None
    assert shelf.asked == {ENCODER_ID: 1}
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    clock.now += SECONDS_BETWEEN_ATTEMPTS
    assert models.text_vectors(LIVE).reason_unavailable(LIVE) is None


def test_an_encoder_is_opened_beside_the_questions_and_waited_for_by_those_that_need_it() -> None:
    shelf = Shelf()
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    shelf.open.clear()
    models = QueryEncoders(shelf)
    models.load_in_background(LIVE)
    models.load_in_background(LIVE)
    found: list[str | None] = []
    waiting = threading.Thread(target=lambda: found.append(models.text_vectors(LIVE).encoder_id))
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
    models = QueryEncoders(shelf)
    with pytest.raises(OSError, match="no memory left"):
        models.text_vectors(LIVE)
    shelf.failing = False
    assert models.text_vectors(LIVE).encoder_id == ENCODER_ID


def test_forgetting_concerns_every_model_that_is_open() -> None:
    shelf = Shelf()
    shelf.encoders[ENCODER_ID] = CountingEncoder()
    models = QueryEncoders(shelf)
    models.forget({"acme"})
    explainer = models.explainer(LIVE)
    models.text_vectors(make_generation(encoder_id="missing"))
    assert explainer is not None
    acme, boots = make_company("acme"), make_company("boots")
    explainer.phrases([acme], [boots])
    before = explainer.cached_bytes
    models.forget({"acme"})
    assert 0 < explainer.cached_bytes < before


def made_with(*encoder_ids: str) -> Shelf:
    """A shelf with these encoders."""
    shelf = Shelf()
    for encoder_id in encoder_ids:
        shelf.encoders[encoder_id] = CountingEncoder()
    return shelf


def test_an_encoder_that_no_generation_names_is_let_go_of_and_whoever_holds_it_goes_on() -> None:
    shelf, needed = made_with("first", "second"), {"first", "second"}
    models = QueryEncoders(shelf, needed=lambda: needed)
    first, second = (make_generation(each, encoder_id=each) for each in ("first", "second"))
    held, kept = models.explainer(first), models.explainer(second)
    models.clear()
    assert (models.explainer(first), models.explainer(second)) == (held, kept)
    needed.remove("first")
    models.clear()
    assert models.explainer(second) is kept
    assert held is not None
    assert held.phrases([make_company("acme")], [make_company("boots")])
    # A rollback to a generation of that encoder: it is opened again.
    assert models.explainer(first) is not held
    assert shelf.asked == {"first": 2, "second": 1}


def test_without_being_told_what_is_needed_everything_is_kept() -> None:
    shelf = made_with(ENCODER_ID)
    models = QueryEncoders(shelf)
    held = models.explainer(LIVE)
    models.clear()
    assert models.explainer(LIVE) is held


def test_a_store_that_does_not_answer_lets_nothing_go() -> None:
    def needed() -> set[str]:
        raise IndexUnavailable("it is away")

    models = QueryEncoders(made_with(ENCODER_ID), needed=needed)
    held = models.explainer(LIVE)
    models.clear()
    assert models.explainer(LIVE) is held


def test_an_encoder_that_comes_while_the_generations_are_read_is_kept() -> None:
    shelf = made_with("first", "second")
    second = make_generation("second", encoder_id="second")

    def needed() -> set[str]:
        # Promoted right after they were read.
        models.text_vectors(second)
        return {"first"}

    models = QueryEncoders(shelf, needed=needed)
    models.clear()
    models.text_vectors(second)
    assert shelf.asked == {"second": 1}


def test_questions_have_the_encoders_cleared_once_a_minute() -> None:
    looks, clock = threading.Semaphore(0), Clock()

    def needed() -> set[str]:
        looks.release()
        return {ENCODER_ID}

    models = QueryEncoders(made_with(ENCODER_ID), needed=needed, clock=clock)
    for _ in range(2):
        clock.now += SECONDS_BETWEEN_CLEARINGS - 1
        models.load_in_background(LIVE)
        clock.now += 1
        models.load_in_background(LIVE)
        models.load_in_background(LIVE)
        assert looks.acquire(timeout=10)
    for thread in threading.enumerate():
        if thread.name == "clear-encoders":
            thread.join(timeout=10)
    assert not looks.acquire(blocking=False)


def test_an_encoder_that_fails_after_it_was_let_go_of_fails_those_who_wait_alone() -> None:
    shelf = made_with(ENCODER_ID)
    shelf.open.clear()
    shelf.failing = True
    models = QueryEncoders(shelf, needed=set)
    models.load_in_background(LIVE)
    waited = models._model(ENCODER_ID)
    models.clear()
    shelf.open.set()
    with pytest.raises(OSError, match="no memory left"):
        waited.result(timeout=10)
