"""Query bodies, as pure functions."""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from similarity.index.elastic.mapping import NUMBERS_KEPT, Body
from similarity.index.filters import LANGUAGE, FieldFilter
from similarity.index.numbers import number_name
from similarity.index.protocol import MAX_FIELD_VALUES
from similarity.index.validation import filter_key, fold, has_whole_words, storable

QueryVector: TypeAlias = str | list[float]

# How much a word counts in each field.
WORD_BOOSTS = ("words.name^10", "words.aliases^8", "words.domain^5", "words.description")
NAME_BOOSTS = WORD_BOOSTS[:2]
BY_ID: list[Body] = [{"id": "asc"}]
BY_SCORE: list[Body] = [{"_score": "desc"}, *BY_ID]
HAS_VECTOR: Body = {"exists": {"field": "vector"}}
HIT_SOURCE = ["company", "version", "embedded_at", "language"]
MAX_QUERY_WORDS = 64
MAX_WORD_CHARACTERS = 255  # the tokenizer splits longer words; only the first piece is searched
PREFIX_CANDIDATES = 200
MAX_PREFIX_BYTES = 900  # Lucene refuses to build automata for about 1,000


def matching(filters: Sequence[FieldFilter], exclude: Collection[str] = ()) -> Body:
    """Return the query for companies that pass all filters and are not excluded, without tombstones."""
    kept: list[Body] = [{"term": {"deleted": False}}]
    dropped: list[Body] = []
    for each in filters:
        path = _path(each.field)
        if each.any_of:
            kept.append({"terms": {path: _keys(each.any_of)}})
        if each.none_of:
            dropped.append({"terms": {path: _keys(each.none_of)}})
        if each.has_range:
            # Always both ends: Elasticsearch 9.2 does not accept an open range in a flattened field.
            lowest, highest = each.key_range()
            kept.append({"range": {number_name(path): {"gte": lowest, "lte": highest}}})
    if exclude:
        dropped.append({"terms": {"id": sorted(exclude)}})
    return {"bool": {"filter": kept, "must_not": dropped}}


def count(query: Body, *, up_to: int) -> Body:
    """Return the body that counts the matches of `query`; a count of `up_to` + 1 means more than `up_to`."""
    return {"query": query, "size": 0, "track_total_hits": up_to + 1}


def values_of(field: str, among: Collection[str]) -> Body:
    """Return the body that counts the companies of each value of a filter field, the most frequent value first.

    `among`: count only these values; empty: all.
    """
    terms: Body = {"field": _path(field), "size": MAX_FIELD_VALUES}
    if among:
        terms["include"] = _keys(among)
    return {
        "query": {"term": {"deleted": False}},
        "size": 0,
        "track_total_hits": False,
        "aggs": {"values": {"terms": terms}},
    }


def without_numbers_kept() -> Body:
    """Return the body that counts, up to 1, the companies with attributes but without the mark NUMBERS_KEPT.

    An older release wrote them, so their numbers have no keys.
    """
    attributes = "filters.attributes"
    kept: list[Body] = [{"term": {"deleted": False}}, {"exists": {"field": attributes}}]
    lacking = {"bool": {"filter": kept, "must_not": [{"term": {f"{attributes}.{NUMBERS_KEPT}": "true"}}]}}
    return count(lacking, up_to=0)


def nearest(
    vector: QueryVector, *, size: int, candidates: int, oversample: float, filter_query: Body | None = None
) -> Body:
    """Return the body for the `size` nearest companies that a search of the graph finds.

    `candidates`: how many companies the search collects in each shard. The `oversample` x `size` best of them are
    scored exactly. The graph may miss a company that is nearer.
    """
    knn: Body = {
        "field": "vector",
        "query_vector": vector,
        "k": size,
        "num_candidates": max(candidates, size),
        "rescore_vector": {"oversample": oversample},
    }
    if filter_query is not None:
        knn["filter"] = filter_query
    return {"knn": knn, "size": size, "sort": BY_SCORE, "_source": HIT_SOURCE, "track_total_hits": False}


