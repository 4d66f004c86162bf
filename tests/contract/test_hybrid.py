"""Hybrid search. What BM25 gives beyond "one that matches comes before one that does not" differs between stores."""

from typing import Any

import numpy as np
import pytest

from similarity.company import DeletedCompany, EmbeddedCompany, Vector
from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter
from similarity.index.fusion import DEPTH, fuse
from similarity.index.protocol import CompanyIndex
from tests.contract.steps import add_candidate, found
from tests.contract.test_words import AWKWARD
from tests.factories import make_embedded, unit_vector

NEAR = 150  # more than each ranking is read deep
FRENCH = [FieldFilter(field="country", any_of=("fr",))]


def direction(angle: float) -> Vector:
    """A unit vector whose cosine to `direction(0)` is that of the angle in degrees."""
    radians = np.deg2rad(angle)
    return np.array([np.cos(radians), np.sin(radians), 0, 0, 0, 0, 0, 0], dtype=np.float32)


QUERY = direction(0)


def near(number: int) -> EmbeddedCompany:
    """The companies from n000 on, nearest first; every other one is French."""
    country = "FR" if number % 2 else "DE"
    angle = 10 + number / 4
    return make_embedded(f"n{number:03}", description="Sells goods.", vector=direction(angle), country=country)


def far(company_id: str = "far", /, **fields: Any) -> EmbeddedCompany:
    """A company further away than all of them."""
    words: dict[str, Any] = {"description": "Runs an aerial ropeway.", "country": "FR"}
    return make_embedded(company_id, vector=direction(120), **(words | fields))


@pytest.fixture
def towns(index: CompanyIndex, live: str) -> str:
    index.upsert(live, [*(near(number) for number in range(NEAR)), far()])
    return live


NEAR_IDS = [f"n{number:03}" for number in range(NEAR)]


def test_a_far_company_is_found_by_a_word_that_no_other_has(index: CompanyIndex, towns: str) -> None:
    assert "far" not in found(index.similar(towns, QUERY, k=DEPTH))
    for text in ("ropeway", "ROPEWAY", "A ropeway, or what?", "cars ropeway trains"):
        assert found(index.similar(towns, QUERY, k=20, words=text)) == fuse([NEAR_IDS[:DEPTH], ["far"]])[:20]


@pytest.mark.parametrize("fields", [{"name": "Xylograph Inc."}, {"aliases": ("The Xylograph",)}])
def test_names_and_aliases_are_looked_into(index: CompanyIndex, towns: str, fields: dict[str, Any]) -> None:
    index.upsert(towns, [far("named", **fields)])
    assert "named" in found(index.similar(towns, QUERY, k=2, words="xylograph"))


def test_a_company_that_both_rankings_name_comes_first(index: CompanyIndex, towns: str) -> None:
    index.upsert(towns, [make_embedded("n005", version=4, description="Ropeway maker.", vector=near(5).vector)])
    assert found(index.similar(towns, QUERY, k=1, words="ropeway")) == ["n005"]


def test_more_words_that_match_rank_higher(index: CompanyIndex, towns: str) -> None:
    index.upsert(
        towns,
        [
            far("one", description="Makes zithers and other things for all."),
            far("three", description="Makes zithers, yurts and quipus for all."),
        ],
    )
    hits = found(index.similar(towns, QUERY, k=10, words="quipus yurts zithers"))
    assert hits.index("three") < hits.index("one")


def test_the_scores_are_exact_cosines_whatever_the_order(index: CompanyIndex, towns: str) -> None:
    documents = {document.id: document for document in (*map(near, range(NEAR)), far())}
    hits = index.similar(towns, QUERY, k=10, words="ropeway").hits
    expected = [float(documents[hit.company.id].vector @ QUERY.astype(np.float64)) for hit in hits]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-4)
    assert [hit.company for hit in hits] == [documents[hit.company.id].company for hit in hits]
    assert min(hit.score for hit in hits) == pytest.approx(-0.5, abs=1e-4)


