"""Lexical overlap of descriptions, as a teacher that needs no training.

An encoder may ignore rare words: two companies that both say "dialysis" can be likelier competitors than their
vectors show.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from similarity.errors import InvalidInput

if TYPE_CHECKING:
    from scipy.sparse import csr_array

COMMON = 0.1  # words in more than this share of all texts are ignored
TEXTS_OF_A_WORD = 2  # a word of one text is shared by none


def overlap_factors(texts: Sequence[str], *, weight: float) -> "csr_array[Any, Any]":
    """Sparse rows float32 `[texts, words]` whose product is `weight` for the same words, 0 where none is shared.

    A row holds square roots of a text's TF-IDF weights, which sum to one, so the product is their Bhattacharyya
    coefficient (Σ √(p q), 0 to 1; https://en.wikipedia.org/wiki/Bhattacharyya_distance). Words are counted as
    1 + log, English stop words not at all.

    Raises:
        InvalidInput: no two texts share a word that is not common.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    counted = TfidfVectorizer(
        sublinear_tf=True,
        stop_words="english",
        min_df=TEXTS_OF_A_WORD,
        max_df=max(COMMON, TEXTS_OF_A_WORD / len(texts)),
        norm="l1",
        dtype=np.float32,
    )
    try:
        shares = counted.fit_transform(texts)
    except ValueError as error:
        raise InvalidInput(f"no word is shared by two of {len(texts):,} texts ({error}); leave words out") from error
    return csr_array(shares.sqrt() * np.float32(np.sqrt(weight)))
