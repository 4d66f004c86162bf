"""The encoders of questions, each with its caches: vectors of free texts, and explanations.

A generation names the encoder it was made with. When another generation is promoted, the next question
begins to open its encoder in the background; nothing restarts. Encoders that no generation names any
more are released.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from similarity.errors import IndexUnavailable, InvalidBundle
from similarity.index.bundle_store import StoredEncoders
from similarity.index.protocol import Generation
from similarity.model.encoder_protocol import Encoder
from similarity.search.explainer import Explainer
from similarity.search.text_vectors import TextVectors

SECONDS_BETWEEN_LOOKS = 5.0
"""Looking means to read and check whole bundles, which every question would have to wait for."""
SECONDS_BETWEEN_CLEARINGS = 60.0
"""Generations are retired a few times a week; until then nothing can be let go of."""


class OnLookup(Protocol):
    """Called for each look-up in the cache called `cache`, with whether it held the entry."""

    def __call__(self, cache: str, *, hit: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class CachedEncoder:
    """One encoder's caches."""

    texts: TextVectors
    explainer: Explainer


class QueryEncoders:
    """Caches over `encoders` (by encoder id), each opened once, by a thread of its own. Thread-safe.

    `before_much` is called before much is encoded for one question, and may raise. A missing encoder is looked
    for again after SECONDS_BETWEEN_LOOKS, because its bundle may have been added. `needed` returns the ids of
    the encoders of all generations; without it every encoder is kept.
    """

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        *,
        on_lookup: OnLookup = lambda cache, *, hit: None,
        before_much: Callable[[], None] = lambda: None,
        needed: Callable[[], Collection[str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._encoders = encoders
        self._on_lookup = on_lookup
        self._before_much = before_much
        self._needed = needed
        self._clock = clock
        self._cleared = clock()
        self._lock = threading.Lock()
        self._models: dict[str, Future[CachedEncoder | None]] = {}
        self._missed: dict[str, float] = {}
        self._without = TextVectors(None)

    def notice(self, generation: Generation) -> None:
        """Begins to open the encoder of `generation`, if that has not been begun. Returns at once.

        Every SECONDS_BETWEEN_CLEARINGS it also lets go of what is not needed, beside the questions.
        """
        self._model(generation.encoder_id)
        if self._is_time_to_clear():
            threading.Thread(target=self.clear, name="clear-encoders", daemon=True).start()

    def texts(self, generation: Generation) -> TextVectors:
        """Vectors of free words to compare with those of `generation`; it says itself where there is no encoder.

        Waits for an encoder that is being opened, as `explainer` does.
        """
        model = self._model(generation.encoder_id).result()
        return self._without if model is None else model.texts

    def explainer(self, generation: Generation) -> Explainer | None:
        """What explains matches within `generation`; None where its encoder is not at hand."""
        model = self._model(generation.encoder_id).result()
        return None if model is None else model.explainer

    def forget(self, company_ids: Collection[str]) -> None:
        """Drops what is remembered of the descriptions of these companies."""
        with self._lock:
            opened = [each for each in self._models.values() if each.done() and each.exception() is None]
        for model in (each.result() for each in opened):
            if model is not None:
                model.explainer.forget(company_ids)

    def clear(self) -> None:
        """Lets go of the encoders that no generation names; a question that holds one goes on with it."""
        if self._needed is None:
            return
        with self._lock:
            # An encoder that is first asked for after this may be of a generation that `needed` does not see yet.
            known = set(self._models)
        try:
            needed = self._needed()
        except IndexUnavailable:  # they are kept for another minute
            return
        with self._lock:
            for encoder_id in known.difference(needed):
                self._models.pop(encoder_id, None)
                self._missed.pop(encoder_id, None)
        if isinstance(self._encoders, StoredEncoders):
            self._encoders.keep_only(needed)

    def _is_time_to_clear(self) -> bool:
        with self._lock:
            now = self._clock()
            if self._needed is None or now - self._cleared < SECONDS_BETWEEN_CLEARINGS:
                return False
            self._cleared = now
            return True

    def _model(self, encoder_id: str) -> Future[CachedEncoder | None]:
        with self._lock:
            model = self._models.get(encoder_id)
            if model is None or self._may_have_come(encoder_id):
                model = self._models[encoder_id] = Future()
                self._missed.pop(encoder_id, None)
                name = f"open-encoder-{encoder_id}"
                threading.Thread(target=self._open, args=(encoder_id, model), name=name, daemon=True).start()
            return model

    def _may_have_come(self, encoder_id: str) -> bool:
        missed = self._missed.get(encoder_id)
        return missed is not None and self._clock() - missed >= SECONDS_BETWEEN_LOOKS

    def _open(self, encoder_id: str, model: Future[CachedEncoder | None]) -> None:
        try:
            opened = self._made_with(self._encoders[encoder_id])
        except (KeyError, InvalidBundle):
            with self._lock:
                self._missed[encoder_id] = self._clock()
            model.set_result(None)
        except BaseException as error:
            with self._lock:
                # Whoever waits hears of it; whoever asks next tries anew.
                if self._models.get(encoder_id) is model:
                    del self._models[encoder_id]
            model.set_exception(error)
        else:
            model.set_result(opened)

    def _made_with(self, encoder: Encoder) -> CachedEncoder:
        return CachedEncoder(
            TextVectors(
                encoder,
                on_lookup=lambda hit: self._on_lookup("text", hit=hit),
                before_encoding=self._before_much,
            ),
            Explainer(
                encoder,
                on_lookup=lambda hit: self._on_lookup("reasons", hit=hit),
                before_much=self._before_much,
            ),
        )
