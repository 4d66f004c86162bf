"""Fakes: they implement the real interface, are deterministic and remember what they were asked."""

from collections.abc import Callable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from similarity.text import TextSettings
from tests.factories import DIMENSION, ENCODER_ID, unit_vector


class CountingEncoder:
    """Gives each text a vector of its own and remembers the texts."""

    encoder_id = ENCODER_ID
    text_settings = TextSettings()

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        """Unit vectors, float32 `[len(texts), DIMENSION]`."""
        self.texts += texts
        vectors = [unit_vector(crc32(text.encode())) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(len(texts), DIMENSION)
