"""Writes of many requests, committed together by one thread.

A writer must not have two batches in progress (`similarity.ingest.writer_leases`), a producer must be used by one
thread, and batches are more efficient for encoder and disk. Therefore requests wait in a queue, and one thread takes
all waiting requests, commits them as one batch, and gives each request its own results. Requests that arrive during
a commit form the next batch; there is no delay to fill a batch.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeAlias

from similarity.company import DeletedCompany
from similarity.errors import AuditUnavailable, IndexUnavailable, SimilarityError
from similarity.ingest.records import Change
from similarity.upkeep.audit import Action, AuditRecord, Entry

from ..guards.callers import who
from ..guards.envelope import request_id
from ..wire import problems
from ..wire.problem_documents import Problem
from .write_schemas import Outcome

MAX_QUEUED_REQUESTS = 16
"""Maximum number of queued requests. Below the number of server threads, so that some remain for reads."""
MAX_BATCH_CHANGES = 256
SECONDS_TO_WAIT = 20.0
"""Shorter than the request timeout, so that the client gets an answer about the state of its write."""
SECONDS_OPEN_WHEN_IDLE = 1.0
"""How long an idle destination stays open. A re-embed waits until its writer has acknowledged the candidate."""

STORED = (Outcome.APPLIED, Outcome.UNCHANGED, Outcome.ACCEPTED)
"""Outcomes where `Written.version` is the version of the write; otherwise it is the conflicting stored version."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of one change. `version`: the stored or the published version; None if it is unknown."""

    outcome: Outcome
    reason: str = ""
    version: int | None = None


Commit: TypeAlias = Callable[[Sequence[Change]], list[Written]]


class Destination(Protocol):
    """The store that changes are committed to: the index or a Kafka topic."""

    def opened(self) -> AbstractContextManager[Commit]:
        """Return the function that commits a batch durably, with one result per change; for one thread only.

        An exception fails every request of the batch.
        """


@dataclass(frozen=True, slots=True)
class _Request:
    changes: Sequence[Change]
    who: str = field(default_factory=who)
    request_id: str = field(default_factory=request_id.get)
    results: "Future[list[Written]]" = field(default_factory=Future)


class GroupCommit:
    """Commits to one destination. Thread-safe; its thread starts with the first write.

    The outcome of each change is written to `audit` before the request returns.
    """

    def __init__(
        self,
        destination: Destination,
        *,
        audit: AuditRecord | None = None,
        max_queued: int = MAX_QUEUED_REQUESTS,
        seconds_to_wait: float = SECONDS_TO_WAIT,
    ) -> None:
        self._destination = destination
        self._audit = audit or AuditRecord(None)
        self._max_queued = max_queued
        self._seconds_to_wait = seconds_to_wait
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def write(self, changes: Sequence[Change], *, patient: bool = False) -> list[Written]:
        """Return one result per change, in order, when they are durable. `patient`: wait for a slot in the queue.

        Raises:
            Problem: the queue is full, or the service stops: nothing was written. Or the commit timed out: the changes
                may or may not be stored.
            SimilarityError: raised by the destination.
        """
        request = _Request(changes)
        self._queue(request, seconds=self._seconds_to_wait if patient else 0)
        try:
            return request.results.result(timeout=self._seconds_to_wait)
        except TimeoutError:
            if request.results.cancel():
                raise Problem(problems.OVERLOADED, "the store is slow; nothing was written, send it again") from None
            raise Problem(
                problems.TOOK_TOO_LONG,
                "the store is slow; the write may or may not be stored: send it again",
            ) from None

    def close(self) -> None:
        """Refuse new writes, commit the queued ones, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _queue(self, request: _Request, *, seconds: float) -> None:
        with self._changed:
            there_is_room = self._changed.wait_for(
                lambda: self._stopping or len(self._waiting) < self._max_queued, timeout=seconds
            )
            if self._stopping:
                raise Problem(problems.STOPPING, "the service is stopping; nothing was written, send it again")
            if not there_is_room:
                raise Problem(problems.OVERLOADED, "too many writes are waiting; nothing was written, send it again")
            self._waiting.append(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="writes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while batch := self._next(wait=None):
            try:
                with self._destination.opened() as commit:
                    while batch:
                        _settle(batch, commit, self._audit)
                        batch = self._next(wait=SECONDS_OPEN_WHEN_IDLE)
            except Exception as error:
                if not isinstance(error, IndexUnavailable):  # `similarity.upkeep.outage` logs that
                    log.warning("the destination of writes cannot be opened or closed: %r", error)
                _fail(batch, error)

    def _next(self, *, wait: float | None) -> list[_Request]:
        """Return the next batch of queued requests; empty after `wait` seconds without one, and at the end."""
        batch: list[_Request] = []
        with self._changed:
            while not batch:
                self._changed.wait_for(lambda: self._waiting or self._stopping, timeout=wait)
                if not self._waiting:
                    return []
                batch = [request for request in self._take_requests() if request.results.set_running_or_notify_cancel()]
                self._changed.notify_all()
        return batch

    def _take_requests(self) -> list[_Request]:
        taken = [self._waiting.popleft()]
        while self._waiting and sum(len(request.changes) for request in taken) < MAX_BATCH_CHANGES:
            taken.append(self._waiting.popleft())
        return taken


def _settle(batch: Sequence[_Request], commit: Commit, audit: AuditRecord) -> None:
    try:
        audit.write([])  # raises, before anything is committed, if earlier entries are not on the disk
        committed = commit([change for request in batch for change in request.changes])
        audit.write(_entries(batch, committed))
        results = iter(committed)
    except AuditUnavailable as error:
        _fail(batch, error)
    except Exception as error:
        if isinstance(error, SimilarityError) or len(batch) == 1:
            # Some of it may be stored.
            with suppress(AuditUnavailable):
                audit.write(_entries(batch, [Written(Outcome.FAILED)] * sum(len(each.changes) for each in batch)))
            _fail(batch, error)
            return
        # An unexpected exception may be caused by one request, so commit each request separately.
        for request in batch:
            _settle([request], commit, audit)
    else:
        for request in batch:
            request.results.set_result(list(islice(results, len(request.changes))))


def _entries(batch: Sequence[_Request], results: Sequence[Written]) -> list[Entry]:
    changes = [(request, change) for request in batch for change in request.changes]
    return [
        Entry(
            action=Action.DELETE if isinstance(change, DeletedCompany) else Action.WRITE,
            outcome=written.outcome.value,
            who=request.who,
            request_id=request.request_id,
            company_id=change.id,
            version=written.version if written.version and written.outcome in STORED else change.version,
        )
        for (request, change), written in zip(changes, results, strict=True)
    ]


def _fail(batch: Sequence[_Request], error: Exception) -> None:
    for request in batch:
        if not request.results.done():
            request.results.set_exception(error)
