"""A re-embed in a process of its own, which can be told where to be killed."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.errors import LeaseHeld, LeaseLost
from similarity.generations.gate import GateReport
from similarity.generations.reembed import Options, reembed
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.text import TextSettings
from tests.factories import DIMENSION, make_generation, unit_vector

OLD = make_generation("old")
NEW = make_generation("new", encoder_id="encoder-2", bundle_id="bundle-2", created_at=datetime(2025, 4, 1, tzinfo=UTC))
NOW = datetime(2025, 4, 1, 12, tzinfo=UTC)
LEASE_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0


class NewEncoder:
    """The encoder of the new generation: a vector follows from the text."""

    encoder_id = NEW.encoder_id
    text_settings = TextSettings()

    def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
        """Unit vectors, float32 `[len(texts), DIMENSION]`."""
        return np.array([vector_of(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)


def vector_of(text: str) -> Vector:
    return unit_vector(crc32(text.encode()))


def run(settings: ElasticSettings, kill_at: str) -> None:
    """Re-embeds `OLD` as `NEW`; kills itself when a step of this name, or a `chunk`, is done."""

    def on_event(what: str) -> None:
        if what == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    options = Options(
        gate=lambda live, candidate: GateReport(passed=True),
        # Takes half a minute where something was deleted, so only where a kill needs it.
        compact=kill_at == "compact",
        lease_seconds=LEASE_SECONDS,
        on_step=lambda name, detail: on_event(name),
        on_documents=lambda documents: on_event("chunk"),
    )
    give_up = time.monotonic() + LONGEST_WAIT_SECONDS
    with closing(ElasticIndex(settings)) as index:
        while True:
            try:
                reembed(index, NEW, encoder=NewEncoder(), now=NOW, options=options)
            except (LeaseHeld, LeaseLost):
                # Held by the process that was killed: that ends soon. Lost where a renewal came late: begin again.
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)
            else:
                return
