"""Normal forms are those of Unicode, in linear time."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.formats.normal_forms import (
    LONG_LIGATURES,
    MOST_LIGATURES,
    MOST_MARKS,
    NormalForm,
    normalized,
    without_marks,
)

LONG_CODES = set(map(ord, LONG_LIGATURES))


@given(st.text(), st.sampled_from(["NFC", "NFKC", "NFKD"]))
def test_an_ordinary_text_is_normalised_as_usual(text: str, form: NormalForm) -> None:
    assert normalized(form, text[:MOST_MARKS]) == unicodedata.normalize(form, text[:MOST_MARKS])
    assert normalized(form, "Société 半導体 " * 10) == unicodedata.normalize(form, "Société 半導体 " * 10)


def test_a_long_run_of_marks_is_cut() -> None:
    # Where the time grows with the square of the length, this takes a minute.
    assert len(normalized("NFC", "a" + "\u0315\u0300" * 200_000 + "b")) == MOST_MARKS + 1


@pytest.mark.parametrize("form", ["NFKC", "NFKD"])
@pytest.mark.parametrize("ligature", LONG_LIGATURES)
def test_only_some_ligatures_that_become_many_letters_are_decomposed(form: NormalForm, ligature: str) -> None:
    few, many = ligature * MOST_LIGATURES, ligature * 200_000
    assert normalized(form, f"{few} a") == unicodedata.normalize(form, f"{few} a")
    assert len(normalized(form, many)) < 201_000
    assert normalized("NFC", many) == many


def test_no_other_character_becomes_more_than_seven() -> None:
    longest = max(len(unicodedata.normalize("NFKD", chr(code))) for code in set(range(0x20000)) - LONG_CODES)
    assert longest == 7


@given(st.text())
def test_marks_are_left_out(text: str) -> None:
    assert without_marks(text) == "".join(each for each in text if not unicodedata.combining(each))
