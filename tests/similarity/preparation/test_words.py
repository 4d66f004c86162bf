"""Words of names and texts, in bounded time."""

import time

import pytest

from similarity.preparation import words
from similarity.preparation.words import MAX_CONTENT_CHARACTERS, has_content, unaccented, words_of


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Société Łódź Ærø", "Societe Lodz AEro"),
        ("Acme™ Zero\u200bWidth", "Acme  ZeroWidth"),
        ("ＡＣＭＥ ﬁnance ᾳ", "ACME finance αι"),
        ("e\u0301\u00ad", "e"),
        ("하늘", "하늘"),
    ],
)
def test_a_plain_text_has_no_accents_and_no_invisible_characters(text: str, plain: str) -> None:
    assert unaccented(text) == plain


def test_a_text_of_characters_that_become_many_letters_is_split_in_time() -> None:
    started = time.process_time()
    assert len(words_of("\ufdfa" * 300_000)) < 200
    assert time.process_time() - started < 1  # where all are decomposed, 4 s


def test_the_content_of_a_long_text_is_in_its_first_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def recorded(text: str) -> list[str]:
        read.append(len(text))
        return words_of(text)

    monkeypatch.setattr(words, "words_of", recorded)
    assert has_content("Makes iron anvils. " + "\u3300" * 200_000)
    assert read == [MAX_CONTENT_CHARACTERS]
    assert not has_content("the " * MAX_CONTENT_CHARACTERS + "makes iron anvils")
