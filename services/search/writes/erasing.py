"""Erasing a company everywhere: every generation, the message log, and what people added about it.

When an erasure has been answered, nobody finds the company any more. Its words stay in the files until
those are rewritten, which may take minutes: that goes on in the background, unless the caller waits.
"""

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from services.search.guards.callers import who
from services.search.guards.envelope import request_id
from services.search.writes.write_schemas import Compaction, ErasedGeneration, ErasureAnswer, Forgotten, Outcome
from services.search.writes.writing import WriteService, refusal, write_one
from similarity.audit import FAILED, Action, AuditRecord
from similarity.company import DeletedCompany, EmbeddedCompany, version_of
from similarity.erasure import erase, own_names
from similarity.errors import AuditUnavailable, SimilarityError, UnknownGeneration
from similarity.index.protocol import CompanyIndex
from similarity.ingest import utc_now
from similarity.workspace.protocol import Workspace

BACKUPS = "Backups and snapshots hold the company until they expire. After a restore, erase again."
FILES = "Files made from the index or for it (exports, rejects, training pairs) hold it; delete them."
NO_TOPIC = "If a message log or a file feeds the index, it may bring the company back; send a delete there too."
OTHER_PROCESSES = (
    "Other processes of the service hold its phrases in memory, where no answer finds them, until they end."
)
TOPIC = "Older messages about it stay in Kafka until the topic is compacted or its retention ends."
NOT_REWRITTEN = "the files could not be rewritten; erase again with ?wait=true, or run: similarity erase"

log = logging.getLogger(__name__)


class Compactor:
    """Rewrites the files of index and workspace; one run serves all that was erased before it began."""

    def __init__(self, index: CompanyIndex, workspace: Workspace | None) -> None:
        self._index = index
        self._workspace = workspace
        self._lock = threading.Lock()
        self._erased: str | None = None
        self._running = False

    def run(self, company_id: str) -> None:
        """Rewrites all files; returns when what was erased is in none of them."""
        for generation in self._index.generations():
            with suppress(UnknownGeneration):  # retired meanwhile, and its files with it
                self._index.compact(generation.name)
        if self._workspace is not None:
            self._workspace.forget_company(company_id, compact=True)

    def run_soon(self, company_id: str) -> None:
        """Rewrites all files in the background, once more if that is going on already."""
        with self._lock:
            self._erased = company_id
            if not self._running:
                self._running = True
                threading.Thread(target=self._run_while_needed, name="compaction", daemon=True).start()

    def _run_while_needed(self) -> None:
        while True:
            with self._lock:
                company_id, self._erased = self._erased, None
                self._running = company_id is not None
            if company_id is None:
                return
            try:
                self.run(company_id)
            except SimilarityError as error:
                log.warning("%s: %s", NOT_REWRITTEN, error)
            except Exception:
                log.exception(NOT_REWRITTEN)


@dataclass(frozen=True, slots=True)
class ErasureService:
    """Erases from `index` and `workspace`; `publishes` says that `writes` go to Kafka. `removed` is told of the ids."""

    index: CompanyIndex
    writes: WriteService
    compactor: Compactor
    workspace: Workspace | None = None
    publishes: bool = False
    audit: AuditRecord = field(default_factory=lambda: AuditRecord(None))
    clock: Callable[[], datetime] = utc_now
    removed: Callable[[Collection[str]], None] = lambda _: None

    def erase(self, company_id: str, *, wait: bool) -> ErasureAnswer:
        """Erases a company. With `wait`, it is gone from the disk too when this returns.

        Every step may be repeated: after an error, erase again.

        Raises:
            Problem: writing is off, Kafka did not take the delete, or the audit record cannot be written; nothing
                was erased then.
            IndexUnavailable: a store does not answer; what was erased before stays erased.
        """
        self.writes.require_on()
        try:
            with self.audit.recorded(
                Action.ERASE, who=who(), request_id=request_id.get(), company_id=company_id
            ) as act:
                answer = self._erase(company_id, wait=wait)
                if not answer.erased:
                    act.outcome = FAILED
        except AuditUnavailable as error:
            raise refusal(error) from error
        return answer

    def _erase(self, company_id: str, *, wait: bool) -> ErasureAnswer:
        commits = self.writes.require_on()
        now = self.clock()
        known = self._known(company_id)
        names = own_names(self.index, company_id)
        if self.publishes:
            # As new as the tombstones in the index, so that a replay of the topic ends in the same state.
            version = max([version_of(now, now=now, deleted=True), *(each.version + 1 for each in known)])
            write_one(commits, DeletedCompany(id=company_id, version=version))
        results = erase(self.index, company_id, now=now, compact=False)
        self.removed({company_id})
        forgotten = Forgotten(events=0, lists=0, looks=0)
        if self.workspace is not None:
            done = self.workspace.forget_company(company_id, names=names, compact=False)
            forgotten = Forgotten(events=done.events, lists=done.lists, looks=done.looks)
        generations = [
            ErasedGeneration(generation=name, outcome=Outcome(result.outcome.value), reason=result.reason)
            for name, result in results.items()
        ]
        if wait:
            self.compactor.run(company_id)
        else:
            self.compactor.run_soon(company_id)
        return ErasureAnswer(
            id=company_id,
            erased=all(each.outcome in {Outcome.APPLIED, Outcome.UNCHANGED} for each in generations),
            generations=generations,
            published=self.publishes,
            forgotten=forgotten,
            compaction=Compaction.DONE if wait else Compaction.RUNNING,
            remaining=[BACKUPS, TOPIC if self.publishes else NO_TOPIC, FILES, OTHER_PROCESSES],
        )

    def _known(self, company_id: str) -> list[EmbeddedCompany]:
        """What the generations hold of the company."""
        known: list[EmbeddedCompany] = []
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                known += self.index.get(generation.name, [company_id]).values()
        return known
