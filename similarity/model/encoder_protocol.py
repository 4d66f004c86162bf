"""The interface of a text encoder that the rest of the library uses."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from similarity.text import TextSettings


class Encoder(Protocol):
    """A text encoder; `similarity.encoder.TextEncoder` is one."""

    @property
    def encoder_id(self) -> str: ...

    @property
    def text_settings(self) -> TextSettings: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, float32 `[len(texts), dimension]`."""
