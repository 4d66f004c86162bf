"""The models at hand for questions."""

from collections import Counter
from collections.abc import Iterator, Mapping

from services.search.asking.models import SECONDS_BETWEEN_LOOKS, Models
from similarity.ingest import Encoder
from tests.factories import ENCODER_ID, make_generation
from tests.fakes import CountingEncoder
from tests.services.search.asgi import Clock

LIVE = make_generation()


class Shelf(Mapping[str, Encoder]):
    """Encoders, and how often each was asked for."""

    def __init__(self) -> None:
        self.encoders: dict[str, Encoder] = {}
        self.asked = Counter[str]()

    def __getitem__(self, encoder_id: str) -> Encoder:
        self.asked[encoder_id] += 1
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
