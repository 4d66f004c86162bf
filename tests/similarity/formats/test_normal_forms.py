"""Normal forms are those of Unicode, in linear time."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from similarity.formats.normal_forms import MOST_MARKS, NormalForm, normalized


@given(st.text(), st.sampled_from(["NFC", "NFKC", "NFKD"]))
def test_an_ordinary_text_is_normalised_as_usual(text: str, form: NormalForm) -> None:
    assert normalized(form, text[:MOST_MARKS]) == unicodedata.normalize(form, text[:MOST_MARKS])
    assert normalized(form, "Société 半導体 " * 10) == unicodedata.normalize(form, "Société 半導体 " * 10)


def test_a_long_run_of_marks_is_cut() -> None:
    # Where the time grows with the square of the length, this takes a minute.
    assert len(normalized("NFC", "a" + "\u0315\u0300" * 200_000 + "b")) == MOST_MARKS + 1
