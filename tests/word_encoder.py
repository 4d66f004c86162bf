"""An encoder whose cosines are arithmetic: a text's vector counts the words that it knows."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from similarity.text import TextSettings
from tests.factories import ENCODER_ID


class WordEncoder:
    """One axis for each of `words`, and a last one for a text that has none of them. Remembers its calls."""

    encoder_id = ENCODER_ID
    text_settings = TextSettings()

    def __init__(self, *words: str) -> None:
        self.words = words
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        """Unit vectors, float32 `[len(texts), len(words) + 1]`."""
        self.calls.append(list(texts))
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(len(texts), -1)

    def _vector(self, text: str) -> NDArray[np.float64]:
        counts = np.array([*(text.lower().count(word) for word in self.words), 0], dtype=np.float64)
        counts[-1] = not counts.any()
        vector: NDArray[np.float64] = counts / np.linalg.norm(counts)
        return vector
