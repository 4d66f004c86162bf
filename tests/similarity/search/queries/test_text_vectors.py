"""Vectors of free words are cached, a few at a time."""

import pytest

from similarity.search.errors import EncoderNotLoaded
from similarity.search.queries.text_vectors import TextVectors
from tests.factories import make_generation
from tests.services.search.asking.test_routes import AxisEncoder

LIVE = make_generation()


def test_a_text_is_encoded_once() -> None:
    encoder, asked = AxisEncoder(), list[bool]()
    texts = TextVectors(encoder, on_lookup=asked.append)
    first = texts.encode(["a", "b", "a"], LIVE)
    again = texts.encode(["b", "c"], LIVE)
    assert encoder.texts == ["a", "b", "c"]
    assert asked == [False, False, True, False]
    assert (first["b"] == again["b"]).all()


def test_before_new_texts_are_encoded_it_is_asked_whether_they_may_be() -> None:
    encoder, asked = AxisEncoder(), list[str]()

    def may() -> None:
        asked.append(f"after {len(encoder.texts)}")
        if len(asked) == 2:
            raise PermissionError

    texts = TextVectors(encoder, before_encoding=may)
    texts.encode(["a"], LIVE)
    texts.encode(["a"], LIVE)
    with pytest.raises(PermissionError):
        texts.encode(["a", "b"], LIVE)
    assert asked == ["after 0", "after 1"]
    assert encoder.texts == ["a"]


def test_the_text_asked_longest_ago_is_forgotten_first() -> None:
    encoder = AxisEncoder()
    texts = TextVectors(encoder, cache_size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        texts.encode([text], LIVE)
    assert encoder.texts == ["a", "b", "c", "b"]


def test_no_text_needs_no_encoder() -> None:
    assert TextVectors(None).encode([], LIVE) == {}


@pytest.mark.parametrize("encoder", [None, AxisEncoder()])
def test_texts_without_the_generations_encoder_are_a_problem(encoder: AxisEncoder | None) -> None:
    other = make_generation(encoder_id="other")
    with pytest.raises(EncoderNotLoaded, match=r"bundle of encoder other, .* is not loaded"):
        TextVectors(encoder).encode(["a"], other)
