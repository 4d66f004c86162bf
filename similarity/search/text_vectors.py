"""Vectors of free text, with a cache of the most recent."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.index.protocol import Generation
from similarity.search.errors import EncoderNotLoaded

REMEMBERED = 256


class QueryEncoder(Protocol):
    """What free text needs of an encoder; `similarity.encoder.TextEncoder` is one."""

    @property
    def encoder_id(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 `[len(texts), dimension]`."""


class TextVectors:
    """Vectors of texts by `encoder`, with a cache of the `remembered` most recent. Thread-safe.

    `on_lookup` is called for each text with whether the cache held it; `before_encoding` is called before texts
    are encoded, and may raise.
    """

    def __init__(
        self,
        encoder: QueryEncoder | None,
        *,
        remembered: int = REMEMBERED,
        on_lookup: Callable[[bool], None] = lambda _: None,
        before_encoding: Callable[[], None] = lambda: None,
    ) -> None:
        self._encoder = encoder
        self._remembered = remembered
        self._on_lookup = on_lookup
        self._before_encoding = before_encoding
        self._memory: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    @property
    def encoder_id(self) -> str | None:
        """Of the loaded encoder; None if there is none."""
        return self._encoder.encoder_id if self._encoder else None

    def of(self, texts: Iterable[str], generation: Generation) -> dict[str, Vector]:
        """The vector of each text, to compare with those of `generation`; what is new goes to the encoder in one call.

        Raises:
            EncoderNotLoaded: the encoder of `generation` is not loaded.
        """
        wanted = list(dict.fromkeys(texts))
        if not wanted:
            return {}
        reason = self.missing_for(generation)
        if reason is not None or self._encoder is None:
            raise EncoderNotLoaded(reason or "")
        known = self._recalled(wanted)
        new = [text for text in wanted if text not in known]
        if new:
            self._before_encoding()
            known |= self._kept(new, self._encoder.encode(new))
        return known

    def missing_for(self, generation: Generation) -> str | None:
        """Why free text cannot be compared with `generation`; None if it can."""
        if self.encoder_id == generation.encoder_id:
            return None
        return (
            f"the bundle of encoder {generation.encoder_id}, which generation {generation.name} was made with, is not "
            "loaded; name its folder with --bundle FOLDER or SIMILARITY_BUNDLE"
        )

    def _recalled(self, texts: Sequence[str]) -> dict[str, Vector]:
        with self._lock:
            known = {text: self._memory[text] for text in texts if text in self._memory}
            for text in known:
                self._memory.move_to_end(text)
        for text in texts:
            self._on_lookup(text in known)
        return known

    def _kept(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> dict[str, Vector]:
        # Copies, so that one remembered row does not keep the whole batch.
        new: dict[str, Vector] = {text: vector.copy() for text, vector in zip(texts, vectors, strict=True)}
        with self._lock:
            self._memory |= new
            while len(self._memory) > self._remembered:
                self._memory.popitem(last=False)
        return new
