"""Features of pairs of companies, from which the second stage of a search orders its candidates (`scores`).

Each feature is computed from the pair, the other candidates of the query and, for `sparsity`, the anchor's neighbours,
which need not be candidates. No feature needs statistics of a corpus. docs/ranking.md measures the features.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.index.cjk import with_bigrams
from similarity.index.filters import value_key
from similarity.preparation.language import UNDECIDED
from similarity.preparation.words import MAX_CONTENT_CHARACTERS
from similarity.search.countries import country_key

Floats: TypeAlias = NDArray[np.float64]
Described: TypeAlias = Company | str
"""A company, or a description in free text."""

FINE_INDUSTRY = "industry_fine"
"""The attribute with a finer industry than the field `industry`, if companies have one."""
INDUSTRY_FIELDS = (f"attributes.{FINE_INDUSTRY}", "industry")
"""Fields of filters for the same industry, finest first."""
UNKNOWN = 0.5
"""The value of `same_industry` if there is no field in which both companies have an industry."""
LARGER = 0.5
"""The weight of a step of size upwards relative to one downwards: lists of peers name large companies more often."""
DENSE = 0.76
"""Mean cosine of the neighbours at SPARSITY_RANKS above which a neighbourhood counts as dense."""
SPARSITY_RANKS = slice(100, 200)
OTHER_LANGUAGE_WORDS = 0.1
"""The value of `shared_words` of two texts in different languages, whose words tell nothing."""
_BUCKETS = 1 << 16
CACHE_BYTES = 64 << 20
_BYTES_PER_TEXT = 300
"""The memory of a cached text beside its words, in bytes; a tenth above what tracemalloc reports."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_LETTERS = bytes(ord(chr(code).lower()) if chr(code).isalpha() else ord(" ") for code in range(128)).ljust(256)
"""A table for `bytes.translate`: ASCII letters in lower case, everything else as spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyFeatures:
    """The features of one company, or of a free text, from which the features of a pair are computed.

    `words`: buckets of the distinct words, int64 `[words]`, without the words of its own names. `fine_industry`,
    `industry`: in the form in which names are compared; "" if unknown. `country`: its `country_key`. `size`: in steps
    (`AttributeSchema.size_of`). `language`: of the text, `und` if it is not known.
    """

    words: NDArray[np.int64]
    fine_industry: str = ""
    industry: str = ""
    country: str = ""
    size: float | None = None
    language: str = UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFeatures:
    """Features of one anchor and each candidate, all float64 `[candidates]`.

    `cosine`: of the two vectors.
    `shared_words`: mean of two shares: of the anchor's words that the candidate has, and of the candidate's words that
    the anchor has. A word counts more if fewer candidates have it. Words of a company's own names do not count.
    OTHER_LANGUAGE_WORDS if the languages differ.
    `same_industry`: 1 if the two are equal in the finest field in which both have an industry, 0 if they differ there,
    UNKNOWN if there is no such field.
    `sparsity`: how far the anchor's neighbourhood is below DENSE; the same for all candidates.
    `size_gap`: steps of size between the two. A step to a smaller candidate counts 1, to a larger one LARGER. 0 if the
    size of one of them is unknown.
    `size_unknown`: 1 if the anchor has a size and the candidate has none, else 0.
    `same_country`: 1 if the countries are known and equal, else 0.
    """

    cosine: Floats
    shared_words: Floats
    same_industry: Floats
    sparsity: Floats
    size_gap: Floats
    size_unknown: Floats
    same_country: Floats


def company_features(described: Described, schema: AttributeSchema, language: str = UNDECIDED) -> CompanyFeatures:
    """Return the features of a company, or of a free text, which has only words; `language`: of its text."""
    if isinstance(described, str):
        return CompanyFeatures(words=distinct_words(described, ""), language=language)
    fine, industry = industries(described)
    return CompanyFeatures(
        words=distinct_words(described.description, " ".join((described.name, *described.aliases))),
        fine_industry=fine,
        industry=industry,
        country=country_key(described.country),
        size=schema.size_of(described),
        language=language,
    )


def pair_features(
    anchor: CompanyFeatures,
    candidates: Sequence[CompanyFeatures],
    cosines: Floats,
    *,
    neighbour_cosines: Sequence[float],
    head: int | None = None,
) -> PairFeatures:
    """Return the features of `anchor` and each candidate.

    `neighbour_cosines`: cosines of the anchor's neighbours, highest first; they tell how dense its neighbourhood is.
    `head`: how many of the candidates, from the first on, decide the weights of words; None for all.
    """
    gap, unknown = _size_features(anchor.size, [each.size for each in candidates])
    words = shared_words(anchor.words, [each.words for each in candidates], head=head)
    words[[_languages_differ(anchor, each) for each in candidates]] = OTHER_LANGUAGE_WORDS
    return PairFeatures(
        cosine=cosines,
        shared_words=words,
        same_industry=np.array([_same_industry(anchor, each) for each in candidates]),
        sparsity=np.full(len(candidates), sparsity(neighbour_cosines)),
        size_gap=gap,
        size_unknown=unknown,
        same_country=np.array([float(bool(anchor.country) and each.country == anchor.country) for each in candidates]),
    )


def sparsity(neighbour_cosines: Sequence[float]) -> float:
    """Return how far the mean cosine of the neighbours at SPARSITY_RANKS is below DENSE.

    In a small corpus the neighbours at these ranks are far away. The anchor's competitors then have cosines at which a
    large corpus has hundreds of merely related companies. If there are no such ranks, the last neighbour counts.

    >>> sparsity([0.9] * 200)
    0.0
    >>> round(sparsity([0.9, 0.55]), 2)
    0.21
    """
    farther = neighbour_cosines[SPARSITY_RANKS] or neighbour_cosines[-1:]
    return max(0.0, DENSE - float(np.mean(farther))) if len(farther) else 0.0


def shared_words(own: NDArray[np.int64], others: Sequence[NDArray[np.int64]], *, head: int | None = None) -> Floats:
    """Return the feature `shared_words`, `[candidates]`; 0 for a text without words. `head`: see `pair_features`."""
    if not others:
        return np.zeros(0)
    sizes = np.array([len(each) for each in others])
    everyone = np.concatenate([*others, own])
    counted = others[:head]
    # A word that only candidates after the head have counts as if one counted company had it.
    documents = np.maximum(np.bincount(np.concatenate([*counted, own]), minlength=_BUCKETS), 1)
    weights = np.zeros(_BUCKETS)
    # Inverse document frequency among anchor and candidates: a word that all of them have does not distinguish them.
    weights[everyone] = np.log((len(counted) + 2) / documents[everyone])
    of_anchor = np.zeros(_BUCKETS)
    of_anchor[own] = weights[own]
    candidate_of_word = np.repeat(np.arange(len(others)), sizes)
    joined = everyone[: sizes.sum()]
    total = np.bincount(candidate_of_word, weights=weights[joined], minlength=len(others))
    both = np.bincount(candidate_of_word, weights=of_anchor[joined], minlength=len(others))
    return np.asarray((both / max(of_anchor.sum(), 1e-9) + both / np.maximum(total, 1e-9)) / 2)


def industries(company: Company) -> tuple[str, str]:
    """Return the company's industry at each of INDUSTRY_FIELDS, as names are compared; "" where it has none."""
    return value_key(str(company.attributes.get(FINE_INDUSTRY, ""))), value_key(company.industry)


