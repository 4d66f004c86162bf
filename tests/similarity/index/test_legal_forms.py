"""Names with the legal forms of the world: what an erasure finds in texts, and what it leaves alone."""

from collections.abc import Sequence

import pytest

from similarity.preparation import legal_forms
from similarity.preparation.legal_forms import COMMON_WORDS, without_legal_forms
from similarity.preparation.masking import ORDINARY_WORDS
from tests.similarity.index.legal_form_cases import FOUND, NOT_FOUND
from tests.workspace_records import make_names


@pytest.mark.parametrize(("jurisdiction", "name", "text"), FOUND)
def test_a_name_is_found_without_its_legal_form(jurisdiction: str, name: str, text: str) -> None:
    assert make_names("c-17", name).contained_in(text), jurisdiction


@pytest.mark.parametrize(("name", "text"), NOT_FOUND)
def test_a_text_that_does_not_name_the_company_is_left_alone(name: str, text: str) -> None:
    assert not make_names("c-17", name).contained_in(text)


@pytest.mark.parametrize(("jurisdiction", "name", "text"), FOUND)
def test_a_name_is_found_as_it_is_written(jurisdiction: str, name: str, text: str) -> None:
    assert make_names("c-17", name).contained_in(f"see {name}, and others"), (jurisdiction, text)


@pytest.mark.parametrize("name", ["UAB", "Limited", "AB", "株式会社", "", "!!!", "S.A."])
def test_a_name_that_is_a_legal_form_or_holds_no_word_keeps_a_word(name: str) -> None:
    assert without_legal_forms(name)[:1] == name[:1]


def test_a_long_name_of_legal_forms_is_handled_quickly() -> None:
    assert without_legal_forms("Zorvik " + "Sp. z o.o. " * 2000) == "Zorvik"


def test_common_words_are_no_ordinary_words_already() -> None:
    assert not COMMON_WORDS & ORDINARY_WORDS


def test_each_word_of_a_long_name_is_joined_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []

    def recorded(words: Sequence[str]) -> str:
        joined.append(len(words))
        return "".join(words).casefold()

    monkeypatch.setattr(legal_forms, "_letters", recorded)
    assert without_legal_forms("有限公司" * 120 + "阿里") == "阿里"
    assert sum(joined) < 10_000  # 98,000 where each number of words at the beginning is joined
