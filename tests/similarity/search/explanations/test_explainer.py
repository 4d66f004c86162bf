"""Explaining: the phrases of each hit, and a memory that spares the encoder what it has read before."""

from collections.abc import Callable, Sequence
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.company import Company
from similarity.errors import EncodingFailed
from similarity.search.explanations.explainer import SMALL_BATCH, SMALL_CHARACTERS, Explainer
from tests.factories import make_company
from tests.word_encoder import WordEncoder

SHOES = make_company("shoes", description="They sell shoes. They rent out boats.")
BOATS = make_company("boats", description="They build fast boats. They drink cold milk.")
MILK = make_company("milk", description="They bottle cold milk. They like shoes.")


@pytest.fixture
def encoder() -> WordEncoder:
    return WordEncoder("shoes", "boats", "milk")


def phrases_of(explainer: Explainer, anchor: Company | str, hit: Company) -> list[str]:
    (phrases,) = explainer.phrases([anchor], [hit])
    return [phrase.text for phrase in phrases]


def test_each_hit_is_explained_in_the_order_given(encoder: WordEncoder) -> None:
    of_boats, of_milk = Explainer(encoder).phrases([SHOES], [BOATS, MILK])
    assert [phrase.text for phrase in of_boats] == ["rent out boats", "build fast boats"]
    assert [phrase.text for phrase in of_milk] == ["sell shoes", "like shoes"]


def test_all_that_is_missing_goes_to_the_encoder_in_one_call(encoder: WordEncoder) -> None:
    Explainer(encoder).phrases([SHOES, "free words"], [BOATS, MILK])
    assert len(encoder.calls) == 1


def test_what_was_read_before_is_not_encoded_again(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder)
    first = explainer.phrases([SHOES], [BOATS])
    assert explainer.phrases([SHOES], [BOATS]) == first
    explainer.phrases([SHOES], [BOATS, MILK])
    assert len(encoder.calls) == 2
    assert all("bottle" in text or "shoes" in text for text in encoder.calls[1])


def test_without_hits_nothing_is_encoded(encoder: WordEncoder) -> None:
    assert Explainer(encoder).phrases([SHOES], []) == []
    assert encoder.calls == []


def test_free_words_are_not_taken_for_a_company_that_says_the_same(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder)
    company = make_company("acme", name="Boats", description="Boats builds fast boats. It drinks milk.")
    assert phrases_of(explainer, company.description, BOATS) != phrases_of(explainer, company, BOATS)


def test_a_new_name_is_a_new_text(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder)
    explainer.phrases([SHOES], [make_company(name="Acme", description=BOATS.description)])
    explainer.phrases([SHOES], [make_company(name="Milk", description=BOATS.description)])
    assert len(encoder.calls) == 2


def test_places_are_those_of_the_description_even_where_the_encoder_reads_the_same(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder)
    short = make_company(description="They build fast boats.")
    long = make_company(description="The company was founded in 1950 and is based in Bern. They build fast boats.")
    starts = [
        phrase.start
        for (phrases,) in (explainer.phrases(["boats and shoes"], [each]) for each in (short, long))
        for phrase in phrases
        if phrase.text == "build fast boats"
    ]
    assert starts == [5, long.description.index("build")]


def test_the_least_recently_used_description_is_forgotten_first(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder, cache_bytes=3_000)
    explainer.phrases([SHOES], [BOATS])
    explainer.phrases([SHOES], [MILK])
    assert explainer.cached_bytes <= 3_000
    calls = len(encoder.calls)
    explainer.phrases([SHOES], [MILK])
    assert len(encoder.calls) == calls
    explainer.phrases([SHOES], [BOATS])
    assert len(encoder.calls) == calls + 1


def test_what_was_remembered_is_told(encoder: WordEncoder) -> None:
    told: list[bool] = []
    explainer = Explainer(encoder, on_lookup=told.append)
    explainer.phrases([SHOES], [BOATS])
    explainer.phrases([SHOES], [MILK])
    assert told == [False, False, True, False]


def test_without_room_to_remember_it_explains_all_the_same(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder, cache_bytes=0)
    assert explainer.phrases([SHOES], [BOATS]) == Explainer(encoder).phrases([SHOES], [BOATS])
    assert explainer.cached_bytes == 0