def test_filters_hold_for_both_rankings(index: CompanyIndex, towns: str) -> None:
    index.upsert(towns, [far("german", country="DE")])
    hits = index.similar(towns, QUERY, k=200, filters=FRENCH, words="ropeway").hits
    assert sorted(hit.company.id for hit in hits) == sorted(["far", *NEAR_IDS[1::2]])
    others = [FieldFilter(field="country", none_of=("fr",))]
    assert found(index.similar(towns, QUERY, k=2, filters=others, words="ropeway")) == ["german", "n000"]
    both = [*FRENCH, FieldFilter(field="country", none_of=("fr",))]
    assert index.similar(towns, QUERY, k=2, filters=both, words="ropeway").hits == ()


def test_excluded_companies_are_in_neither_ranking(index: CompanyIndex, towns: str) -> None:
    index.upsert(towns, [far("further")])
    excluded = {"far", "n000", "unknown", "no id!"}
    assert sorted(found(index.similar(towns, QUERY, k=2, exclude=excluded, words="ropeway"))) == ["further", "n001"]
    assert index.similar(towns, QUERY, k=5, exclude=[*NEAR_IDS, "far", "further"], words="ropeway").hits == ()


def test_words_that_match_nothing_leave_the_order_of_the_vectors(index: CompanyIndex, towns: str) -> None:
    assert found(index.similar(towns, QUERY, k=20, words="submarine")) == NEAR_IDS[:20]


@pytest.mark.parametrize("text", ["", " ", "\0", '"', "?! -- ()", "🚀🚀"])
def test_a_text_without_words_leaves_the_order_of_the_vectors(index: CompanyIndex, towns: str, text: str) -> None:
    assert found(index.similar(towns, QUERY, k=20, words=text)) == NEAR_IDS[:20]


def test_as_many_as_are_asked_for_come_even_below_the_usual_depth(index: CompanyIndex, towns: str) -> None:
    assert found(index.similar(towns, QUERY, k=140, words="ropeway")) == fuse([NEAR_IDS[:140], ["far"]])[:140]
    assert sorted(found(index.similar(towns, QUERY, k=1000, words="ropeway goods"))) == sorted(["far", *NEAR_IDS])


def test_any_text_is_a_hybrid_query(index: CompanyIndex, live: str) -> None:
    ids = ["a", "b", "c"]
    index.upsert(live, [make_embedded(company_id) for company_id in ids])
    for text in (*AWKWARD, "only makes things " * 278, " ".join(f"word{number}" for number in range(700))):
        hits = index.similar(live, QUERY, k=5, words=text).hits
        assert sorted(hit.company.id for hit in hits) == ids, f"with {text[:50]!r}"


def test_accents_and_letters_that_have_no_capital_are_found(index: CompanyIndex, towns: str) -> None:
    words = {"straße": "Baut die Straße.", "café": "Un café noir.", "हिन्दी": "हिन्दी पुस्तकें", "ödeme": "Ödeme sistemi"}
    index.upsert(towns, [far(f"far{number}", description=text) for number, text in enumerate(words.values())])
    for number, word in enumerate(words):
        assert f"far{number}" in found(index.similar(towns, QUERY, k=2, words=word)), word
    assert "far1" in found(index.similar(towns, QUERY, k=2, words="CAFE\u0301"))


def test_reworded_and_deleted_companies_are_not_found_by_their_old_words(index: CompanyIndex, towns: str) -> None:
    index.upsert(towns, [far("gone"), make_embedded("far", version=4, vector=direction(120))])
    index.upsert(towns, [DeletedCompany(id="gone", version=5)])
    assert found(index.similar(towns, QUERY, k=20, words="ropeway")) == NEAR_IDS[:20]


def test_words_of_another_generation_do_not_count(index: CompanyIndex, towns: str) -> None:
    index.upsert(add_candidate(index, "second"), [far("elsewhere", description="Makes zithers.")])
    assert found(index.similar(towns, QUERY, k=20, words="zithers")) == NEAR_IDS[:20]
    assert found(index.similar("second", QUERY, k=20, words="ropeway zithers")) == ["elsewhere"]


def test_words_do_not_excuse_an_unusable_question(index: CompanyIndex, towns: str) -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        index.similar(towns, QUERY, k=0, words="ropeway")
    with pytest.raises(InvalidInput, match="vector"):
        index.similar(towns, unit_vector(1, 7), k=1, words="ropeway")
