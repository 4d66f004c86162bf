"""Lexical overlap of descriptions, used as a teacher that needs no training.

An encoder may ignore rare words: two companies with the word "dialysis" may be more likely competitors than their
cosine shows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from similarity.errors import InvalidInput

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_DOCUMENT_SHARE = 0.1  # words in more than this share of all texts are ignored
MIN_DOCUMENTS = 2  # words in fewer texts are ignored: they cannot overlap


def overlap_factors(texts: Sequence[str], *, weight: float) -> "csr_array[Any, Any]":
    """Return sparse float32 `[texts, words]`; the product of two rows is the lexical overlap, from 0 to `weight`.

    A row contains the square roots of a text's TF-IDF weights, which sum to 1. So the product is `weight` times their
    Bhattacharyya coefficient (Σ √(p q), 0 to 1; https://en.wikipedia.org/wiki/Bhattacharyya_distance). The term
    frequency is 1 + log(count); English stop words are ignored.

    Raises:
        InvalidInput: no two texts share a word that is not ignored.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        sublinear_tf=True,
        stop_words="english",
        min_df=MIN_DOCUMENTS,
        max_df=max(MAX_DOCUMENT_SHARE, MIN_DOCUMENTS / len(texts)),
        norm="l1",
        dtype=np.float32,
    )
    try:
        shares = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise InvalidInput(f"no word is shared by two of {len(texts):,} texts ({error}); omit --words") from error
    return csr_array(shares.sqrt() * np.float32(np.sqrt(weight)))
