import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.index.elastic import queries
from similarity.index.filters import FieldFilter

LIVING = {"term": {"deleted": False}}
EVERYTHING = queries.matching([])


def test_the_nearest_are_rescored_and_ordered_by_score_then_id() -> None:
    body = queries.nearest("AAAA", size=10, candidates=100, oversample=1.5)
    assert body["knn"] == {
        "field": "vector",
        "query_vector": "AAAA",
        "k": 10,
        "num_candidates": 100,
        "rescore_vector": {"oversample": 1.5},
    }
    assert (body["size"], body["sort"]) == (10, [{"_score": "desc"}, {"id": "asc"}])
    assert "vector" not in body["_source"]


def test_there_are_never_fewer_candidates_than_hits() -> None:
    assert queries.nearest("AAAA", size=500, candidates=100, oversample=1)["knn"]["num_candidates"] == 500


@pytest.mark.parametrize(("size", "matched"), [(10, 400), (10, 3)])
def test_an_exact_search_compares_all_that_match(size: int, matched: int) -> None:
    body = queries.nearest_exactly("AAAA", size=size, matched=matched, filter_query=EVERYTHING)
    assert (body["knn"]["k"], body["knn"]["num_candidates"]) == (matched, matched)
    assert body["knn"]["filter"] == EVERYTHING
    assert body["size"] == min(size, matched)


@pytest.mark.parametrize("text", ["", "   ", "?!", "\0", "\ud800", "\u0301"])
def test_a_text_without_words_asks_for_nothing(text: str) -> None:
    assert queries.with_all_words(text, size=5) is None


def test_a_very_long_query_is_cut() -> None:
    body = queries.with_all_words(" ".join(f"w{number}" for number in range(500)), size=5)
    assert body
    assert len(body["query"]["bool"]["must"]) == queries.MAX_QUERY_WORDS
    prefix = queries.with_name_prefix("ü" * 5000)["query"]["bool"]["filter"][1]["prefix"]["names"]["value"]
    assert prefix == "ü" * (queries.MAX_PREFIX_BYTES // 2)


@given(st.text(st.characters() | st.sampled_from('\0\ud800 *:"()')))
def test_any_text_makes_a_query_that_can_be_sent(text: str) -> None:
    for body in (
        queries.with_all_words(text, size=5),
        queries.matching([FieldFilter(field="country", any_of=(text,), none_of=(text,))]),
    ):
        json.dumps(body, ensure_ascii=False).encode("utf-8")
