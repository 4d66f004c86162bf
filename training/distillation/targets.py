"""Teacher targets: the similarities of texts by teacher encoders, weak labels, lexical overlap and local scaling.

- Weak labels: a field of the companies' records, such as the industry, that indicates similar companies.
- Lexical overlap: an encoder may ignore rare words; two companies with the word "dialysis" may be more likely
  competitors than their cosine shows.
- Local scaling: in some industries all descriptions are near each other, in others none are, so equal cosines do not
  mean equal similarity. Cross-domain similarity local scaling (CSLS: Conneau et al., ICLR 2018,
  https://arxiv.org/abs/1710.04087) subtracts from the cosine of two texts half of each one's mean cosine to its nearest
  neighbours. Then cosines are comparable across texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.ingest.files import read_rows
from training.data.pairs import Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_DOCUMENT_SHARE = 0.1  # words in more than this share of all texts are ignored
MIN_DOCUMENTS = 2  # words in fewer texts are ignored: they cannot overlap
# Neighbours are searched in a random sample of this size, so that the work grows linearly with the corpus.
REFERENCE_TEXTS = 16_384
NEAREST = 32
_ROWS = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherTargets:
    """The teachers' similarities of t texts, stored as factors.

    Attributes:
        vectors: float32 `[t, d]`; the product of two rows is the teachers' cosine, plus the weight of each weak label
            that both texts share.
        lexical: float32 sparse `[t, w]`; the product of two rows is the weighted lexical overlap.
        local_scaling: float32 `[t]`; subtracted from a text's similarity to every other text: half of `hubness`, times
            the weight of local scaling (--local-scaling).
    """

    vectors: NDArray[np.float32]
    lexical: "csr_array[Any, Any]"
    local_scaling: NDArray[np.float32]

    @classmethod
    def of_vectors(cls, vectors: NDArray[np.float32]) -> Self:
        """Return targets that consist of the products of vectors only."""
        from scipy.sparse import csr_array

        count = len(vectors)
        return cls(
            vectors=vectors,
            lexical=csr_array((count, 0), dtype=np.float32),
            local_scaling=np.zeros(count, dtype=np.float32),
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def among(self, texts: Integers) -> NDArray[np.float32]:
        """Return the target similarities between all `texts` `[r]`, float32 `[r, r]`, at most 1 of a text with itself.

        A text may occur several times, because it also stands for its translations.
        """
        vectors, lexical, scaling = self.vectors[texts], self.lexical[texts], self.local_scaling[texts]
        similarities: NDArray[np.float32] = vectors @ vectors.T + (lexical @ lexical.T).toarray()
        similarities -= scaling[:, None] + scaling
        itself = texts[:, None] == texts
        similarities[itself] = np.minimum(similarities[itself], 1)
        return similarities


def shared_values(
    texts: Sequence[str], described: Sequence[str], companies: Path, field: str, weight: float
) -> NDArray[np.float32]:
    """Return float32 `[texts, values]`; the product of two rows is `weight` for equal values of the companies, else 0.

    `described` are the texts of the file's companies, in the order of the file. If several companies have the same
    text, the value of the first is used. A text without a value has the product 0 with all others.

    Raises:
        InvalidInput: no company has the field.
    """
    value_of: dict[str, str] = {}
    for row, text in zip(read_rows(companies), described, strict=True):
        value_of.setdefault(text, str(row.record.get(field) or ""))
    names = sorted(set(value_of.values()) - {""})
    if not names:
        raise InvalidInput(f"no company in {companies} has a field {field!r}")
    column = {name: number for number, name in enumerate(names)}
    rows = np.zeros((len(texts), len(names)), dtype=np.float32)
    for row_number, text in enumerate(texts):
        if value_of.get(text):
            rows[row_number, column[value_of[text]]] = np.sqrt(weight)
    return rows


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


def hubness(vectors: NDArray[np.float32], *, seed: int) -> NDArray[np.float32]:
    """Return each text's mean cosine to its `NEAREST` nearest reference texts, minus the mean over all texts.

    The result is float32 `[t]`.

    Args:
        vectors: unit vectors `[t, d]` of distinct texts, t at least 2.
        seed: selects the reference texts.
    """
    sample = np.random.default_rng(seed).permutation(len(vectors))[:REFERENCE_TEXTS]
    column = np.full(len(vectors), -1)
    column[sample] = np.arange(len(sample))
    reference = np.ascontiguousarray(vectors[sample].T)
    nearest = min(NEAREST, len(sample) - 1)
    means = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(vectors)))
        cosines = vectors[rows] @ reference
        itself = column[rows] >= 0
        cosines[np.flatnonzero(itself), column[rows][itself]] = -np.inf
        means[rows] = np.partition(cosines, -nearest, axis=1)[:, -nearest:].mean(axis=1)
    means -= means.mean()
    return means
