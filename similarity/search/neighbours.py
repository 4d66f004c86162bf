"""The competitors of every company, computed in one pass over the corpus, in blocks."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.company import SHARED_HOSTS, DeletedCompany
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex, Generation
from similarity.model.ranker import Ranker
from similarity.preparation.language import is_readable
from similarity.search.duplicates import (
    WIDELY_SHARED,
    DuplicateMerger,
    Identity,
    IdentityKey,
    key_of_shared_domain,
)
from similarity.search.ranking_page import extra_candidates
from similarity.search.reranking.pair_features import CompanyFeatures, Floats, company_features, pair_features
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import business_logits, in_order, knows_only_cosine, sigmoid
from similarity.search.reranking.stage import HEAD

BLOCK_ROWS = 512
BLOCK_BYTES = 256_000_000
"""Memory limit of the cosines of a block. With more than 125,000 companies, a block has fewer than BLOCK_ROWS rows."""
TIE = np.float32(1e-6)
"""The step to which cosines are rounded before they are ordered. In the matrix product of a block, equal cosines differ
by less than a tenth of this step. Rounded, they are equal, and in the order of ids, except near a rounding limit."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour: cosine, probability before rounding, and the ids of its duplicates, which rank lower.

    The probability is None if the generation has neither a ranker nor a calibration, or if the encoder cannot read one
    of the two descriptions.
    """

    id: str
    name: str
    score: float
    probability: float | None
    duplicates: list[str]


@dataclass(frozen=True, slots=True)
class _Corpus:
    """The companies that have a vector, by ascending id; `vectors` is float32 `[companies, dimension]`."""

    ids: list[str]
    names: list[str]
    keys: list[tuple[IdentityKey, ...]]
    vectors: NDArray[np.float32]
    features: list[CompanyFeatures]
    readable: list[bool]


def all_neighbours(
    index: CompanyIndex,
    generation: Generation,
    *,
    k: int,
    part: tuple[int, int] = (1, 1),
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Iterator[tuple[str, str, list[Neighbour]]]:
    """Yield each company's id, its name, and its first k hits as `Searcher` ranks them, in the order of the ids.

    The rank is `business`. Companies without a vector are left out. `part` (3, 16): yield only the third of 16 parts. A
    hash of the id chooses the part, so that a company stays in its part while others are added or deleted.

    Each part needs memory for the words and vectors of all companies. The vectors take 4 bytes x companies x dimension
    (70 MB for 46,000 companies and 384 dimensions).
    """
    corpus = _load(index, generation)
    ranker = generation.second_stage
    number, parts = part
    rows = [row for row, company_id in enumerate(corpus.ids) if zlib.crc32(company_id.encode()) % parts == number - 1]
    size = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (4 * max(1, len(corpus.ids)))))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        scores = corpus.vectors[block] @ corpus.vectors.T
        scores[np.arange(len(block)), block] = -np.inf
        for row, own_scores in zip(block, scores, strict=True):
            yield corpus.ids[row], corpus.names[row], _neighbours(corpus, ranker, row, own_scores, k)
        on_rows(len(block))


def _neighbours(
    corpus: _Corpus, ranker: Ranker | None, row: int, scores: NDArray[np.float32], k: int
) -> list[Neighbour]:
    others = len(corpus.ids) - 1
    head = min(HEAD[Rank.BUSINESS], others) if ranker and not knows_only_cosine(ranker) else 0
    fetch = min(max(k + extra_candidates(k), head), others)
    while True:
        candidates = _best(scores, fetch)
        unique = _without_duplicates(corpus, row, candidates)
        if len(unique) > k or fetch == others:
            break
        fetch = min(2 * fetch, others)
    in_head = set(candidates[:head])
    first = [each for each in unique if each in in_head]
    rows = list(unique)
    probabilities: Sequence[float | None] = [None] * len(rows)
    if ranker and rows:
        cosines = scores[rows].astype(np.float64)
        known = _probabilities(corpus, ranker, row, rows, cosines, head=len(first) or None)
        order, known = in_order(known, cosines, [corpus.ids[each] for each in rows], head=len(first))
        rows, probabilities = [rows[each] for each in order], known.tolist()
    return [
        Neighbour(
            corpus.ids[each],
            corpus.names[each],
            float(scores[each]),
            probability if corpus.readable[row] and corpus.readable[each] else None,
            unique[each],
        )
        for each, probability in zip(rows[:k], probabilities[:k], strict=True)
    ]


def _probabilities(
    corpus: _Corpus, ranker: Ranker, row: int, rows: Sequence[int], cosines: Floats, *, head: int | None
) -> Floats:
    features = pair_features(
        corpus.features[row],
        [corpus.features[each] for each in rows],
        cosines,
        neighbour_cosines=np.sort(cosines[:head])[::-1].tolist(),
        head=head,
    )
    return sigmoid(business_logits(ranker, features))


def _without_duplicates(corpus: _Corpus, row: int, candidates: Sequence[int]) -> dict[int, list[str]]:
    """Return the candidates that duplicate neither the company itself nor a better one, each with its duplicates."""
    merger = DuplicateMerger()
    merger.add_given(corpus.keys[row])
    unique: dict[int, list[str]] = {}
    for candidate in candidates:
        duplicates = merger.add(corpus.ids[candidate], corpus.keys[candidate])
        if duplicates is not None:
            unique[candidate] = duplicates
    return unique


def _best(scores: NDArray[np.float32], count: int) -> list[int]:
    """Return the row numbers of the `count` highest scores, best first; ties by row number."""
    if count <= 0:
        return []
    threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
    # All ties with the last score are candidates, so that the lower id wins whatever the partition did. The product of
    # a block rounds the cosines of equal vectors differently.
    candidates = np.flatnonzero(scores >= threshold - TIE)
    best: list[int] = candidates[np.argsort(-np.round(scores[candidates] / TIE), kind="stable")][:count].tolist()
    return best


def _load(index: CompanyIndex, generation: Generation) -> _Corpus:
    ids: list[str] = []
    names: list[str] = []
    keys: list[tuple[IdentityKey, ...]] = []
    vectors: list[NDArray[np.float32]] = []
    features: list[CompanyFeatures] = []
    readable: list[bool] = []
    domains: Counter[str] = Counter()
    rows_of: dict[str, list[int]] = {}
    for batch in index.scan(generation.name):
        for document in batch:
            if isinstance(document, DeletedCompany):
                continue
            domains[document.company.domain] += 1
            if document.has_vector:
                rows_of.setdefault(document.company.domain, []).append(len(ids))
                ids.append(document.id)
                names.append(document.company.name)
                keys.append(Identity.of(document.company).keys())
                vectors.append(document.vector)
                features.append(company_features(document.company, AttributeSchema(), document.language))
                readable.append(is_readable(document.company.description, document.language, generation.languages))
    for domain in domains.keys() - {"", *SHARED_HOSTS}:
        for row in rows_of.get(domain, ()) if domains[domain] >= WIDELY_SHARED else ():
            own = key_of_shared_domain(domain, names[row])
            keys[row] = (own, *(key for key in keys[row] if key[0] != "domain"))
    stacked = np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)
    return _Corpus(ids, names, keys, stacked, features, readable)
