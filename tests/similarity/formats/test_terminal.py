import pytest

from similarity.formats.terminal import printable


@pytest.mark.parametrize("text", ["", "Acme & Söhne", "半導體", "a\u200db", "👩\u200d🔬"])
def test_text_of_any_language_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("character", ["\x1b", "\n", "\r", "\x00", "\x9b", "\x7f", "\u202e", "\u2066", "\ud800"])
def test_what_a_terminal_would_obey_or_cannot_show_is_replaced(character: str) -> None:
    assert printable(f"Acme{character}[31m") == "Acme\ufffd[31m"
