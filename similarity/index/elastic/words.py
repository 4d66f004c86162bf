"""Companies by name, domain and words. Any text is a query; there is no syntax."""

from collections.abc import Mapping, Sequence
from typing import Any

from similarity.company import ID_PATTERN, Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.index.elastic import queries
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import company_of
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.rules import filter_key, storable


def resolve(cluster: Cluster, index: str, reference: str) -> list[str]:
    """Ids of the companies whose id, else domain, else name or alias is `reference`, sorted."""
    if ID_PATTERN.fullmatch(reference):
        found = cluster.documents(index, [reference], vectors=False).get(reference)
        if found and not found["deleted"]:
            return [reference]
    by_name = queries.with_name(filter_key(reference), size=MAX_CANDIDATES)
    domain = _domain(reference)
    bodies = [queries.with_domain(domain, size=MAX_CANDIDATES), by_name] if domain else [by_name]
    for answer in cluster.searches(index, bodies):
        if ids := [hit["_id"] for hit in answer["hits"]["hits"]]:
            return ids
    return []


def find(cluster: Cluster, index: str, query: str, *, limit: int) -> list[Company]:
    """Companies for a search box: by domain, by prefix of a name, by words; better ones first."""
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
    ids = list(found)[:limit]
    sources = cluster.documents(index, ids, vectors=False) if ids else {}
    return [
        company_of(company_id, sources[company_id]["company"])
        for company_id in ids
        if company_id in sources and not sources[company_id]["deleted"]
    ]


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
