"""Writes of many requests, committed together by one thread.

An index wants one writer per thread that never has two batches under way (`similarity.ingest.writer_leases`), a
producer wants one user, and an encoder and a disk do more with several companies at once. So requests
queue up here, and one thread takes all that wait, commits them as one batch and gives each request
its own results. While a batch is under way the next one gathers: nobody waits for company.
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

from services.search.guards.callers import who
from services.search.guards.envelope import request_id
from services.search.wire import problems
from services.search.wire.problem_documents import Problem
from services.search.writes.write_schemas import Outcome
from similarity.company import DeletedCompany
from similarity.errors import AuditUnavailable, IndexUnavailable, SimilarityError
from similarity.ingest.records import Change
from similarity.upkeep.audit import Action, AuditRecord, Entry

MOST_WAITING = 16
"""Requests. Fewer than the server has threads, so that a slow store leaves some for those who only read."""
MOST_CHANGES = 256
SECONDS_TO_WAIT = 20.0
"""Less than a request may take as a whole, so that it is answered what is known of it."""
SECONDS_OPEN = 1.0
"""How long a sink stays open without work. While it is, a re-embed waits for it to notice a new candidate."""

STORED = (Outcome.APPLIED, Outcome.UNCHANGED, Outcome.ACCEPTED)
"""Outcomes whose version is that of the write; of others it is the version that stands in its way."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one change. `version` is the stored version, or the published one; None where it is unknown."""

    outcome: Outcome
    reason: str = ""
    version: int | None = None


Commit: TypeAlias = Callable[[Sequence[Change]], list[Written]]


class Sink(Protocol):
    """Where changes go."""

    def opened(self) -> AbstractContextManager[Commit]:
        """The function that commits a batch durably, one result per change; used by one thread only.

        What it raises is said to every request of the batch.
        """


@dataclass(frozen=True, slots=True)
class _Request:
    changes: Sequence[Change]
    who: str = field(default_factory=who)
    request_id: str = field(default_factory=request_id.get)
    results: "Future[list[Written]]" = field(default_factory=Future)


class GroupCommit:
    """Commits to one sink; safe to share between threads. Its thread starts with the first write.

    What became of each change is in `audit` before its request has its results.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        audit: AuditRecord | None = None,
        most_waiting: int = MOST_WAITING,
        seconds_to_wait: float = SECONDS_TO_WAIT,
    ) -> None:
        self._sink = sink
        self._audit = audit or AuditRecord(None)
        self._most_waiting = most_waiting
        self._seconds_to_wait = seconds_to_wait
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def write(self, changes: Sequence[Change], *, patient: bool = False) -> list[Written]:
        """One result per change, in order, once they are durable. A `patient` caller waits for a place in the queue.

        Raises:
            Problem: the queue is full, or the service stops; nothing was written. Or it took too
                long, and nobody knows.
            SimilarityError: what the sink raised.
        """
        request = _Request(changes)
        self._queue(request, seconds=self._seconds_to_wait if patient else 0)
        try:
            return request.results.result(timeout=self._seconds_to_wait)
        except TimeoutError:
            if request.results.cancel():
                raise Problem(problems.OVERLOADED, "the store is slow; nothing was written, send it again") from None
            raise Problem(
                problems.TOOK_TOO_LONG, "the store is slow; it may be written or not: send it again, which is harmless"
            ) from None

    def close(self) -> None:
        """Takes no more writes, commits those that wait, and ends the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _queue(self, request: _Request, *, seconds: float) -> None:
        with self._changed:
            there_is_room = self._changed.wait_for(
                lambda: self._stopping or len(self._waiting) < self._most_waiting, timeout=seconds
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
                with self._sink.opened() as commit:
                    while batch:
                        _settle(batch, commit, self._audit)
                        batch = self._next(wait=SECONDS_OPEN)
            except Exception as error:
                if not isinstance(error, IndexUnavailable):  # `similarity.upkeep.outage` logs that
                    log.warning("the place to write to cannot be opened or closed: %r", error)
                _fail(batch, error)

    def _next(self, *, wait: float | None) -> list[_Request]:
        """The requests that wait, up to a batch; none after `wait` seconds without any, and at the end."""
        batch: list[_Request] = []
        with self._changed:
            while not batch:
                self._changed.wait_for(lambda: self._waiting or self._stopping, timeout=wait)
                if not self._waiting:
                    return []
                batch = [request for request in self._taken() if request.results.set_running_or_notify_cancel()]
                self._changed.notify_all()
        return batch

    def _taken(self) -> list[_Request]:
        taken = [self._waiting.popleft()]
        while self._waiting and sum(len(request.changes) for request in taken) < MOST_CHANGES:
            taken.append(self._waiting.popleft())
        return taken


def _settle(batch: Sequence[_Request], commit: Commit, audit: AuditRecord) -> None:
    try:
        audit.write([])
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
        # A fault of ours that one request brought to light is no reason to refuse the others.
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