def nearest_exactly(vector: QueryVector, *, size: int, matched: int, filter_query: Body) -> Body:
    """Return the body for the exact `size` nearest of the at most `matched` companies that pass the filter.

    It requests `matched` candidates. If no more companies pass, Lucene compares all of them instead of searching the
    graph (AbstractKnnVectorQuery). All are then scored exactly.
    """
    body = nearest(vector, size=matched, candidates=matched, oversample=1.0, filter_query=filter_query)
    return {**body, "size": min(size, matched)}


def with_domain(domain: str, *, size: int) -> Body:
    """Return the body for the companies of a domain, by id."""
    return _ids(_living({"term": {"filters.domain": domain}}), size=size, sort=BY_ID)


def with_name(key: str, *, size: int) -> Body:
    """Return the body for the companies with exactly this name or alias, in `name_key` form, by id."""
    return _ids(_living({"term": {"names": key}}), size=size, sort=BY_ID)


def with_name_prefix(key: str) -> Body:
    """Return the body for the companies with a name or alias with this prefix, short names first.

    Each hit has its names, in `name_key` form, in `fields`. A prefix is cut at MAX_PREFIX_BYTES, so the caller must
    check that a name begins with the whole prefix.
    """
    key = key.encode()[:MAX_PREFIX_BYTES].decode(errors="ignore")
    query = _living({"prefix": {"names": {"value": key}}})
    body = _ids(query, size=PREFIX_CANDIDATES, sort=[{"shortest_name": "asc"}, *BY_ID])
    return {**body, "docvalue_fields": ["names"]}


def with_all_words(text: str, *, size: int) -> Body | None:
    """Return the body for companies with all these words; None without words.

    The last word may be unfinished, unless a blank follows it.
    """
    words = words_of(text)
    if not words:
        return None
    *finished, last = words
    clauses = [_in_any_field(word, type="phrase") for word in dict.fromkeys(finished)]
    if has_whole_words(text):
        clauses.append(_in_any_field(last, type="phrase"))
    else:
        clauses.append(_in_any_field(last, type="bool_prefix", operator="and"))
    query = {"bool": {"must": clauses, "filter": {"term": {"deleted": False}}}}
    return _ids(query, size=size, sort=BY_SCORE)


def words_of(text: str) -> list[str]:
    """Return the words of a query in the form in which the index holds words, at most MAX_QUERY_WORDS.

    A Chinese, Japanese or Korean word becomes its bigrams, separated by spaces.
    """
    words = [word[:MAX_WORD_CHARACTERS] for word in storable(text).split() if any(c.isalnum() for c in word)]
    return [fold(word) for word in words[:MAX_QUERY_WORDS]]


def count_of(word: str) -> Body:
    """Return the body that counts, up to 1, the companies with the word in one of their texts."""
    return {"query": _in_any_field(word, type="phrase"), "size": 0, "track_total_hits": 1, "terminate_after": 1}


def with_misspelled_words(words: Collection[str], misspelled: Collection[str], *, size: int) -> Body:
    """Return the body for companies whose name or aliases have all `words`, or all but one.

    `misspelled`: those of `words` that may have typing errors.
    """
    clauses = [
        {
            "multi_match": {
                "query": word,
                "fields": NAME_BOOSTS,
                "fuzziness": "AUTO:4,9" if word in misspelled else 0,
                "operator": "and",
            }
        }
        for word in words
    ]
    some = {"should": clauses, "minimum_should_match": max(len(words) - 1, 1)}
    return _ids({"bool": {**some, "filter": {"term": {"deleted": False}}}}, size=size, sort=BY_SCORE)


def _in_any_field(word: str, **options: str) -> Body:
    return {"multi_match": {"query": word, "fields": WORD_BOOSTS, **options}}


def _ids(query: Body, *, size: int, sort: list[Body]) -> Body:
    """Return the body of a search whose hits have only ids."""
    return {"query": query, "size": size, "sort": sort, "_source": False, "track_total_hits": False}


def _living(condition: Body) -> Body:
    return {"bool": {"filter": [{"term": {"deleted": False}}, condition]}}


def _path(field: str) -> str:
    return field if field == LANGUAGE else f"filters.{field}"


def _keys(values: Collection[str]) -> list[str]:
    return sorted({filter_key(value) for value in values})