def test_before_heavy_work_is_encoded_it_is_asked_whether_it_may_be_and_a_no_spoils_nothing(
    encoder: WordEncoder,
) -> None:
    asked: list[int] = []

    def may() -> None:
        asked.append(len(encoder.calls))
        if len(asked) == 1:
            raise PermissionError

    explainer = Explainer(encoder, before_heavy_work=may)
    hits = [make_company(f"c{number}", description=f"They sell shoes {number}.") for number in range(5)]
    explainer.phrases([SHOES], hits[: SMALL_BATCH - 1])
    assert asked == []
    others = [make_company(f"d{number}", description=f"They build boats {number}.") for number in range(5)]
    with pytest.raises(PermissionError):
        explainer.phrases([SHOES], others)
    assert len(explainer.phrases([SHOES], others)) == 5
    explainer.phrases([SHOES], others)
    assert asked == [1, 1]


def test_a_long_description_is_much(encoder: WordEncoder) -> None:
    def refuse() -> None:
        raise PermissionError

    explainer = Explainer(encoder, before_heavy_work=refuse)
    sentences = "They sell shoes. " * (SMALL_CHARACTERS // 17)
    explainer.segments([make_company("long", description=sentences)])
    with pytest.raises(PermissionError):
        explainer.segments([make_company("longer", description=f"{sentences}They rent out boats.")])


def test_a_company_is_forgotten_by_its_id_and_nothing_else_is(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder)
    old = make_company("shoes", description="They rent out boats.")
    explainer.phrases([SHOES, "free words"], [BOATS, old])
    calls = len(encoder.calls)
    explainer.forget({"shoes", "unheard-of"})
    explainer.phrases(["free words"], [BOATS])
    assert len(encoder.calls) == calls
    explainer.phrases([SHOES], [old])
    assert len(encoder.calls) == calls + 1
    explainer.forget({"shoes", "boats"})
    assert explainer.cached_bytes > 0


class SlowEncoder(WordEncoder):
    """Says when it has begun, and goes on when it may; fails where `failing`."""

    def __init__(self, *words: str, failing: bool = False) -> None:
        super().__init__(*words)
        self.begun = Event()
        self.may_go_on = Event()
        self.failing = failing

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        self.begun.set()
        assert self.may_go_on.wait(timeout=10)
        if self.failing:
            raise EncodingFailed("out of order")
        return super().encode(texts, progress)


def test_who_asks_for_what_is_being_encoded_waits_for_it() -> None:
    encoder = SlowEncoder("shoes", "boats", "milk")
    explainer = Explainer(encoder)
    answers: list[list[str]] = []
    threads = [Thread(target=lambda: answers.append(phrases_of(explainer, SHOES, BOATS))) for _ in range(4)]
    threads[0].start()
    assert encoder.begun.wait(timeout=10)
    for thread in threads[1:]:
        thread.start()
    encoder.may_go_on.set()
    for thread in threads:
        thread.join(timeout=10)
    assert answers == [["rent out boats", "build fast boats"]] * 4
    assert len(encoder.calls) == 1


def test_what_is_forgotten_while_it_is_encoded_is_answered_and_not_kept() -> None:
    encoder = SlowEncoder("shoes", "boats", "milk")
    explainer = Explainer(encoder)
    asking = Thread(target=lambda: phrases_of(explainer, SHOES, BOATS))
    asking.start()
    assert encoder.begun.wait(timeout=10)
    explainer.forget({"shoes"})
    encoder.may_go_on.set()
    asking.join(timeout=10)
    explainer.phrases(["free words"], [BOATS])
    phrases_of(explainer, SHOES, BOATS)
    assert ["They sell shoes. They rent out boats." in call for call in encoder.calls] == [True, False, True]
    # It is wanted again from now on.
    phrases_of(explainer, SHOES, BOATS)
    assert len(encoder.calls) == 3


def test_two_that_need_each_others_texts_both_get_them(encoder: WordEncoder) -> None:
    explainer = Explainer(encoder)
    together = Barrier(2)
    answers: dict[str, int] = {}

    def ask(anchor: Company, hit: Company) -> None:
        together.wait(timeout=10)
        for _ in range(50):
            answers[anchor.id] = len(explainer.phrases([anchor], [hit]))

    threads = [Thread(target=ask, args=pair) for pair in ((SHOES, BOATS), (BOATS, SHOES))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert answers == {"shoes": 1, "boats": 1}


def test_a_failure_is_told_and_not_remembered() -> None:
    encoder = SlowEncoder("shoes", "boats", failing=True)
    encoder.may_go_on.set()
    explainer = Explainer(encoder)
    with pytest.raises(EncodingFailed):
        explainer.phrases([SHOES], [BOATS])
    encoder.failing = False
    assert phrases_of(explainer, SHOES, BOATS) == ["rent out boats", "build fast boats"]
