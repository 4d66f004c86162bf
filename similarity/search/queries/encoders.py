"""The encoders of queries, each with two caches: vectors of free texts, and explanations.

Each generation names its encoder. After a promotion, the next query starts to load the new encoder in the
background; no restart is needed. Encoders that no generation names are released.
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
from similarity.search.explanations.explainer import Explainer
from similarity.search.queries.text_vectors import TextVectors

SECONDS_BETWEEN_ATTEMPTS = 5.0
"""An attempt reads and checks whole bundles, and queries wait for it."""
SECONDS_BETWEEN_CLEARINGS = 60.0
"""Encoders can be released only when a generation was retired, a few times a week."""


class OnLookup(Protocol):
    """Called for each look-up in the cache named `cache`, with whether it holds the entry."""

    def __call__(self, cache: str, *, hit: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class CachedEncoder:
    """The caches of one encoder."""

    texts: TextVectors
    explainer: Explainer


class QueryEncoders:
    """Loads each of `encoders` (by encoder id) once, in a thread of its own, with its caches. Thread-safe.

    `before_heavy_work` is called before free texts or many descriptions are encoded, and may raise. A missing encoder
    is tried again after SECONDS_BETWEEN_ATTEMPTS, because its bundle may have been added. `needed` returns the encoder
    ids of all generations; without it every encoder is kept.
    """

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        *,
        on_lookup: OnLookup = lambda cache, *, hit: None,
        before_heavy_work: Callable[[], None] = lambda: None,
        needed: Callable[[], Collection[str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._encoders = encoders
        self._on_lookup = on_lookup
        self._before_heavy_work = before_heavy_work
        self._needed = needed
        self._clock = clock
        self._cleared = clock()
        self._lock = threading.Lock()
        self._models: dict[str, Future[CachedEncoder | None]] = {}
        self._missed: dict[str, float] = {}
        self._without = TextVectors(None)

    def load_in_background(self, generation: Generation) -> None:
        """Start to load the encoder of `generation` if it is not loaded or loading. Returns at once.

        Every SECONDS_BETWEEN_CLEARINGS it also starts a thread that releases encoders.
        """
        self._model(generation.encoder_id)
        if self._is_time_to_clear():
            threading.Thread(target=self.clear, name="clear-encoders", daemon=True).start()

    def text_vectors(self, generation: Generation) -> TextVectors:
        """Return the vectors of free texts for `generation`; see `TextVectors.reason_unavailable`.

        Waits for an encoder that is being loaded, as `explainer` does.
        """
        model = self._model(generation.encoder_id).result()
        return self._without if model is None else model.texts

    def explainer(self, generation: Generation) -> Explainer | None:
        """Return the explainer of `generation`; None if its encoder is not available."""
        model = self._model(generation.encoder_id).result()
        return None if model is None else model.explainer

    def forget(self, company_ids: Collection[str]) -> None:
        """Remove the descriptions of these companies from the caches."""
        with self._lock:
            opened = [each for each in self._models.values() if each.done() and each.exception() is None]
        for model in (each.result() for each in opened):
            if model is not None:
                model.explainer.forget(company_ids)

    def clear(self) -> None:
        """Release the encoders that no generation names; a running query keeps the one that it uses."""
        if self._needed is None:
            return
        with self._lock:
            # An encoder that is first used after this may belong to a generation that `needed` does not see yet.
            known = set(self._models)
        try:
            needed = self._needed()
        except IndexUnavailable:  # keep all of them for another minute
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
            if model is None or self._is_due_again(encoder_id):
                model = self._models[encoder_id] = Future()
                self._missed.pop(encoder_id, None)
                name = f"open-encoder-{encoder_id}"
                threading.Thread(target=self._open, args=(encoder_id, model), name=name, daemon=True).start()
            return model

    def _is_due_again(self, encoder_id: str) -> bool:
        missed = self._missed.get(encoder_id)
        return missed is not None and self._clock() - missed >= SECONDS_BETWEEN_ATTEMPTS

    def _open(self, encoder_id: str, model: Future[CachedEncoder | None]) -> None:
        try:
            opened = self._with_caches(self._encoders[encoder_id])
        except (KeyError, InvalidBundle):
            with self._lock:
                self._missed[encoder_id] = self._clock()
            model.set_result(None)
        except BaseException as error:
            with self._lock:
                # The waiting threads get this exception; the next query tries again.
                if self._models.get(encoder_id) is model:
                    del self._models[encoder_id]
            model.set_exception(error)
        else:
            model.set_result(opened)

    def _with_caches(self, encoder: Encoder) -> CachedEncoder:
        return CachedEncoder(
            TextVectors(
                encoder,
                on_lookup=lambda hit: self._on_lookup("text", hit=hit),
                before_encoding=self._before_heavy_work,
            ),
            Explainer(
                encoder,
                on_lookup=lambda hit: self._on_lookup("reasons", hit=hit),
                before_heavy_work=self._before_heavy_work,
            ),
        )
