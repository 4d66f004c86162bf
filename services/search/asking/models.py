"""What of a model is kept at hand for questions: for each encoder the vectors of free words, and its reasons.

A generation names the encoder it was made with. So when another model is promoted, the next question
finds that one's encoder here; nothing is told and nothing restarts.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from services.search.asking.explaining import Explainer
from services.search.asking.text_vectors import TextVectors
from similarity.errors import InvalidBundle
from similarity.index.protocol import Generation
from similarity.ingest import Encoder

SECONDS_BETWEEN_LOOKS = 5.0
"""Looking means to read and check whole bundles, which every question would have to wait for."""


class CacheAsked(Protocol):
    """Told of each question to a cache whether it was answered from memory."""

    def __call__(self, cache: str, *, hit: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Model:
    """One encoder, and what is remembered of its work."""

    texts: TextVectors
    explainer: Explainer


class Models:
    """The models of `encoders` (by encoder id), each opened when a generation first asks for it. Thread-safe.

    One that is not there is looked for again after SECONDS_BETWEEN_LOOKS: its bundle may be put there meanwhile.
    """

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        *,
        cache_asked: CacheAsked = lambda cache, *, hit: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._encoders = encoders
        self._cache_asked = cache_asked
        self._clock = clock
        self._models: dict[str, Model] = {}
        self._missed: dict[str, float] = {}
        self._opening = threading.Lock()
        self._without = TextVectors(None)

    def texts(self, generation: Generation) -> TextVectors:
        """Vectors of free words to compare with those of `generation`; it says itself where there is no encoder."""
        model = self._of(generation)
        return self._without if model is None else model.texts

    def explainer(self, generation: Generation) -> Explainer | None:
        """What explains matches within `generation`; None where its encoder is not at hand."""
        model = self._of(generation)
        return None if model is None else model.explainer

    def _of(self, generation: Generation) -> Model | None:
        found = self._models.get(generation.encoder_id)
        if found is not None or self._missed_lately(generation.encoder_id):
            return found
        with self._opening:
            if generation.encoder_id not in self._models:
                # Those who waited here while another thread looked need not look too.
                if self._missed_lately(generation.encoder_id):
                    return None
                try:
                    encoder = self._encoders[generation.encoder_id]
                except (KeyError, InvalidBundle):
                    self._missed[generation.encoder_id] = self._clock()
                    return None
                self._models[generation.encoder_id] = Model(
                    TextVectors(encoder, asked=lambda hit: self._cache_asked("text", hit=hit)),
                    Explainer(encoder, asked=lambda hit: self._cache_asked("reasons", hit=hit)),
                )
            return self._models[generation.encoder_id]

    def _missed_lately(self, encoder_id: str) -> bool:
        missed = self._missed.get(encoder_id)
        return missed is not None and self._clock() - missed < SECONDS_BETWEEN_LOOKS
