"""Search for the nearest companies: exact if few pass the filters, by the graph if many do; hybrid with words."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from similarity.company import EmbeddedCompany, SimilarCompany, Vector
from similarity.index.elastic import queries
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import document_of, hit_of, vector_text
from similarity.index.elastic.mapping import Body
from similarity.index.elastic.registry import Entry
from similarity.index.elastic.settings import MAX_CANDIDATES, OVERSAMPLE
from similarity.index.filters import FieldFilter
from similarity.index.fusion import DEPTH, fuse
from similarity.index.protocol import SimilarCompanies
from similarity.index.rules import check_query, ranges_would_miss

# Up to so many excluded ids are requested in addition and dropped here: a filter would cost every search a pass over
# all documents, and nearly every search excludes its own anchor.
OVERFETCHED = 100
# With a filter, the search of the graph also visits companies that do not pass, so it needs more candidates (measured
# by benchmarks/elasticsearch.py).
FILTERED_FACTOR = 2

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The arguments of one search."""

    vector: Vector
    k: int
    filters: Sequence[FieldFilter] = ()
    exclude: frozenset[str] = frozenset()
    words: str = ""

    @property
    def filter_query(self) -> Body:
        """The query for allowed companies; a few excluded ids are dropped from the result instead."""
        few = len(self.exclude) <= OVERFETCHED
        return queries.matching(self.filters, () if few else self.exclude)

    @property
    def filtered(self) -> bool:
        """Whether the graph must be searched with a filter."""
        return bool(self.filters) or len(self.exclude) > OVERFETCHED

    @property
    def has_range(self) -> bool:
        """Whether a filter has a range of numbers."""
        return any(each.has_range for each in self.filters)

    @property
    def depth(self) -> int:
        """How many hits to request."""
        wanted = max(self.k, DEPTH) if self.words else self.k
        few = len(self.exclude) if len(self.exclude) <= OVERFETCHED else 0
        return min(wanted + few, MAX_CANDIDATES)


def nearest(cluster: Cluster, entry: Entry, request: SearchRequest) -> SimilarCompanies:
    """Return the neighbours for a search request, from one concrete index.

    Raises:
        InvalidInput: k is below 1, or the vector is not a unit vector of the generation's dimension.
        InvalidFilter: a filter has a range, and an older release wrote companies that it would miss.
        UnknownGeneration: the index was deleted.
    """
    check_query(request.vector, k=request.k, dimension=entry.record.dimension)
    by_vector, by_words, approximate = _ask(cluster, entry, request)
    hits = {hit["_id"]: _neighbour(hit) for hit in by_vector if hit["_id"] not in request.exclude}
    if by_words is None:
        return SimilarCompanies(hits=tuple(hits.values())[: request.k], approximate=approximate)
    wordy = [hit["_id"] for hit in by_words if hit["_id"] not in request.exclude]
    ranked = fuse([list(hits)[: request.depth], wordy])[: request.k]
    hits |= _neighbours_with_ids(cluster, entry, request, [each for each in ranked if each not in hits])
    return SimilarCompanies(hits=tuple(hits[each] for each in ranked if each in hits), approximate=approximate)


def _ask(cluster: Cluster, entry: Entry, request: SearchRequest) -> tuple[list[Answer], list[Answer] | None, bool]:
    """Return the hits by vector, the hits by words (None without words), and whether the former are approximate."""
    settings = cluster.settings
    vector = vector_text(request.vector, packed=cluster.packs_vectors)
    passing = request.filter_query
    candidates = settings.num_candidates * (FILTERED_FACTOR if request.filtered else 1)
    oversample = settings.oversample or OVERSAMPLE[entry.vectors]
    bodies = [
        queries.count(passing, up_to=settings.exact_limit),
        queries.nearest(
            vector,
            size=request.depth,
            candidates=min(candidates, MAX_CANDIDATES),
            oversample=oversample,
            filter_query=passing if request.filtered else None,
        ),
    ]
    words = queries.with_words(request.words, size=request.depth, filter_query=passing)
    if words is not None:
        bodies.append(words)
    if request.has_range:
        bodies.append(queries.without_numbers())
    counted, found, *others = (answer["hits"] for answer in cluster.searches(entry.index, bodies))
    if request.has_range and others.pop()["total"]["value"]:
        raise ranges_would_miss(entry.record.name)
    matched = counted["total"]["value"]
    approximate = matched > settings.exact_limit
    if matched and not approximate:
        body = queries.nearest_exactly(vector, size=request.depth, matched=matched, filter_query=passing)
        found = cluster.search(entry.index, body)["hits"]
    return found["hits"], others[0]["hits"] if others else None, approximate


def _neighbour(hit: Answer) -> SimilarCompany:
    # Elasticsearch scores a cosine c as (1 + c) / 2, which keeps scores positive.
    cosine = min(1.0, max(-1.0, 2 * float(hit["_score"]) - 1))
    return hit_of(hit["_id"], hit["_source"], score=cosine)


def _neighbours_with_ids(
    cluster: Cluster, entry: Entry, request: SearchRequest, ids: Collection[str]
) -> dict[str, SimilarCompany]:
    """Return the companies that were found only by their words, with their cosines."""
    if not ids:
        return {}
    found = {}
    for company_id, source in cluster.documents(entry.index, list(ids), vectors=True).items():
        document = document_of(source, encoder_id=entry.record.encoder_id)
        if isinstance(document, EmbeddedCompany):
            found[company_id] = hit_of(company_id, source, score=_cosine(document.vector, request.vector))
    return found


def _cosine(left: Vector, right: Vector) -> float:
    norms = float(np.linalg.norm(left)) * float(np.linalg.norm(right))
    return min(1.0, max(-1.0, float(left @ right) / norms))
