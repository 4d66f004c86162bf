"""Reasons: a phrase weighs what the cosine loses without it, which anybody can repeat."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from similarity.bundle import ModelBundle, seed_folder
from similarity.company import Company
from similarity.encoder import TextEncoder
from similarity.preparation.phrases import MOST_PHRASES
from similarity.search.explanations.explanation import (
    MAX_PHRASES_PER_SIDE,
    Described,
    ExplainingPhrase,
    SharedFact,
    Side,
    encode_occlusions,
    explaining_phrases,
    facts_of,
    occlusion_texts,
    shared_facts,
)
from similarity.text import CHARACTERS_PREPARED, TextSettings, embedding_text
from tests.factories import make_company
from tests.word_encoder import WordEncoder

SAMPLE = Path(__file__).parents[4] / "data" / "sample" / "companies.jsonl"
# The shipped encoder's activation scales are static: a text's vector does not depend on its batch-mates.
SAME = 1e-5


def explained(
    encoder: WordEncoder | TextEncoder, anchors: list[Described], hit: Described
) -> tuple[ExplainingPhrase, ...]:
    subjects = [occlusion_texts(each, encoder.text_settings) for each in (*anchors, hit)]
    *of_anchors, of_hit = encode_occlusions(subjects, encoder.encode)
    return explaining_phrases(of_anchors, of_hit)


def told(phrases: tuple[ExplainingPhrase, ...]) -> list[tuple[str, str, float]]:
    return [(phrase.of.value, phrase.text, round(phrase.weight, 3)) for phrase in phrases]


def test_a_phrase_weighs_what_the_cosine_loses_without_it() -> None:
    encoder = WordEncoder("shoes", "boats")
    anchor = make_company("anchor", description="They sell shoes. They rent out boats.")
    hit = make_company("hit", description="They like old shoes. They drink cold milk.")
    # Cosine .707. Anchor without shoes: 0; without boats: 1. Hit without shoes: 0; without milk: .707.
    assert told(explained(encoder, [anchor], hit)) == [
        ("anchor", "sell shoes", 0.707),
        ("hit", "like old shoes", 0.707),
    ]


def test_a_phrase_stands_where_it_says() -> None:
    anchor = make_company("anchor", description="They rent out boats. They sell shoes.")
    hit = make_company("hit", description="Nothing else matters. It also repairs shoes.")
    for phrase in explained(WordEncoder("shoes", "boats"), [anchor], hit):
        description = anchor.description if phrase.of is Side.ANCHOR else hit.description
        assert description[phrase.start : phrase.end] == phrase.text


def test_a_hit_is_explained_against_its_nearest_anchor() -> None:
    encoder = WordEncoder("shoes", "boats")
    anchors: list[Described] = [make_company(description="They rent out boats."), "They sell many shoes."]
    phrases = explained(encoder, anchors, make_company("hit", description="They repair old shoes."))
    assert {phrase.anchor for phrase in phrases} == {1}
    assert phrases[0].of is Side.ANCHOR
    assert phrases[0].text == "sell many shoes"


def test_at_most_three_phrases_of_a_side_are_kept_the_best_pair_and_then_the_strongest() -> None:
    encoder = WordEncoder("shoes", "boots", "clogs", "socks", "hats")
    sentences = ("They sell shoes", "They sell boots", "They sell clogs", "They sell socks and socks")
    anchor = make_company("anchor", description=". ".join(sentences) + ".")
    hit = make_company("hit", description="Shoes, boots, clogs and socks with hats.")
    phrases = [phrase for phrase in explained(encoder, [anchor], hit) if phrase.of is Side.ANCHOR]
    assert len(phrases) == MAX_PHRASES_PER_SIDE
    others = [phrase.weight for phrase in phrases[1:]]
    assert phrases[0].text == "sell socks and socks"
    assert others == sorted(others, reverse=True)


def test_both_sides_are_shown_even_where_no_phrase_carries_the_match_alone() -> None:
    encoder = WordEncoder("shoes", "boats")
    anchor = make_company("anchor", description="They sell shoes. They repair shoes.")
    hit = make_company("hit", description="They make shoes. They build boats.")
    assert told(explained(encoder, [anchor], hit))[:2] == [("hit", "make shoes", 0.707), ("anchor", "sell shoes", 0.0)]


@pytest.mark.parametrize(
    ("description", "phrase"),
    [
        ("They were bought by a maker of shoes. They sell shoes. They rent out boats.", "sell shoes"),
        ("They think Acme shoes last. They sell shoes. They rent out boats.", "sell shoes"),
        ("They sell costly shoes. They rent out boats. They repair shoes.", "repair shoes"),
        ("They sell costly and cheap shoes. They repair shoes.", "sell costly and cheap shoes"),
    ],
)
def test_history_own_names_and_contradictions_give_way_to_another_phrase(description: str, phrase: str) -> None:
    hit = make_company("hit", name="Acme", description=description)
    first = next(
        each
        for each in explained(WordEncoder("shoes", "boats"), ["They make cheap shoes."], hit)
        if each.of is Side.HIT
    )
    assert first.text == phrase


def test_a_phrase_that_preparation_drops_carries_nothing_and_costs_nothing() -> None:
    company = make_company(description="They sell shoes. The company was founded in 1950 and is based in Bern.")
    texts = occlusion_texts(company, WordEncoder.text_settings)
    assert texts.without[1] == texts.full == "They sell shoes."
    assert len(texts.distinct()) == 3
    encoder = WordEncoder("shoes", "bern")
    assert [phrase.text for phrase in explained(encoder, ["shoes in Bern"], company) if phrase.of is Side.HIT] == [
        "sell shoes"
    ]


def test_a_long_description_is_prepared_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []

    def counting(company: Company, settings: TextSettings) -> str:
        prepared.append(company)
        return embedding_text(company, settings)

    monkeypatch.setattr("similarity.search.explanations.explanation.embedding_text", counting)
    texts = occlusion_texts(make_company(description="They do it all. " * 300), WordEncoder.text_settings)
    assert len(texts.phrases) == MOST_PHRASES
    assert len(prepared) <= 1 + 2 * MOST_PHRASES


def test_of_a_very_long_description_no_more_is_prepared_than_preparation_reads() -> None:
    description = "The company was founded in 1950 by Ada Byron. They sell shoes. " + "They do it all. " * 700
    texts = occlusion_texts(make_company(description=description), WordEncoder.text_settings)
    assert max(map(len, texts.distinct())) <= CHARACTERS_PREPARED
    # Without a phrase no more of the end is read than with it, or a sentence that preparation drops would seem read.
    assert texts.without[0] == texts.full
    assert texts == occlusion_texts(
        make_company(description=description[:CHARACTERS_PREPARED]), WordEncoder.text_settings
    )


@pytest.mark.parametrize(
    "beginning", ["They sell shoes.\n\n" * 700, "The company was founded in 1950 by Ada Byron. " * 250]
)
def test_what_preparation_reads_of_a_very_long_description_is_explained(beginning: str) -> None:
    company = make_company(description=f"{beginning}They rent out boats.")
    texts = occlusion_texts(company, WordEncoder.text_settings)
    assert texts.full == embedding_text(company, WordEncoder.text_settings)


def test_very_long_free_words_are_encoded_as_they_are() -> None:
    text = "They sell shoes. " * (CHARACTERS_PREPARED // 10)
    assert occlusion_texts(text, WordEncoder.text_settings).full == text


def test_a_description_of_one_phrase_is_carried_by_all_of_it() -> None:
    phrases = explained(WordEncoder("shoes"), ["sells shoes"], make_company(description="Sells shoes!"))
    assert told(phrases) == [("anchor", "sells shoes", 1.0), ("hit", "Sells shoes", 1.0)]


def test_free_words_are_encoded_as_they_are() -> None:
    text = "The company was founded in 1950. It sells shoes."
    texts = occlusion_texts(text, WordEncoder.text_settings)
    assert texts.full == text
    assert texts.without == ("The company . It sells shoes.", "The company was founded in 1950. It .")


def test_every_distinct_text_is_encoded_once_and_all_in_one_call() -> None:
    encoder = WordEncoder("shoes")
    company = make_company(description="They sell shoes. They rent out boats.")
    subjects = [occlusion_texts(company, encoder.text_settings)] * 2
    encode_occlusions(subjects, encoder.encode)
    (texts,) = encoder.calls
    assert len(texts) == len(set(texts)) == 5


def test_without_a_subject_nothing_is_encoded() -> None:
    encoder = WordEncoder("shoes")
    assert encode_occlusions([], encoder.encode) == []
    assert encoder.calls == []


def test_shared_facts_are_those_that_the_hit_has_in_common_with_any_anchor() -> None:
    first = make_company("first", country="Deutschland", tags=("Cargo", "Sea"), attributes={"listed": True, "size": 3})
    second = make_company("second", country="France", industry="Shipping")
    hit = make_company(
        "hit",
        country="Germany",
        industry="shipping",
        tags=("sea", "air", "cargo"),
        attributes={"listed": True, "size": 4},
    )
    assert shared_facts(facts_of([first, "free words", second]), hit) == (
        SharedFact(field="country", values=("Germany",)),
        SharedFact(field="industry", values=("shipping",)),
        SharedFact(field="tags", values=("sea", "cargo")),
        SharedFact(field="attributes.listed", values=("true",)),
    )


def test_what_is_unknown_of_both_is_not_shared() -> None:
    assert shared_facts(facts_of([make_company("anchor")]), make_company("hit")) == ()


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return TextEncoder(ModelBundle.load(seed_folder()), threads=1)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Company, Company]]:
    """Competitors: two companies of one group of the sample, for six groups."""
    groups: dict[str, list[Company]] = {}
    for record in map(json.loads, SAMPLE.read_text().splitlines()):
        groups.setdefault(record["group"], []).append(
            make_company(
                record["id"],
                name=record["name"],
                aliases=tuple(record["aliases"]),
                description=record["description"],
            )
        )
    chosen = random.Random(7).sample(sorted(groups), 6)
    return [(groups[group][0], groups[group][1]) for group in chosen]


def cosine(encoder: TextEncoder, anchor: Described, hit: Company) -> float:
    """Of the two descriptions as they are, each encoded on its own."""
    texts = [each if isinstance(each, str) else embedding_text(each, encoder.text_settings) for each in (anchor, hit)]
    vectors = np.concatenate([encoder.encode([text]) for text in texts])
    return float(vectors[0] @ vectors[1])


def without(described: Described, start: int, end: int) -> Described:
    if isinstance(described, str):
        return described[:start] + described[end:]
    return replace(described, description=described.description[:start] + described.description[end:])


def drop(encoder: TextEncoder, anchor: Described, hit: Company, phrase: ExplainingPhrase) -> float:
    """How far the cosine falls when the phrase is deleted by hand."""
    if phrase.of is Side.ANCHOR:
        rest = cosine(encoder, without(anchor, phrase.start, phrase.end), hit)
    else:
        changed = without(hit, phrase.start, phrase.end)
        assert isinstance(changed, Company)
        rest = cosine(encoder, anchor, changed)
    return cosine(encoder, anchor, hit) - rest


def test_deleting_a_shown_phrase_by_hand_costs_what_it_says(
    encoder: TextEncoder, pairs: list[tuple[Company, Company]]
) -> None:
    for anchor, hit in pairs:
        shown = explained(encoder, [anchor], hit)
        assert shown
        for phrase in shown:
            assert drop(encoder, anchor, hit, phrase) == pytest.approx(phrase.weight, abs=SAME)
