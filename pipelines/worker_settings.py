"""The settings of the worker processes of a job, and the index and encoders that a process opens with them.

    resources = WorkerSettings(index="https://search:9200/companies").open()

WorkerSettings are plain values, so that they can be serialised with the job. Other connection settings (further
addresses, passwords, certificates) are not part of the job. Each worker reads them from the SIMILARITY_ variables of
its own environment.
"""

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.index.bundle_store import StoredEncoders, store_folder
from similarity.index.opening import open_index
from similarity.index.protocol import CompanyIndex
from similarity.model.encoder_protocol import Encoder
from similarity.settings import Settings
from similarity.upkeep.audit import AuditRecord, audit_target, audited, system_user
from similarity.upkeep.outage import Outage, watched


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The index, the bundle store and the threads of a worker process.

    Empty values are read from the environment of the process (`similarity.settings.Settings`).
    """

    index: str = ""
    bundles: str = ""
    threads: int | None = None

    def resolve(self, environ: Mapping[str, str]) -> Settings:
        """Return the settings in `environ`, overridden by the values that are not empty here."""
        bundles = Path(self.bundles) if self.bundles else None
        return Settings.from_environment(environ, index=self.index, bundles=bundles, threads=self.threads)

    def open(self) -> "WorkerResources":
        """Open the index. An encoder is opened when a generation first needs it.

        Raises:
            InvalidInput: a setting is invalid, or the index does not exist.
            IndexUnavailable: the index does not answer.
        """
        settings = self.resolve(os.environ)
        watched_index = watched(open_index(settings.index, os.environ), Outage("the index"))
        index = audited(watched_index, AuditRecord(audit_target(settings)), who=system_user())

        encoded = EncodedTexts()

        def open_encoder(bundle: ModelBundle) -> Encoder:
            return CountingEncoder(TextEncoder(bundle, threads=settings.threads, runtime=settings.runtime), encoded)

        bundles = store_folder(settings.index, settings.bundles)
        return WorkerResources(index, bundles, StoredEncoders(bundles, open_encoder), encoded)


class EncodedTexts(threading.local):
    """The number of texts that a thread has encoded. Each thread has a count of its own, which it may reset."""

    texts = 0


class CountingEncoder:
    """An encoder that counts the texts it encodes."""

    def __init__(self, encoder: Encoder, encoded: EncodedTexts) -> None:
        self.encoder_id = encoder.encoder_id
        self.text_settings = encoder.text_settings
        self._encoder = encoder
        self._encoded = encoded

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of the texts."""
        vectors = self._encoder.encode(texts)
        self._encoded.texts += len(texts)
        return vectors


class WorkerResources:
    """The resources of a worker process: an open index, its bundle store, and its encoders by id.

    `encoded`: how many texts the calling thread has encoded. Safe to share between threads. The index is closed
    when the object is garbage-collected.
    """

    def __init__(
        self, index: CompanyIndex, store: Path, encoders: Mapping[str, Encoder], encoded: EncodedTexts
    ) -> None:
        self.index = index
        self.store = store
        self.encoders = encoders
        self.encoded = encoded
        weakref.finalize(self, index.close)