def _languages_differ(one: CompanyFeatures, other: CompanyFeatures) -> bool:
    return one.language != other.language and UNDECIDED not in {one.language, other.language}


def _same_industry(anchor: CompanyFeatures, other: CompanyFeatures) -> float:
    if anchor.fine_industry and other.fine_industry:
        return float(anchor.fine_industry == other.fine_industry)
    return float(anchor.industry == other.industry) if anchor.industry and other.industry else UNKNOWN


def _size_features(size: float | None, others: Sequence[float | None]) -> tuple[Floats, Floats]:
    if size is None:
        return np.zeros(len(others)), np.zeros(len(others))
    steps = np.array([0.0 if each is None else each - size for each in others])
    return np.maximum(-steps, LARGER * steps), np.array([float(each is None) for each in others])


class DistinctWords:
    """Returns the distinct words of texts, and caches those of the most recent texts. Thread-safe.

    The cache has up to `cache_bytes`, and holds no text. Only the first MAX_CONTENT_CHARACTERS of a text are read,
    because 250 Chinese texts of 200,000 characters took 41 s.
    """

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._limit = cache_bytes
        self.cached_bytes = 0
        self._known: OrderedDict[int, NDArray[np.int64]] = OrderedDict()
        self._lock = Lock()

    def __call__(self, text: str, names: str) -> NDArray[np.int64]:
        """Return the buckets of the distinct words of a text that are not in `names`, int64 `[words]`."""
        text = text[:MAX_CONTENT_CHARACTERS]
        key = hash((text, names))  # 64 bits, so that two texts hardly ever share one
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = _distinct(text) - _distinct(names)
        # Sorted, so that sums over them are the same in every process.
        words = np.array(sorted({crc32(word) % _BUCKETS for word in found}), dtype=np.int64)
        with self._lock:
            if key not in self._known:  # another thread may have been faster
                self._known[key] = words
                self.cached_bytes += words.nbytes + _BYTES_PER_TEXT
            while self.cached_bytes > self._limit:
                _, evicted = self._known.popitem(last=False)
                self.cached_bytes -= evicted.nbytes + _BYTES_PER_TEXT
        return words

    def clear(self) -> None:
        """Drop all cached words."""
        with self._lock:
            self._known.clear()
            self.cached_bytes = 0


# Consecutive queries read mostly the same texts.
distinct_words = DistinctWords()


def _distinct(text: str) -> set[bytes]:
    """Return the distinct words in lower case, as UTF-8."""
    if text.isascii():
        # Three times as fast as a regular expression. English words of two letters say little.
        return {word for word in text.encode().translate(_LETTERS).split() if len(word) > 2}
    # Bigrams of Chinese and Japanese have two characters.
    return {word.encode() for word in _WORD.findall(with_bigrams(text.lower()))}
