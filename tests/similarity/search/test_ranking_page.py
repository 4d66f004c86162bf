"""Pages of one ranking: in order, nobody twice, nobody left out, and no more asked of the index than is needed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import EmbeddedCompany
from similarity.model.calibration import Calibration
from similarity.search.duplicates import merge_duplicates
from similarity.search.ranking_page import (
    MAX_HYBRID_RANK,
    MAX_RANK,
    Page,
    PageBuilder,
    PageRequest,
    Position,
    RankedHit,
)
from tests.factories import make_embedded, make_generation, unit_vector
from tests.services.search.listed_index import ListedIndex, as_index

LIVE = make_generation(calibration=Calibration(slope=4.0, intercept=0.0))
NORTH = unit_vector(1)


def wanted(k: int, **fields: object) -> PageRequest:
    return replace(PageRequest(generation=LIVE, vector=NORTH, k=k), **fields)  # type: ignore[arg-type]  # any of its fields


def page(index: ListedIndex, question: PageRequest) -> Page:
    return PageBuilder(as_index(index), question).page()


def position_of(last: RankedHit) -> Position:
    return Position(generation="first", digest="", score=last.hit.score, id=last.hit.company.id, rank=last.rank)


def all_pages(index: ListedIndex, question: PageRequest) -> list[Page]:
    pages = [page(index, question)]
    while pages[-1].has_next:
        pages.append(page(index, replace(question, after=position_of(pages[-1].hits[-1]))))
    return pages


def ids(hits: list[RankedHit]) -> list[str]:
    return [each.hit.company.id for each in hits]


def documents(count: int) -> list[EmbeddedCompany]:
    return [make_embedded(f"c{number:04}") for number in range(count)]


# Few distinct vectors, so that scores tie; few domains, so that some are duplicates.
corpora = st.lists(
    st.builds(
        lambda number, seed, domain: make_embedded(f"c{number:03}", vector=unit_vector(seed), domain=domain),
        st.integers(0, 999),
        st.integers(1, 12),
        st.sampled_from(["", "", "", "a.com", "b.com", "boots.com"]),
    ),
    max_size=40,
    unique_by=lambda each: each.id,
)


@given(
    corpora,
    st.integers(1, 9),
    st.sampled_from(["", "shoes"]),
    st.none() | st.sampled_from([0.2, 0.5, 0.8]),
    st.booleans(),
)
def test_pages_show_every_distinct_hit_once_and_in_order(
    corpus: list[EmbeddedCompany], k: int, words: str, least: float | None, several: bool
) -> None:
    index = ListedIndex(corpus)
    anchor_vectors = [NORTH, unit_vector(2)] if several else []
    question = wanted(k, words=words, min_probability=least, anchor_vectors=anchor_vectors)
    pages = all_pages(index, question)
    shown = [hit for each in pages for hit in each.hits]
    everything = page(ListedIndex(corpus), replace(question, k=250)).hits
    assert ids(shown) == ids(everything)
    assert [hit.rank for hit in shown] == list(range(1, len(shown) + 1))
    assert all(len(each.hits) == k for each in pages[:-1])
    if least is None:
        hits = index.similar("first", NORTH, k=len(corpus) + 1, words=words).hits
        assert ids(shown) == [each.hit.company.id for each in merge_duplicates(hits).unique]
    else:
        assert all(hit.probability is not None and hit.probability >= least for hit in shown)


@given(corpora, st.integers(1, 9), st.data())
def test_excluded_companies_never_appear_not_even_as_duplicates(
    corpus: list[EmbeddedCompany], k: int, data: st.DataObject
) -> None:
    exclude = frozenset(data.draw(st.lists(st.sampled_from([each.id for each in corpus] or ["none"]))))
    shown = [hit for each in all_pages(ListedIndex(corpus), wanted(k, excluded_ids=exclude)) for hit in each.hits]
    listed = {*ids(shown), *(each for hit in shown for each in hit.duplicates)}
    assert not listed & exclude
    [whole] = all_pages(ListedIndex(corpus), wanted(250, excluded_ids=exclude))
    assert {*ids(whole.hits), *(each for hit in whole.hits for each in hit.duplicates)} == (
        {each.id for each in corpus} - exclude
    )


def test_a_plain_question_asks_the_index_once_and_for_little_more_than_it_shows() -> None:
    index = ListedIndex(documents(100))
    assert len(page(index, wanted(10)).hits) == 10
    assert (index.asked, index.got) == ([16], [])


def test_where_many_are_folded_more_are_asked_for() -> None:
    same = [make_embedded(f"a{number:03}", vector=NORTH, domain="acme.com") for number in range(60)]
    found = page(ListedIndex([*same, *documents(20)]), wanted(10))
    assert len(found.hits) == 10
    assert len(found.hits[0].duplicates) == 59


def test_no_probable_hit_is_missed_behind_improbable_ones() -> None:
    """Of several anchors the nearest decides, so the order of scores is not that of probabilities."""
    far, near = unit_vector(2), unit_vector(3)
    corpus = [*documents(300), make_embedded("last", vector=near)]
    index = ListedIndex(corpus)
    found = page(index, wanted(5, anchor_vectors=[far, near], min_probability=0.98))
    assert "last" in ids(found.hits)


def test_improbable_hits_end_the_search_where_none_can_follow() -> None:
    index = ListedIndex(documents(900))
    found = page(index, wanted(10, min_probability=0.97))
    assert not found.has_next
    assert len(index.asked) == 1


def test_the_probability_is_that_of_the_nearest_anchor() -> None:
    one, other = unit_vector(5), unit_vector(6)
    middle = (one + other) / np.linalg.norm(one + other)
    index = ListedIndex([make_embedded("hit", vector=other)])
    [hit] = page(index, wanted(1, vector=middle.astype(np.float32), anchor_vectors=[one, other])).hits
    assert hit.hit.score < 0.9
    assert hit.probability == pytest.approx(1 / (1 + np.exp(-4.0)), abs=1e-4)


def test_without_a_calibration_no_vector_is_read() -> None:
    index = ListedIndex(documents(5))
    plain = replace(LIVE, calibration=None)
    found = page(index, wanted(5, generation=plain, anchor_vectors=[unit_vector(5), NORTH]))
    assert {hit.probability for hit in found.hits} == {None}
    assert index.got == []


def test_a_company_that_is_deleted_meanwhile_has_no_probability() -> None:
    class Forgetting(ListedIndex):
        def get(self, generation: str, ids: object) -> dict[str, EmbeddedCompany]:
            return {}

    found = page(Forgetting(documents(2)), wanted(5, anchor_vectors=[unit_vector(5), NORTH]))
    assert [hit.probability for hit in found.hits] == [None, None]


@pytest.mark.parametrize(("words", "depth"), [("", MAX_RANK), ("shoes", MAX_HYBRID_RANK)])
def test_a_ranking_ends_at_its_depth(words: str, depth: int) -> None:
    pages = all_pages(ListedIndex(documents(depth + 300)), wanted(240, words=words))
    assert sum(len(each.hits) for each in pages) == depth


def test_a_hit_that_vanishes_between_two_pages_moves_nobody() -> None:
    index = ListedIndex(documents(30))
    everything = ids(page(index, wanted(30)).hits)
    first = page(index, wanted(5))
    del index.documents[everything[4]]
    del index.documents[everything[2]]
    second = page(index, wanted(5, after=position_of(first.hits[-1])))
    assert ids(second.hits) == everything[5:10]
    assert [hit.rank for hit in second.hits] == [6, 7, 8, 9, 10]
