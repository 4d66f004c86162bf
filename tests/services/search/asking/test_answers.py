import pytest

from services.search.asking.answers import language_warning


@pytest.mark.parametrize("language", ["en", "und"])
def test_english_and_undecided_texts_carry_no_warning(language: str) -> None:
    assert language_warning("text", language) is None
