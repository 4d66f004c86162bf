"""Look-up of companies by name, domain and words. Any text is a query; there is no query syntax."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from similarity.company import Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.index.elastic import queries
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import company_of
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.rules import filter_key, storable

REFERENCES_AT_ONCE = 250
"""References per request, with up to two searches each."""


def resolve_many(cluster: Cluster, index: str, references: Collection[str]) -> dict[str, list[str]]:
    """Return, for each of `references`, the sorted ids of the companies whose id, domain, name or alias it is."""
    known = cluster.documents(index, references, vectors=False)
    living = {company_id for company_id, source in known.items() if not source["deleted"]}
    resolved = {reference: [reference] if reference in living else [] for reference in references}
    others = [reference for reference, ids in resolved.items() if not ids]
    for start in range(0, len(others), REFERENCES_AT_ONCE):
        some = others[start : start + REFERENCES_AT_ONCE]
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
    bodies = [
        queries.with_domain(domain, size=limit) if domain else None,
        queries.with_name_prefix(prefix) if prefix else None,
        queries.with_all_words(text, size=limit),
    ]
    found: dict[str, None] = {}
    for answer in cluster.searches(index, [body for body in bodies if body]):
        hits = answer["hits"]["hits"]
        if hits and "fields" in hits[0]:
            hits = _by_shortest_match(hits, prefix)
        found |= dict.fromkeys(hit["_id"] for hit in hits)
    ids = list(found)[:limit]
    sources = cluster.documents(index, ids, vectors=False)
    return [
        company_of(company_id, sources[company_id]["company"])
        for company_id in ids
        if company_id in sources and not sources[company_id]["deleted"]
    ]


def _searches(reference: str) -> list[Body]:
    """Return the searches for companies with the domain `reference` (if it can be one), then with that name."""
    by_name = queries.with_name(filter_key(reference), size=MAX_CANDIDATES)
    domain = _domain(reference)
    return [queries.with_domain(domain, size=MAX_CANDIDATES), by_name] if domain else [by_name]


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
