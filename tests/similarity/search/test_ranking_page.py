"""Pages of one ranking: in order, nobody twice, nobody left out, and no more asked of the index than is needed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import Company, EmbeddedCompany, Vector
from similarity.index.attributes import AttributeSchema, AttributeType
from similarity.model.calibration import Calibration
from similarity.model.ranker import ComparableWeights, Ranker
from similarity.search.duplicates import Identity
from similarity.search.ranking_page import (
    MAX_RANK,
    Page,
    PageBuilder,
    PageRequest,
    Position,
    RankedHit,
)
from similarity.search.reranking import stage
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import RankedAnchor
from similarity.search.reranking.stage import HEAD
from tests.factories import ENCODER_ID, make_company, make_embedded, make_generation, unit_vector
from tests.services.search.listed_index import ListedIndex, as_index

LIVE = make_generation(calibration=Calibration(slope=4.0, intercept=0.0))
NORTH = unit_vector(1)
RANKER = Ranker(encoder_id=ENCODER_ID, cosine=4.0, shared_words=3.0, same_industry=1.0, sparsity=1.0, intercept=-2.0)
COMPARABLE = ComparableWeights(
    business=0.5, size_gap=-1.0, size_unknown=-1.0, same_country=1.0, slope=1.0, intercept=0.0
)


def anchors(*vectors: Vector, negative: bool = False) -> list[RankedAnchor]:
    name = "negative" if negative else "anchor"
    return [
        RankedAnchor(described=make_company(f"{name}{number}", country="Sweden", industry="Tools"), vector=vector)
        for number, vector in enumerate(vectors)
    ]


def wanted(k: int, **fields: object) -> PageRequest:
    return replace(PageRequest(generation=LIVE, vector=NORTH, k=k, anchors=anchors(NORTH)), **fields)  # type: ignore[arg-type]  # any of its fields


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
    st.none() | st.sampled_from([0.2, 0.5, 0.8]),
    st.sampled_from(["one", "several", "negative"]),
    st.sampled_from([None, RANKER, replace(RANKER, comparable=COMPARABLE)]),
    st.sampled_from(Rank),
)
def test_pages_show_every_distinct_hit_once_in_the_order_of_its_probability(
    corpus: list[EmbeddedCompany], k: int, least: float | None, kind: str, ranker: Ranker | None, rank: Rank
) -> None:
    question = wanted(k, min_probability=least, rank=rank, generation=replace(LIVE, ranker=ranker))
    if kind == "several":
        question = replace(question, anchors=anchors(NORTH, unit_vector(2)))
    if kind == "negative":
        question = replace(question, negatives=anchors(unit_vector(3), negative=True))
    pages = all_pages(ListedIndex(corpus), question)
    shown = [hit for each in pages for hit in each.hits]
    everything = page(ListedIndex(corpus), replace(question, k=250)).hits
    assert [(each.hit.company.id, each.probability) for each in shown] == [
        (each.hit.company.id, each.probability) for each in everything
    ]
    assert [hit.rank for hit in shown] == list(range(1, len(shown) + 1))
    assert all(len(each.hits) == k for each in pages[:-1])
    known = [hit.probability for hit in shown if hit.probability is not None]
    if rank is Rank.COSINE and kind != "one":
        assert not known
    else:
        assert len(known) == len(shown)
        assert known == sorted(known, reverse=True)
        assert least is None or all(each >= least for each in known)


@given(st.permutations([f"c{number:04}" for number in range(230)]).map(lambda ids: ids[:40]))
def test_the_tail_keeps_its_order_behind_the_head(with_words: list[str]) -> None:
    """Words cannot lift a company that is not among the candidates of the second stage."""
    corpus = [
        make_embedded(each, description="Makes anvils." if each in with_words else f"Makes what {each} makes.")
        for each in (f"c{number:04}" for number in range(230))
    ]
    [anchor] = anchors(NORTH)
    described = make_company("anchor", description="Makes anvils.")
    question = wanted(230, generation=replace(LIVE, ranker=RANKER), anchors=[replace(anchor, described=described)])
    shown = page(ListedIndex(corpus), question).hits
    by_cosine = [each.hit.company.id for each in page(ListedIndex(corpus), wanted(230, rank=Rank.COSINE)).hits]
    head = HEAD[Rank.BUSINESS]
    assert set(ids(shown[:head])) == set(by_cosine[:head])
    assert ids(shown[head:]) == by_cosine[head:]


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


def test_a_plain_cosine_compares_no_words_and_identifies_each_company_once(monkeypatch: pytest.MonkeyPatch) -> None:
    identified: list[str] = []
    of = Identity.of

    def identity_of(company: Company) -> Identity:
        identified.append(company.id)
        return of(company)

    monkeypatch.setattr(Identity, "of", identity_of)
    monkeypatch.delattr(stage, "company_features")
    found = page(ListedIndex(documents(40)), wanted(10, rank=Rank.COSINE))
    assert [hit.probability for hit in found.hits] == pytest.approx(
        [1 / (1 + np.exp(-4 * hit.hit.score)) for hit in found.hits], abs=1e-4
    )
    assert len(identified) == len(set(identified)) == 16


def test_where_many_are_folded_more_are_asked_for() -> None:
    same = [make_embedded(f"a{number:03}", name="Acme", vector=NORTH, domain="acme.com") for number in range(60)]
    found = page(ListedIndex([*same, *documents(20)]), wanted(10))
    assert len(found.hits) == 10
    assert len(found.hits[0].duplicates) == 59


def test_improbable_hits_end_the_search_where_none_can_follow() -> None:
    index = ListedIndex(documents(900))
    found = page(index, wanted(10, min_probability=0.97))
    assert not found.has_next
    assert len(index.asked) == 1


def test_the_probability_averages_the_logits_of_the_anchors() -> None:
    one, other = unit_vector(5), unit_vector(6)
    index = ListedIndex([make_embedded("hit", vector=other)])
    [hit] = page(index, wanted(1, anchors=anchors(one, other))).hits
    logit = (4.0 * float(one @ other) + 4.0) / 2
    assert hit.probability == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-4)


def test_a_negative_takes_away_what_is_probably_its_competitor() -> None:
    index = ListedIndex([make_embedded("hit", vector=NORTH)])
    [hit] = page(index, wanted(1, negatives=anchors(NORTH, negative=True))).hits
    assert hit.probability == pytest.approx(1 / (1 + np.exp(-4.0)) * 1 / (1 + np.exp(4.0)), abs=1e-4)


def test_without_weights_no_vector_is_read() -> None:
    index = ListedIndex(documents(5))
    plain = replace(LIVE, calibration=None)
    found = page(index, wanted(5, generation=plain, anchors=anchors(unit_vector(5), NORTH)))
    assert {hit.probability for hit in found.hits} == {None}
    assert index.got == []


def test_a_company_that_is_deleted_meanwhile_has_cosine_0() -> None:
    class Forgetting(ListedIndex):
        def get(self, generation: str, ids: object) -> dict[str, EmbeddedCompany]:
            return {}

    found = page(Forgetting(documents(2)), wanted(5, anchors=anchors(unit_vector(5), NORTH)))
    assert [hit.probability for hit in found.hits] == [0.5, 0.5]


def test_comparable_companies_are_of_like_size_and_of_the_same_place() -> None:
    schema = AttributeSchema({"cap": AttributeType(("small", "mid", "large"))}, "cap")
    described = make_company("anchor", country="Sweden", attributes={"cap": "large"})
    corpus = [
        make_embedded("far", vector=NORTH, country="Chile", attributes={"cap": "small"}),
        make_embedded("peer", vector=NORTH, country="sweden", attributes={"cap": "large"}),
        make_embedded("unknown", vector=NORTH, country="Sweden"),
    ]
    question = wanted(
        3,
        anchors=[RankedAnchor(described=described, vector=NORTH)],
        generation=replace(LIVE, ranker=replace(RANKER, comparable=COMPARABLE)),
        rank=Rank.COMPARABLE,
        schema=schema,
    )
    hits = page(ListedIndex(corpus), question).hits
    assert ids(hits) == ["peer", "unknown", "far"]
    assert [[(fact.field, fact.relation.value, fact.effect) for fact in hit.facts] for hit in hits] == [
        [("country", "same", 1.0)],
        [("size", "unknown", -1.0), ("country", "same", 1.0)],
        [("size", "smaller", -2.0)],
    ]
    assert not any(hit.facts for hit in page(ListedIndex(corpus), replace(question, rank=Rank.COSINE)).hits)


def test_a_ranking_ends_at_its_depth() -> None:
    pages = all_pages(ListedIndex(documents(MAX_RANK + 300)), wanted(240))
    assert sum(len(each.hits) for each in pages) == MAX_RANK


def test_a_hit_that_vanishes_between_two_pages_moves_nobody() -> None:
    index = ListedIndex(documents(30))
    everything = ids(page(index, wanted(30)).hits)
    first = page(index, wanted(5))
    del index.documents[everything[4]]
    del index.documents[everything[2]]
    second = page(index, wanted(5, after=position_of(first.hits[-1])))
    assert ids(second.hits) == everything[5:10]
    assert [hit.rank for hit in second.hits] == [6, 7, 8, 9, 10]
