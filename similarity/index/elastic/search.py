"""Search for the nearest companies: exact if few pass the filters, by the graph if many do."""

from collections.abc import Mapping, Sequence
from typing import Any

from similarity.company import SimilarCompany, Vector
from similarity.index.elastic import queries
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import hit_of, vector_text
from similarity.index.elastic.registry import Entry
from similarity.index.elastic.settings import MAX_CANDIDATES
from similarity.index.filters import FieldFilter
from similarity.index.protocol import NEARER_COUNTED, SimilarCompanies
from similarity.index.validation import check_characters_found, check_query, ranges_would_miss

# Up to this number of excluded ids, as many further hits are requested, and the excluded ones are dropped here: a
# filter would cost a pass over all documents, and nearly every search excludes its own anchor.
OVERFETCHED = 100
# With a filter, the search of the graph also visits companies that do not pass, so it needs more candidates (measured
# by benchmarks/elasticsearch.py).
FILTERED_FACTOR = 2
# Scores are float32: a cosine that is higher by less than this is counted as equal.
SCORE_ROUNDING = 1e-6

Answer = Mapping[str, Any]


def nearest(
    cluster: Cluster,
    entry: Entry,
    vector: Vector,
    *,
    k: int,
    filters: Sequence[FieldFilter],
    exclude: frozenset[str],
) -> SimilarCompanies:
    """Return the k nearest companies, at most MAX_CANDIDATES, in one concrete index; see `CompanyIndex.similar`.

    Raises:
        InvalidInput: k is below 1, the vector is not a unit vector of the generation's dimension, or the companies have
            too many characters in all.
        InvalidFilter: a filter has a range, and an older release wrote companies that it would miss.
        UnknownGeneration: the index was deleted.
    """
    check_query(vector, k=k, dimension=entry.record.dimension)
    settings = cluster.settings
    few = len(exclude) <= OVERFETCHED
    depth = min(k + (len(exclude) if few else 0), MAX_CANDIDATES)
    passing = queries.matching(filters, () if few else exclude)
    is_filtered = bool(filters) or not few
    has_range = any(each.has_range for each in filters)
    sent = vector_text(vector, packed=cluster.packs_vectors)
    by_graph = queries.nearest(
        sent,
        size=depth,
        candidates=min(settings.num_candidates * (FILTERED_FACTOR if is_filtered else 1), MAX_CANDIDATES),
        oversample=settings.oversample_of(entry.vectors, depth),
        filter_query=passing if is_filtered else None,
    )
    further = [queries.without_numbers_kept()] if has_range else []
    bodies = [queries.count(passing, up_to=settings.exact_limit), by_graph, *further]
    counted, found, *others = (answer["hits"] for answer in cluster.searches(entry.index, bodies))
    if has_range and others[0]["total"]["value"]:
        raise ranges_would_miss(entry.record.name)
    matched = counted["total"]["value"]
    approximate = matched > settings.exact_limit
    if matched and not approximate:
        body = queries.nearest_exactly(sent, size=depth, matched=matched, filter_query=passing)
        found = cluster.search(entry.index, body)["hits"]
    hits: list[SimilarCompany] = []
    characters = 0
    for hit in found["hits"]:
        if hit["_id"] not in exclude:
            hits.append(_neighbour(hit))
            characters += hits[-1].company.characters()
            check_characters_found(characters)
    return SimilarCompanies(hits=tuple(hits[:k]), approximate=approximate)


def count_nearer(
    cluster: Cluster,
    entry: Entry,
    vector: Vector,
    *,
    score: float,
    filters: Sequence[FieldFilter],
    exclude: frozenset[str],
) -> int | None:
    """Return how many companies have a cosine above `score`; see `CompanyIndex.count_nearer`.

    Reads the nearest companies instead of scoring all by a script: scripts may be switched off in a cluster. Raises
    the same exceptions as `nearest`.
    """
    found = nearest(cluster, entry, vector, k=NEARER_COUNTED, filters=filters, exclude=exclude)
    nearer = sum(hit.score > score + SCORE_ROUNDING for hit in found.hits)
    return nearer if nearer < NEARER_COUNTED else None


def _neighbour(hit: Answer) -> SimilarCompany:
    # Elasticsearch scores a cosine c as (1 + c) / 2, which keeps scores positive.
    cosine = min(1.0, max(-1.0, 2 * float(hit["_score"]) - 1))
    return hit_of(hit["_id"], hit["_source"], score=cosine)
