"""Teacher targets: the similarities of texts by teacher encoders, weak labels and lexical overlap."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from training.data.batches import Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherTargets:
    """The teachers' similarities of t texts, stored as factors.

    Attributes:
        vectors: float32 `[t, d]`; the product of two rows is the teachers' cosine plus the weight of weak labels.
        lexical: float32 sparse `[t, w]`; the product of two rows is the weight of lexical overlap.
        hubness: float32 `[t]`; subtracted from a text's similarity to every other text (local_scaling.py).
    """

    vectors: NDArray[np.float32]
    lexical: "csr_array[Any, Any]"
    hubness: NDArray[np.float32]

    @classmethod
    def of_vectors(cls, vectors: NDArray[np.float32]) -> Self:
        """Return targets that consist of the products of vectors only."""
        from scipy.sparse import csr_array

        count = len(vectors)
        return cls(
            vectors=vectors, lexical=csr_array((count, 0), dtype=np.float32), hubness=np.zeros(count, dtype=np.float32)
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def similarities(self, text: int) -> NDArray[np.float32]:
        """Return the similarity of all texts to one, float32 `[t]`, without local scaling (for neighbourhoods)."""
        similarities: NDArray[np.float32] = self.vectors @ self.vectors[text]
        similarities += (self.lexical @ self.lexical[[text]].T).toarray()[:, 0]
        return similarities

    def among(self, texts: Integers) -> NDArray[np.float32]:
        """Return the target similarities between all of `texts` `[r]`, float32 `[r, r]`."""
        vectors, lexical, hubness = self.vectors[texts], self.lexical[texts], self.hubness[texts]
        similarities: NDArray[np.float32] = vectors @ vectors.T + (lexical @ lexical.T).toarray()
        return similarities - hubness[:, None] - hubness
