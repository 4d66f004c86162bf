"""What of a model is kept at hand for questions: for each encoder the vectors of free words, and its reasons.

A generation names the encoder it was made with. So when another model is promoted, the next question
finds that one's encoder here; nothing is told and nothing restarts.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from services.search.asking.explaining import Explainer
from services.search.asking.text_vectors import TextVectors
from similarity.errors import InvalidBundle
from similarity.index.protocol import Generation
from similarity.ingest import Encoder


class CacheAsked(Protocol):
    """Told of each question to a cache whether it was answered from memory."""

    def __call__(self, cache: str, *, hit: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Model:
    """One encoder, and what is remembered of its work."""

    texts: TextVectors
    explainer: Explainer


class Models:
    """The models of `encoders` (by encoder id), each opened when a generation first asks for it. Thread-safe."""

    def __init__(
        self, encoders: Mapping[str, Encoder], *, cache_asked: CacheAsked = lambda cache, *, hit: None
    ) -> None:
        self._encoders = encoders
        self._cache_asked = cache_asked
        self._models: dict[str, Model] = {}
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
        if found is not None:
            return found
        with self._opening:
            if generation.encoder_id not in self._models:
                try:
                    encoder = self._encoders[generation.encoder_id]
                except (KeyError, InvalidBundle):
                    # Asked for again with the next question: the bundle may be put there meanwhile.
                    return None
                self._models[generation.encoder_id] = Model(
                    TextVectors(encoder, asked=lambda hit: self._cache_asked("text", hit=hit)), Explainer(encoder)
                )
            return self._models[generation.encoder_id]
