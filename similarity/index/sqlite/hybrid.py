"""Hybrid search in the embedded index: the nearest vectors and the best words, fused into one ranking."""

import sqlite3
from collections.abc import Collection, Sequence

import numpy as np

from similarity.company import Vector
from similarity.index.fusion import DEPTH, fuse
from similarity.index.sqlite import generations, reading, words
from similarity.index.sqlite.filters import Conditions
from similarity.index.sqlite.matrix import Neighbour, exact_cosines
from similarity.index.sqlite.search import ExactSearch


def nearest(
    search: ExactSearch,
    connection: sqlite3.Connection,
    name: str,
    vector: Vector,
    looked_for: Sequence[str],
    *,
    k: int,
    conditions: Conditions,
    exclude: Collection[str],
) -> list[Neighbour]:
    """The k best of the generation `name` by the fused ranking of vectors and of words, with their exact cosines.

    `looked_for` are words of `fusion.query_words`, at least one. Raises what `ExactSearch.nearest` does.
    """
    by_vector = search.nearest(connection, name, vector, k=k, depth=DEPTH, conditions=conditions, exclude=exclude)
    by_words = words.with_any_word(
        connection,
        generations.named(connection, name),
        looked_for,
        conditions=conditions,
        exclude=exclude,
        limit=max(k, DEPTH),
    )
    places = {neighbour.id: neighbour for neighbour in by_vector}
    best = fuse([list(places), list(by_words)])[:k]
    only_by_words = {company_id: by_words[company_id] for company_id in best if company_id not in places}
    if only_by_words:
        vectors = np.stack(reading.vectors(connection, list(only_by_words.values())))
        for (company_id, document), score in zip(only_by_words.items(), exact_cosines(vectors, vector), strict=True):
            places[company_id] = Neighbour(company_id, document, float(score))
    return [places[company_id] for company_id in best]
