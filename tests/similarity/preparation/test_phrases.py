"""Phrases: where a reader would pause, in any language, each at its place in the description."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similarity.preparation.phrases import MOST_PHRASES, MOST_WORDS, split_phrases

SAMPLE = Path(__file__).parents[3] / "data" / "sample" / "companies.jsonl"


def texts(description: str, *names: str) -> list[str]:
    return [phrase.text for phrase in split_phrases(description, names)]


def test_a_short_sentence_is_one_phrase_without_what_connects_it() -> None:
    assert texts("It also sells shoes and boots. In addition, the company repairs them.") == [
        "sells shoes and boots",
        "repairs them",
    ]


def test_a_full_stop_after_an_abbreviation_ends_no_sentence() -> None:
    assert texts("Sold to Boots Inc. by the family. Makes clogs since then.") == [
        "Sold to Boots Inc. by the family",
        "Makes clogs since then",
    ]


def test_a_long_sentence_is_cut_at_its_semicolon_first() -> None:
    assert texts(
        "It manages shopping arcades, offices, and homes for their owners and tenants; and builds roads, bridges, "
        "and tunnels for the public sector."
    ) == [
        "manages shopping arcades, offices, and homes for their owners and tenants",
        "builds roads, bridges, and tunnels for the public sector",
    ]


def test_a_long_sentence_is_cut_before_a_clause_rather_than_inside_a_list() -> None:
    assert texts(
        "The company offers plastic, wooden, and steel toys for small children, which are sold in shops, on "
        "markets, and by post in many parts of the country."
    ) == [
        "offers plastic, wooden, and steel toys for small children",
        "which are sold in shops, on markets, and by post in many parts of the country",
    ]


def test_a_list_of_places_stays_in_one_piece() -> None:
    assert texts(
        "The mill rolls steel and copper wire and sells its rolled products to builders in China, South Korea, "
        "Japan, the United States, and Taiwan."
    )[-1] == ("in China, South Korea, Japan, the United States, and Taiwan")


def test_an_own_name_at_the_start_or_end_is_left_out_and_elsewhere_stays() -> None:
    names = ("Acme Shoes, Inc.", "Acme, Inc.")
    description = "Acme Shoes, Inc., together with its subsidiaries, makes shoes and boots. Runners like Acme shoes."
    assert texts(description, *names) == ["makes shoes and boots", "Runners like Acme shoes"]
    assert texts("Acme, Inc. sells the Acme shoe.", *names) == ["sells the Acme shoe"]
    assert texts("Shoes and boots are made by Acme, Inc.", *names) == ["Shoes and boots are made"]
    assert texts("Acme’s brands include shoes and boots.", *names) == ["brands include shoes and boots"]


def test_a_text_that_only_repeats_a_name_is_split() -> None:
    assert split_phrases("中有限公司" * 1_200, ["中" * count for count in range(1, 100)])


def test_an_own_name_stays_where_too_little_would_be_left() -> None:
    assert texts("Acme makes shoes.", "Acme") == ["Acme makes shoes"]


@pytest.mark.parametrize(
    ("description", "phrases"),
    [
        (
            "株式会社サンプルは、自動車部品の製造・販売を行い、国内外の自動車メーカーに製品を供給しています。"
            "産業用ロボットの開発も行っています。",
            [
                "株式会社サンプルは、自動車部品の製造・販売を行い",
                "国内外の自動車メーカーに製品を供給しています",
                "産業用ロボットの開発も行っています",
            ],
        ),
        (
            "Компания производит и продаёт молочные продукты, сыры и детское питание в России, а также управляет "
            "сетью из двадцати ферм, которые поставляют сырьё на её заводы.",
            [
                "Компания производит и продаёт молочные продукты, сыры и детское питание в России",
                "а также управляет сетью из двадцати ферм, которые поставляют сырьё на её заводы",
            ],
        ),
    ],
)
def test_punctuation_decides_where_no_connecting_word_is_known(description: str, phrases: list[str]) -> None:
    assert texts(description) == phrases


@pytest.mark.parametrize("description", ["", "   ", "...", "; ; ;"])
def test_where_nothing_is_said_there_is_no_phrase(description: str) -> None:
    assert split_phrases(description) == ()


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("aB1 ,.;:-()“”\n\t、。社é•"), max_size=400), st.text(max_size=8))
def test_phrases_stand_where_they_say_in_order_and_never_overlap(description: str, name: str) -> None:
    position = 0
    for phrase in split_phrases(description, [name]):
        assert position <= phrase.start < phrase.end <= len(description)
        assert description[phrase.start : phrase.end] == phrase.text
        position = phrase.end


def test_the_phrases_of_real_descriptions_are_of_readable_length() -> None:
    lengths = [
        len(phrase.text.split())
        for line in SAMPLE.read_text().splitlines()
        for phrase in split_phrases(json.loads(line)["description"])
    ]
    assert sum(3 <= length <= MOST_WORDS for length in lengths) / len(lengths) > 0.95
    assert max(lengths) <= 2 * MOST_WORDS


@pytest.mark.parametrize(
    "part", ["a, ", "and ", " ", "(", "(a)", "In A B, ", "\n", "a. ", ";", "it '", " in A", "x", "公司、", " - "]
)
def test_hostile_text_is_split_into_few_phrases(part: str) -> None:
    # Where the time grows with the square of the length, each of these takes minutes.
    description = "word " + part * (200_000 // len(part)) + "end"
    assert len(split_phrases(description)) <= MOST_PHRASES
