"""Features of pairs of companies, from which the second stage of a search orders its candidates (`reranking`).

Each is computed from the pair and from the other candidates of the same query, so none depends on one corpus.
docs/ranking.md measures them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company, name_key
from similarity.index.attributes import AttributeSchema
from similarity.index.cjk import with_bigrams

Floats: TypeAlias = NDArray[np.float64]
Described: TypeAlias = Company | str
"""An anchor: a company, or a description in free text."""

FINE_INDUSTRY = "industry_fine"
"""The attribute with a finer industry than the field `industry`, if companies have one."""
INDUSTRY_FIELDS = (f"attributes.{FINE_INDUSTRY}", "industry")
"""Fields of filters for the same industry, finest first."""
UNKNOWN = 0.5
"""The value of `same_industry` if one of the two companies has no industry."""
LARGER = 0.5
"""How much a step of size upwards counts beside one downwards: lists of peers name large companies more often."""
DENSE = 0.85
"""Mean cosine of the ranks SPARSITY_RANKS above which a neighbourhood counts as dense."""
SPARSITY_RANKS = slice(100, 200)
_BUCKETS = 1 << 16
_CACHED_TEXTS = 20_000
_WORD = re.compile(r"[^\W\d_]{3,}")
_CJK_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFeatures:
    """Features of one anchor and each candidate, all float64 `[candidates]`.

    `cosine`. `shared_words`: mean of the shares of the anchor's and of the candidate's words that both have, where a
    word counts more the fewer candidates have it; words of a company's own names do not count. `same_industry`: 1 if
    the finest industry that both have is equal, else 0. `sparsity`: how far the anchor's neighbourhood is below DENSE
    (the same for all candidates). `size_gap`: steps of size between the two; a larger candidate counts LARGER.
    `size_unknown`, `same_country`: 1 or 0.
    """

    cosine: Floats
    shared_words: Floats
    same_industry: Floats
    sparsity: Floats
    size_gap: Floats
    size_unknown: Floats
    same_country: Floats


def pair_features(
    anchor: Described,
    candidates: Sequence[Company],
    cosines: Floats,
    *,
    neighbour_cosines: Sequence[float],
    schema: AttributeSchema,
) -> PairFeatures:
    """Return the features of `anchor` and each candidate.

    `neighbour_cosines`: cosines of the anchor's neighbours, highest first; they tell how dense its neighbourhood is.
    """
    company = None if isinstance(anchor, str) else anchor
    gap, unknown = _size_features(company, candidates, schema)
    country = _key(company.country) if company else ""
    return PairFeatures(
        cosine=cosines,
        shared_words=shared_words(anchor, candidates),
        same_industry=_same_industry(company, candidates),
        sparsity=np.full(len(candidates), sparsity(neighbour_cosines)),
        size_gap=gap,
        size_unknown=unknown,
        same_country=np.array([float(bool(country) and _key(each.country) == country) for each in candidates]),
    )


def sparsity(neighbour_cosines: Sequence[float]) -> float:
    """Return how far the mean cosine of the neighbours at SPARSITY_RANKS is below DENSE.

    In a small corpus the neighbours at these ranks are far away, and the first ones are competitors at cosines at
    which a large corpus has hundreds of related companies. With fewer neighbours the last one counts.

    >>> sparsity([0.9] * 200)
    0.0
    >>> round(sparsity([0.9, 0.55]), 2)
    0.3
    """
    farther = neighbour_cosines[SPARSITY_RANKS] or neighbour_cosines[-1:]
    return max(0.0, DENSE - float(np.mean(farther))) if len(farther) else 0.0


def shared_words(anchor: Described, candidates: Sequence[Company]) -> Floats:
    """Return the feature `shared_words`, `[candidates]`; 0 for a text without words."""
    if not candidates:
        return np.zeros(0)
    own = _words(anchor, "") if isinstance(anchor, str) else _words_of(anchor)
    words = [_words_of(each) for each in candidates]
    sizes = np.array([len(each) for each in words])
    everyone = np.concatenate([*words, own])
    documents = np.bincount(everyone, minlength=_BUCKETS)
    weights = np.zeros(_BUCKETS)
    # Inverse document frequency among anchor and candidates: what all of them do tells none of them apart.
    weights[everyone] = np.log((len(words) + 2) / documents[everyone])
    of_anchor = np.zeros(_BUCKETS)
    of_anchor[own] = weights[own]
    place = np.repeat(np.arange(len(words)), sizes)
    joined = everyone[: sizes.sum()]
    total = np.bincount(place, weights=weights[joined], minlength=len(words))
    both = np.bincount(place, weights=of_anchor[joined], minlength=len(words))
    return np.asarray((both / max(of_anchor.sum(), 1e-9) + both / np.maximum(total, 1e-9)) / 2)


def industries(company: Company) -> tuple[str, str]:
    """Return the company's industry at each of INDUSTRY_FIELDS, as names are compared; "" where it has none."""
    return _key(str(company.attributes.get(FINE_INDUSTRY, ""))), _key(company.industry)


def _same_industry(anchor: Company | None, candidates: Sequence[Company]) -> Floats:
    if anchor is None:
        return np.full(len(candidates), UNKNOWN)
    fine, coarse = industries(anchor)
    return np.array([_are_equal(fine, coarse, *industries(each)) for each in candidates])


def _are_equal(fine: str, coarse: str, other_fine: str, other_coarse: str) -> float:
    if fine and other_fine:
        return float(fine == other_fine)
    return float(coarse == other_coarse) if coarse and other_coarse else UNKNOWN


def _size_features(
    anchor: Company | None, candidates: Sequence[Company], schema: AttributeSchema
) -> tuple[Floats, Floats]:
    size = schema.size_of(anchor) if anchor else None
    if size is None:
        return np.zeros(len(candidates)), np.zeros(len(candidates))
    sizes = [schema.size_of(each) for each in candidates]
    steps = np.array([0.0 if each is None else each - size for each in sizes])
    return np.maximum(-steps, LARGER * steps), np.array([float(each is None) for each in sizes])


# Corpora have a few hundred countries and industries.
_key = lru_cache(maxsize=4096)(name_key)


def _words_of(company: Company) -> NDArray[np.int64]:
    return _words(company.description, " ".join((company.name, *company.aliases)))


# The texts of one query are mostly those of the next.
@lru_cache(maxsize=_CACHED_TEXTS)
def _words(text: str, names: str) -> NDArray[np.int64]:
    """Return the buckets of the distinct words of a text that are not in `names`, int64 `[words]`."""
    words = _distinct(text) - _distinct(names)
    return np.array(sorted({crc32(word.encode()) % _BUCKETS for word in words}), dtype=np.int64)


def _distinct(text: str) -> set[str]:
    text = text.lower()
    # Bigrams of Chinese and Japanese have two characters; English words of two letters say little.
    return set(_WORD.findall(text)) if text.isascii() else set(_CJK_WORD.findall(with_bigrams(text)))
