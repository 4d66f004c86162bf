"""Erasures over HTTP: accepted while the caller waits, finished by one thread in the background.

The index records accepted erasures (`index.ledger`), so any process of the service finishes them, also after a restart.
One process at a time finishes erasures; the others wait for it.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from similarity.backoff import backoff
from similarity.errors import AuditUnavailable, SimilarityError
from similarity.feedback.protocol import Forgotten
from similarity.index.ledger import ErasureRecord
from similarity.upkeep.audit import FAILED, Action, AuditRecord, Entry
from similarity.upkeep.erasure import Eraser, remaining

from ..guards.callers import who
from ..guards.envelope import request_id
from ..wire import problems
from ..wire.problem_documents import Problem
from .write_schemas import ErasedGeneration, ErasureAnswer, Outcome
from .write_service import WriteService, missing_warnings, refusal

SECONDS_TO_RETRY = 60.0
LONGEST_SECONDS_TO_RETRY = 3600.0
"""A node may be down for hours, and each attempt rewrites files."""
SECONDS_TO_STOP = 5.0
SECONDS_TO_LOOK = 30.0
"""So often is looked for erasures of other processes, which may have ended before they finished them."""
REST = 10.0
"""Rest after a round, relative to its duration: a round may rewrite the whole file, and writes wait for that.

Lists and notes are searched during a rest, too, so that nobody reads the names of a company for that long.
"""
SECONDS_BETWEEN_SEARCHES = 1.0

log = logging.getLogger(__name__)


class ErasureThread:
    """Finishes recorded erasures; one round finishes all that were accepted before it began."""

    def __init__(
        self,
        eraser: Eraser,
        *,
        audit: AuditRecord | None = None,
        seconds_to_retry: float = SECONDS_TO_RETRY,
        seconds_to_look: float = SECONDS_TO_LOOK,
    ) -> None:
        self._eraser = eraser
        self._audit = audit or AuditRecord(None)
        self._seconds_to_retry = seconds_to_retry
        self._seconds_to_look = seconds_to_look
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._began = 0.0

    def wake(self) -> None:
        """Start a round, or one more after the current one."""
        self._wanted.set()
        with self._lock:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="erasures", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Start no more rounds, and wait a little for the current one; the rest is done after the next start."""
        with self._lock:
            self._stopping.set()
            thread = self._thread
        self._wanted.set()
        if thread is not None:
            thread.join(SECONDS_TO_STOP)

    def _run(self) -> None:
        pauses: Iterator[float] | None = None
        while not self._stopping.is_set():
            is_woken = self._wanted.wait(self._seconds_to_look if pauses is None else next(pauses))
            self._wanted.clear()
            if self._stopping.is_set():
                return
            if not is_woken and pauses is None and not self._are_running():
                continue
            self._began = time.monotonic()
            ended = self._tried(self._finish)
            rest = REST * (time.monotonic() - self._began)
            # A failed round may have waited for a store, but may also have rewritten a part of the files.
            self._rest(until=time.monotonic() + (rest if ended else min(rest, self._seconds_to_retry)))
            pauses = None if ended else pauses or backoff(self._seconds_to_retry, LONGEST_SECONDS_TO_RETRY)

    def _rest(self, *, until: float) -> None:
        searched: set[tuple[str, int]] = set()
        is_wanted = False
        while (left := until - time.monotonic()) > 0:
            if not self._wanted.wait(min(left, self._seconds_to_look)) and not self._are_running():
                continue
            self._wanted.clear()
            if self._stopping.is_set():
                return
            is_wanted = True
            began = time.monotonic()
            self._tried(lambda: self._eraser.forget_running(searched))
            # Lists and notes that are saved while they are searched are refused, so this has rests of its own.
            ended = time.monotonic()
            self._stopping.wait(min(max(SECONDS_BETWEEN_SEARCHES, REST * (ended - began)), max(until - ended, 0)))
        if is_wanted:
            self._wanted.set()

    def _finish(self) -> None:
        self._audit.write([])  # an erasure that could not be recorded is not finished
        ended = self._eraser.finish(on_begin=self._begin)
        self._audit.write([_entry(record) for record in ended])

    def _are_running(self) -> bool:
        try:
            return bool(self._eraser.index.ledger.running_erasures())
        except SimilarityError:
            return False  # looked for again soon

    def _begin(self) -> None:
        now = time.monotonic()
        if now - self._began > SECONDS_BETWEEN_SEARCHES:  # another process did the work meanwhile: no rest for that
            self._began = now

    def _tried(self, step: Callable[[], None]) -> bool:
        """Return whether the step need not be tried again."""
        try:
            step()
        except SimilarityError as error:
            if not self._stopping.is_set():
                log.warning("erasures wait for a store and are tried again: %s", error)
            return False
        except Exception:
            log.exception("an erasure failed; remove the cause, then erase again")
        return True  # an unexpected error would repeat


@dataclass(frozen=True, slots=True)
class ErasureService:
    """Accepts erasures through `eraser` if `writes` are on. `removed`: called with the ids of erased companies.

    `audit`: gets a line when an erasure begins, when it is accepted, and when it has ended.
    """

    eraser: Eraser
    writes: WriteService
    thread: ErasureThread
    audit: AuditRecord = field(default_factory=lambda: AuditRecord(None))
    removed: Callable[[Collection[str]], None] = lambda _: None

    def erase(self, company_id: str) -> ErasureAnswer:
        """Hide a company from every search, and start the rest in the background.

        Raises:
            Problem: writing is off, Kafka did not accept a delete, the audit record cannot be written, or a generation
                did not accept the deletion. Unless writing is off, a part may be erased: erase again.
            IndexUnavailable: the store does not answer. The company may or may not be erased later: erase again.
        """
        self.writes.require_on()
        warnings = missing_warnings(self.eraser.index, company_id)
        try:
            with self.audit.recorded(
                Action.ERASE, who=who(), request_id=request_id.get(), company_id=company_id
            ) as act:
                try:
                    record = self.eraser.accept(company_id)
                finally:
                    self.thread.wake()
                act.outcome = FAILED if record.problem else Outcome.ACCEPTED.value
        except AuditUnavailable as error:
            raise refusal(error) from error
        self.removed({company_id})
        if record.problem:
            raise Problem(problems.WRITE_FAILED, record.problem)
        return _answer(record).model_copy(update={"warnings": warnings})

    def status(self, company_id: str) -> ErasureAnswer:
        """Return the state of the last erasure of a company.

        Raises:
            Problem: there was none.
        """
        record = self.eraser.index.ledger.erasure(company_id)
        if record is None:
            raise Problem(problems.UNKNOWN_ERASURE, f"the company {company_id} was never erased from this index")
        return _answer(record)

    def resume(self) -> None:
        """If writing is on, continue the erasures that an earlier process accepted and did not finish."""
        if self.writes.commits is not None:
            self.thread.wake()


def _entry(record: ErasureRecord) -> Entry:
    return Entry(
        action=Action.ERASE, outcome=record.state.value, who="service", company_id=record.id, version=record.version
    )


def _answer(record: ErasureRecord) -> ErasureAnswer:
    return ErasureAnswer(
        id=record.id,
        state=record.state,
        problem=record.problem,
        erased=record.is_hidden,
        generations=[
            ErasedGeneration(generation=name, outcome=Outcome(result.outcome.value), reason=result.reason)
            for name, result in record.results.items()
        ],
        published=record.published,
        forgotten=Forgotten(**record.forgotten),
        compaction=record.compaction,
        remaining=remaining(record),
    )
