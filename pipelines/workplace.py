"""What a worker process works with: the index and its encoders, opened once and shared by all its threads.

    place = Workplace(index="https://search:9200/companies").open()

A workplace is plain values, so that it travels with a job to the workers. How to connect (addresses
beyond the index's own, passwords, certificates) does not travel: each worker reads SIMILARITY_
variables of its own environment.
"""

import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
class Workplace:
    """Where to work. What is empty here is as the worker's environment says (`similarity.settings`)."""

    index: str = ""
    bundles: str = ""
    threads: int | None = None

    def settings(self, environ: Mapping[str, str]) -> Settings:
        """The settings of an environment, with what is given here instead."""
        bundles = Path(self.bundles) if self.bundles else None
        return Settings.from_environment(environ, index=self.index, bundles=bundles, threads=self.threads)

    def open(self) -> "OpenWorkplace":
        """Opens the index; encoders are opened when a generation asks for them.

        Raises:
            InvalidInput: a setting cannot be used, or there is no such index.
            IndexUnavailable: the store does not answer.
        """
        settings = self.settings(os.environ)
        store = watched(open_index(settings.index, os.environ), Outage("the index"))
        index = audited(store, AuditRecord(audit_target(settings)), who=system_user())

        def open_encoder(bundle: ModelBundle) -> Encoder:
            return TextEncoder(bundle, threads=settings.threads, runtime=settings.runtime)

        bundles = store_folder(settings.index, settings.bundles)
        return OpenWorkplace(index, bundles, StoredEncoders(bundles, open_encoder))


class OpenWorkplace:
    """An open index, the folder of its bundles, its encoders by id.

    Safe to share between threads; the index is closed with the last user.
    """

    def __init__(self, index: CompanyIndex, store: Path, encoders: Mapping[str, Encoder]) -> None:
        self.index = index
        self.store = store
        self.encoders = encoders
        weakref.finalize(self, index.close)
