"""The nearest neighbours of every company, computed in one pass over the corpus, in blocks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from similarity.company import DeletedCompany
from similarity.index.protocol import CompanyIndex
from similarity.search.duplicates import DuplicateMerger, IdentityKey, identity_keys
from similarity.search.ranking_page import extra_candidates

BLOCK_ROWS = 512


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour, its cosine, and the ids of lower-ranked companies that are the same company."""

    id: str
    name: str
    score: float
    duplicates: list[str]


@dataclass(frozen=True, slots=True)
class _Corpus:
    """The companies that have a vector, by ascending id; `vectors` is float32 `[companies, dimension]`."""

    ids: list[str]
    names: list[str]
    keys: list[tuple[IdentityKey, ...]]
    vectors: NDArray[np.float32]


def all_neighbours(
    index: CompanyIndex, generation: str, *, k: int, on_rows: Callable[[int], None] = lambda rows: None
) -> Iterator[tuple[str, str, list[Neighbour]]]:
    """Yield each company's id, its name, and its k nearest others as `Searcher` ranks them, by the companies' ids.

    Companies without a vector are left out. The neighbours are ordered best first, ties by id.

    Holds all vectors in memory: 4 bytes x companies x dimension (70 MB for 46,000 of 384).
    """
    corpus = _load(index, generation)
    for start in range(0, len(corpus.ids), BLOCK_ROWS):
        block = corpus.vectors[start : start + BLOCK_ROWS]
        scores = block @ corpus.vectors.T
        scores[np.arange(len(block)), np.arange(start, start + len(block))] = -np.inf
        for row, company_id in enumerate(corpus.ids[start : start + BLOCK_ROWS]):
            yield company_id, corpus.names[start + row], _neighbours(corpus, start + row, scores[row], k)
        on_rows(len(block))


def _neighbours(corpus: _Corpus, row: int, scores: NDArray[np.float32], k: int) -> list[Neighbour]:
    others = len(corpus.ids) - 1
    fetch = min(k + extra_candidates(k), others)
    while True:
        unique = _without_duplicates(corpus, row, scores, _best(scores, fetch))
        if len(unique) > k or fetch == others:
            return unique[:k]
        fetch = min(2 * fetch, others)


def _without_duplicates(
    corpus: _Corpus, row: int, scores: NDArray[np.float32], candidates: Sequence[int]
) -> list[Neighbour]:
    """Return the candidates that duplicate neither the company itself nor a better candidate."""
    merger = DuplicateMerger()
    merger.add_given(corpus.keys[row])
    unique: list[Neighbour] = []
    for candidate in candidates:
        company_id = corpus.ids[candidate]
        duplicates = merger.add(company_id, corpus.keys[candidate])
        if duplicates is not None:
            unique.append(Neighbour(company_id, corpus.names[candidate], float(scores[candidate]), duplicates))
    return unique


def _best(scores: NDArray[np.float32], count: int) -> list[int]:
    """Return the row numbers of the `count` highest scores, best first; ties by row number."""
    if count <= 0:
        return []
    threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
    # All ties with the last score are candidates, so that the lower id wins whatever the partition did.
    candidates = np.flatnonzero(scores >= threshold)
    best: list[int] = candidates[np.argsort(-scores[candidates], kind="stable")][:count].tolist()
    return best


def _digest(text: str) -> str:
    """Return a short hash of a text: the texts of all companies would take more memory than their vectors."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _load(index: CompanyIndex, generation: str) -> _Corpus:
    ids: list[str] = []
    names: list[str] = []
    keys: list[tuple[IdentityKey, ...]] = []
    vectors: list[NDArray[np.float32]] = []
    for batch in index.scan(generation):
        for document in batch:
            if not isinstance(document, DeletedCompany) and document.has_vector:
                ids.append(document.id)
                names.append(document.company.name)
                keys.append(tuple((kind, _digest(value)) for kind, value in identity_keys(document.company)))
                vectors.append(document.vector)
    return _Corpus(ids, names, keys, np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32))
