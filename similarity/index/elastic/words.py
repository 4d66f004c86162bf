"""Look-up of companies by name, domain and words. Any text is a query; there is no query syntax."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from similarity.company import ID_PATTERN, Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.index.elastic import queries
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import company_of
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.rules import filter_key, storable

IDS_AT_ONCE = 1_000
REFERENCES_AT_ONCE = 250
"""References per request, with up to two searches each."""


def resolve_many(cluster: Cluster, index: str, references: Collection[str]) -> dict[str, list[str]]:
    """Return, for each of `references`, the sorted ids of the companies whose id, domain, name or alias it is."""
    known = _living_ids(cluster, index, [each for each in references if ID_PATTERN.fullmatch(each)])
    resolved = {reference: [reference] if reference in known else [] for reference in references}
    others = [reference for reference, ids in resolved.items() if not ids]
    for some in _batches(others, REFERENCES_AT_ONCE):
        searches = [(reference, body) for reference in some for body in _searches(reference)]
        answers = cluster.searches(index, [body for _, body in searches])
        for (reference, _), answer in zip(searches, answers, strict=True):
            # Only the first search with a result is used.
            resolved[reference] = resolved[reference] or [hit["_id"] for hit in answer["hits"]["hits"]]
    return resolved


def find(cluster: Cluster, index: str, query: str, *, limit: int) -> list[Company]:
    """Return companies found by domain, by prefix of a name, or by words; best matches first."""
    text = storable(query)
    prefix, domain = name_key(text), _domain(text)
    bodies: list[Body] = []
    if domain:
        bodies.append(queries.with_domain(domain, size=limit))
    if prefix:
        bodies.append(queries.with_name_prefix(prefix))
    if words := queries.with_all_words(text, size=limit):
        bodies.append(words)
    if not bodies:
        return []
    found: dict[str, None] = {}
    for answer in cluster.searches(index, bodies):
        hits = answer["hits"]["hits"]
        if hits and "fields" in hits[0]:
            hits = _by_shortest_match(hits, prefix)
        found |= dict.fromkeys(hit["_id"] for hit in hits)
    return _companies(cluster, index, list(found)[:limit])


def find_misspelled(cluster: Cluster, index: str, query: str, *, limit: int) -> list[Company]:
    """Return companies of which a name has each word of `query`, typing errors allowed; best matches first."""
    words = list(dict.fromkeys(queries.words_of(query)))
    if not words:
        return []
    counts = cluster.searches(index, [queries.count_of(word) for word in words])
    misspelled = {word for word, answer in zip(words, counts, strict=True) if answer["hits"]["total"]["value"] == 0}
    (answer,) = cluster.searches(index, [queries.with_misspelled_words(words, misspelled, size=limit)])
    return _companies(cluster, index, [hit["_id"] for hit in answer["hits"]["hits"]])


def _companies(cluster: Cluster, index: str, ids: Sequence[str]) -> list[Company]:
    sources = cluster.documents(index, ids, vectors=False) if ids else {}
    return [
        company_of(company_id, sources[company_id]["company"])
        for company_id in ids
        if company_id in sources and not sources[company_id]["deleted"]
    ]


def _living_ids(cluster: Cluster, index: str, ids: Sequence[str]) -> set[str]:
    living = set()
    for some in _batches(ids, IDS_AT_ONCE):
        found = cluster.documents(index, some, vectors=False)
        living |= {company_id for company_id, source in found.items() if not source["deleted"]}
    return living


def _searches(reference: str) -> list[Body]:
    """Return the searches for companies with the domain `reference` (if it can be one), then with that name."""
    by_name = queries.with_name(filter_key(reference), size=MAX_CANDIDATES)
    domain = _domain(reference)
    return [queries.with_domain(domain, size=MAX_CANDIDATES), by_name] if domain else [by_name]


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _by_shortest_match(hits: Sequence[Mapping[str, Any]], prefix: str) -> list[Mapping[str, Any]]:
    matches = {
        hit["_id"]: [(len(name), name) for name in hit["fields"]["names"] if name.startswith(prefix)] for hit in hits
    }
    return sorted((hit for hit in hits if matches[hit["_id"]]), key=lambda hit: min(matches[hit["_id"]]))


def _domain(text: str) -> str:
    try:
        return name_key(normalize_domain(text))
    except InvalidCompany:
        return ""
