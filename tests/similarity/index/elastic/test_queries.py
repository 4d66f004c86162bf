import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.index.elastic import queries
from similarity.index.filters import FieldFilter
from similarity.index.numbers import HIGHEST_KEY, number_key

LIVING = {"term": {"deleted": False}}
EVERYTHING = queries.matching([])


def test_tombstones_never_match() -> None:
    assert EVERYTHING == {"bool": {"filter": [LIVING], "must_not": []}}


def test_filters_keep_and_drop_by_folded_values() -> None:
    filters = [
        FieldFilter(field="country", any_of=("FR", "fr ", "De")),
        FieldFilter(field="tags", any_of=("ﬁne",), none_of=("Old",)),
        FieldFilter(field="attributes.size", none_of=("10",)),
    ]
    assert queries.matching(filters, ["b", "a"]) == {
        "bool": {
            "filter": [LIVING, {"terms": {"filters.country": ["de", "fr"]}}, {"terms": {"filters.tags": ["fine"]}}],
            "must_not": [
                {"terms": {"filters.tags": ["old"]}},
                {"terms": {"filters.attributes.size": ["10"]}},
                {"terms": {"id": ["a", "b"]}},
            ],
        }
    }


def test_a_range_is_one_of_keys_with_both_ends() -> None:
    filters = [
        FieldFilter(field="attributes.size", any_of=("10",), at_least=9.5),
        FieldFilter(field="attributes.age", at_least=-1, at_most=2),
    ]
    assert queries.matching(filters)["bool"]["filter"] == [
        LIVING,
        {"terms": {"filters.attributes.size": ["10"]}},
        {"range": {"filters.attributes.size.number": {"gte": number_key(9.5), "lte": HIGHEST_KEY}}},
        {"range": {"filters.attributes.age.number": {"gte": number_key(-1), "lte": number_key(2)}}},
    ]


def test_living_companies_whose_numbers_have_no_keys_are_counted_to_one() -> None:
    body = queries.without_numbers()
    assert body["track_total_hits"] == 1
    assert body["query"]["bool"] == {
        "filter": [LIVING, {"exists": {"field": "filters.attributes"}}],
        "must_not": [{"term": {"filters.attributes.numbers.kept": "true"}}],
    }


def test_counting_goes_just_above_the_limit_and_fetches_nothing() -> None:
    assert queries.count(EVERYTHING, up_to=2000) == {"query": EVERYTHING, "size": 0, "track_total_hits": 2001}


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


def test_a_filter_is_given_to_the_graph_only_where_there_is_one() -> None:
    assert "filter" not in queries.nearest("AAAA", size=1, candidates=1, oversample=1)["knn"]
    body = queries.nearest("AAAA", size=1, candidates=1, oversample=1, filter_query=EVERYTHING)
    assert body["knn"]["filter"] == EVERYTHING


@pytest.mark.parametrize(("size", "matched"), [(10, 400), (10, 3)])
def test_an_exact_search_compares_all_that_match(size: int, matched: int) -> None:
    body = queries.nearest_exactly("AAAA", size=size, matched=matched, filter_query=EVERYTHING)
    assert (body["knn"]["k"], body["knn"]["num_candidates"]) == (matched, matched)
    assert body["knn"]["filter"] == EVERYTHING
    assert body["size"] == min(size, matched)


def test_words_are_asked_for_under_the_filters() -> None:
    body = queries.with_words("Zürich, cable-cars! ZÜRICH", size=5, filter_query=EVERYTHING)
    assert body
    assert body["query"]["bool"]["filter"] == [LIVING]
    assert body["query"]["bool"]["must"]["multi_match"]["query"] == "zurich cable cars"
    assert body["_source"] is False


@pytest.mark.parametrize("text", ["", "   ", "?!", "\0", "\ud800", "\u0301"])
def test_a_text_without_words_asks_for_nothing(text: str) -> None:
    assert queries.with_words(text, size=5, filter_query=EVERYTHING) is None
    assert queries.with_all_words(text, size=5) is None


def test_all_words_must_be_there_and_the_last_may_be_unfinished() -> None:
    body = queries.with_all_words("Acme öl cab", size=5)
    assert body
    *finished, last = (clause["multi_match"] for clause in body["query"]["bool"]["must"])
    assert [(each["query"], each["type"]) for each in finished] == [("acme", "phrase"), ("ol", "phrase")]
    assert (last["query"], last["type"], last["operator"]) == ("cab", "bool_prefix", "and")


def test_a_very_long_query_is_cut() -> None:
    body = queries.with_all_words(" ".join(f"w{number}" for number in range(500)), size=5)
    assert body
    assert len(body["query"]["bool"]["must"]) == queries.MAX_QUERY_WORDS
    prefix = queries.with_name_prefix("ü" * 5000)["query"]["bool"]["filter"][1]["prefix"]["names"]["value"]
    assert prefix == "ü" * (queries.MAX_PREFIX_BYTES // 2)


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (queries.with_domain("acme.com", size=3), {"term": {"filters.domain": "acme.com"}}),
        (queries.with_name("acme", size=3), {"term": {"names": "acme"}}),
    ],
)
def test_a_name_or_domain_leads_to_the_living_by_id(body: dict[str, Any], condition: dict[str, Any]) -> None:
    assert body["query"] == {"bool": {"filter": [LIVING, condition]}}
    assert (body["sort"], body["size"], body["_source"]) == ([{"id": "asc"}], 3, False)


@given(st.text(st.characters() | st.sampled_from('\0\ud800 *:"()')))
def test_any_text_makes_a_query_that_can_be_sent(text: str) -> None:
    for body in (
        queries.with_words(text, size=5, filter_query=EVERYTHING),
        queries.with_all_words(text, size=5),
        queries.matching([FieldFilter(field="country", any_of=(text,), none_of=(text,))]),
    ):
        json.dumps(body, ensure_ascii=False).encode("utf-8")
