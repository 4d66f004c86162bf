"""Features of pairs: what each one counts, and what it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import Company
from similarity.index.attributes import AttributeSchema, AttributeType
from similarity.preparation.words import MAX_CONTENT_CHARACTERS
from similarity.search.reranking.pair_features import (
    LARGER,
    OTHER_LANGUAGE_WORDS,
    UNKNOWN,
    DistinctWords,
    Floats,
    PairFeatures,
    company_features,
    pair_features,
    shared_words,
)
from tests.factories import make_company

SIZES = AttributeSchema({"cap": AttributeType(("small", "mid", "large")), "staff": AttributeType()}, "cap")
NOTHING = make_company("nothing", description="---")


def features(anchor: Company | str, *candidates: Company) -> PairFeatures:
    cosines = np.full(len(candidates), 0.5)
    companies = [company_features(each, SIZES) for each in candidates]
    return pair_features(company_features(anchor, SIZES), companies, cosines, neighbour_cosines=[0.5])


def overlap(anchor: Company | str, candidates: list[Company]) -> Floats:
    others = [company_features(each, SIZES).words for each in candidates]
    return shared_words(company_features(anchor, SIZES).words, others)


def described(text: str, **fields: object) -> Company:
    return make_company("c", description=text, **fields)


def test_cached_words_have_a_limit_in_bytes() -> None:
    words = DistinctWords(cache_bytes=10_000)
    text = " ".join(f"{first}{second}x" for first in "abcdefghij" for second in "abcdefghij")
    assert words(text, "") is words(text, "")
    for number in range(20):
        words(text, f"name {number}")
    assert 5_000 < words.cached_bytes <= 10_000
    words(text * 100 + "半導体" * 5_000, "")
    words.clear()
    assert words.cached_bytes == 0


def test_the_words_at_the_end_of_a_very_long_text_do_not_count() -> None:
    text = f"{'sells ' * (MAX_CONTENT_CHARACTERS // 6)}anvils"
    assert overlap(described("anvils"), [described(text)])[0] == 0
    assert overlap(described("anvils"), [described(text[12:])])[0] > 0


def test_words_that_all_candidates_have_tell_none_apart() -> None:
    anchor = described("makes wooden anvils")
    same, other = described("makes wooden anvils"), described("makes iron hammers")
    found = overlap(anchor, [same, other])
    assert found[0] > 0.9 > 0.2 > found[1] > 0


def test_the_words_of_a_companys_own_names_do_not_count() -> None:
    anchor = described("Volvo sells lorries", name="Volvo")
    assert overlap(anchor, [described("Volvo sells nothing else", name="AB Volvo")])[0] > 0
    assert overlap(described("Volvo", name="Volvo"), [described("Volvo", name="x")])[0] == 0


def test_chinese_texts_share_words_too() -> None:
    near, far = described("半導体製造装置の販売"), described("靴の小売")
    found = overlap("半導体製造装置を開発", [near, far])
    assert found[0] > found[1]


@pytest.mark.parametrize(
    ("own", "others", "foreign"), [("de", "en", True), ("en", "en", False), ("und", "en", False), ("de", "und", False)]
)
def test_the_words_of_another_language_tell_nothing(own: str, others: str, foreign: bool) -> None:
    anchor = company_features("Bier und Wein", SIZES, own)
    hits = [company_features(described(text), SIZES, others) for text in ("Bier", "anvils")]
    found = pair_features(anchor, hits, np.ones(2), neighbour_cosines=[0.5]).shared_words
    assert (found.tolist() == [OTHER_LANGUAGE_WORDS] * 2) is foreign


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=40))
def test_shares_of_words_lie_between_0_and_1(texts: list[str], anchor: str) -> None:
    candidates = [make_company("c", description=f"x{text}".replace("\0", "")) for text in texts]
    found = overlap(anchor, candidates)
    assert found.shape == (len(texts),)
    assert ((found >= 0) & (found <= 1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        ({"industry": "Retail"}, {"industry": "retail"}, 1.0),
        ({"industry": "Retail"}, {"industry": "Banking"}, 0.0),
        ({"industry": "Retail"}, {}, UNKNOWN),
        # The finest level that both have decides.
        (
            {"industry": "Retail", "attributes": {"industry_fine": "Shoes"}},
            {"industry": "Retail", "attributes": {"industry_fine": "Food"}},
            0.0,
        ),
        ({"industry": "Retail", "attributes": {"industry_fine": "Shoes"}}, {"industry": "Retail"}, 1.0),
    ],
)
def test_the_finest_industry_that_both_have_is_compared(
    here: dict[str, object], there: dict[str, object], expected: float
) -> None:
    assert features(described("a", **here), described("b", **there)).same_industry.tolist() == [expected]


def test_sizes_are_compared_in_steps() -> None:
    anchor = described("a", attributes={"cap": "mid"})
    caps = ["small", "mid", "large", None]
    found = features(anchor, *(described("b", attributes={"cap": cap} if cap else {}) for cap in caps))
    assert found.size_gap.tolist() == [1.0, 0.0, LARGER, 0.0]
    assert found.size_unknown.tolist() == [0.0, 0.0, 0.0, 1.0]
    unknown = features(described("a"), described("b", attributes={"cap": "mid"}))
    assert (unknown.size_gap.tolist(), unknown.size_unknown.tolist()) == ([0.0], [0.0])


def test_spellings_of_a_country_are_one_country() -> None:
    hits = [described("b", country=country) for country in ("USA", "U.S.", "united states", "France", "")]
    assert features(described("a", country="United States"), *hits).same_country.tolist() == [1, 1, 1, 0, 0]


def test_a_free_text_has_no_facts() -> None:
    found = features("makes anvils", described("b", country="Sweden", industry="Tools", attributes={"cap": "mid"}))
    assert found.same_country.tolist() == [0.0]
    assert found.same_industry.tolist() == [UNKNOWN]
    assert found.size_gap.tolist() == [0.0]


def test_companies_without_words_share_none() -> None:
    assert overlap(NOTHING, [NOTHING]).tolist() == [0.0]
    assert overlap(NOTHING, []).tolist() == []
