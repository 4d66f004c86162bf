"""How near texts are to each other by what teaches a student: encoders, fields of the records, words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from training.data.batches import Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """For each of t texts: where teachers put it, its words, and how crowded it is there.

    Attributes:
        vectors: float32 `[t, d]`; the product of two rows is the teachers' cosine, and what weak labels add to it.
        words: float32 sparse `[t, w]`; the product of two rows is what shared words add.
        taken_off: float32 `[t]`; what a text takes off its nearness to every other (local_scaling.py).
    """

    vectors: NDArray[np.float32]
    words: "csr_array[Any, Any]"
    taken_off: NDArray[np.float32]

    @classmethod
    def by(cls, vectors: NDArray[np.float32]) -> Self:
        """By vectors alone."""
        from scipy.sparse import csr_array

        count = len(vectors)
        return cls(
            vectors=vectors, words=csr_array((count, 0), dtype=np.float32), taken_off=np.zeros(count, dtype=np.float32)
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def nearness(self, text: int) -> NDArray[np.float32]:
        """Of all texts to one, float32 `[t]`, crowding not taken off: what a neighbourhood is drawn by."""
        near: NDArray[np.float32] = self.vectors @ self.vectors[text]
        near += (self.words @ self.words[[text]].T).toarray()[:, 0]
        return near

    def targets(self, texts: Integers) -> NDArray[np.float32]:
        """What a student should say of `texts` `[r]` among themselves, float32 `[r, r]`."""
        vectors, words, taken_off = self.vectors[texts], self.words[texts], self.taken_off[texts]
        wanted: NDArray[np.float32] = vectors @ vectors.T + (words @ words.T).toarray()
        return wanted - taken_off[:, None] - taken_off
