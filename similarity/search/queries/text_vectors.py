"""Vectors of free texts, with a cache."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.index.protocol import Generation
from similarity.search.errors import EncoderNotLoaded

TEXT_CACHE_SIZE = 256


class QueryEncoder(Protocol):
    """The part of an encoder that free text needs; `similarity.encoder.TextEncoder` implements it."""

    @property
    def encoder_id(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, float32 `[len(texts), dimension]`."""


class TextVectors:
    """Encodes texts with `encoder`, and caches the `cache_size` most recent vectors. Thread-safe.

    `on_lookup` is called for each text, with whether the cache holds it. `before_encoding` is called before texts
    are encoded, and may raise.
    """

    def __init__(
        self,
        encoder: QueryEncoder | None,
        *,
        cache_size: int = TEXT_CACHE_SIZE,
        on_lookup: Callable[[bool], None] = lambda _: None,
        before_encoding: Callable[[], None] = lambda: None,
    ) -> None:
        self._encoder = encoder
        self._cache_size = cache_size
        self._on_lookup = on_lookup
        self._before_encoding = before_encoding
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    @property
    def encoder_id(self) -> str | None:
        """The id of the loaded encoder; None if no encoder is loaded."""
        return self._encoder.encoder_id if self._encoder else None

    def encode(self, texts: Iterable[str], generation: Generation) -> dict[str, Vector]:
        """Return the vector of each text. All texts that are not cached go to the encoder in one call.

        Raises:
            EncoderNotLoaded: the encoder of `generation` is not loaded.
        """
        wanted = list(dict.fromkeys(texts))
        if not wanted:
            return {}
        reason = self.reason_unavailable(generation)
        if reason is not None or self._encoder is None:
            raise EncoderNotLoaded(reason or "")
        known = self._look_up(wanted)
        new = [text for text in wanted if text not in known]
        if new:
            self._before_encoding()
            known |= self._store(new, self._encoder.encode(new))
        return known

    def reason_unavailable(self, generation: Generation) -> str | None:
        """Return why texts cannot be encoded for `generation`; None if they can."""
        if self.encoder_id == generation.encoder_id:
            return None
        return (
            f"the bundle of encoder {generation.encoder_id}, which generation {generation.name} needs, is not loaded; "
            "give its folder with --bundle FOLDER or SIMILARITY_BUNDLE (in Python: Searcher(index, "
            "{encoder.encoder_id: encoder}))"
        )

    def _look_up(self, texts: Sequence[str]) -> dict[str, Vector]:
        with self._lock:
            known = {text: self._cache[text] for text in texts if text in self._cache}
            for text in known:
                self._cache.move_to_end(text)
        for text in texts:
            self._on_lookup(text in known)
        return known

    def _store(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> dict[str, Vector]:
        # Copies, so that one cached row does not keep the whole batch in memory.
        new: dict[str, Vector] = {text: vector.copy() for text, vector in zip(texts, vectors, strict=True)}
        with self._lock:
            self._cache |= new
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return new
