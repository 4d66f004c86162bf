"""Group commit: one thread commits the writes of many requests together.

There are three reasons for one thread. A writer must not have two batches in progress
(`similarity.ingest.writer_leases`). A Kafka producer must be used by one thread. Encoder and disk handle large batches
more efficiently.

Requests wait in a queue. The thread takes queued requests, commits them as one batch, and gives each request its own
results. Requests that arrive during a commit wait for a later batch; there is no delay to fill a batch. Callers take
turns, and batches are small, so that a caller waits little longer for its write while another one sends many.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import accumulate, islice
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

MAX_WAITING_REQUESTS = 16
FULL_BATCH = 16
SHARED_BATCH = 4
"""Maximum weight of a batch while one caller writes (FULL_BATCH), and while several callers write (SHARED_BATCH).

All other writes wait while a batch is encoded and stored. The limits are also for the parts of a bulk upload.
"""
CHARACTERS_OF_WEIGHT = 1_000
"""A change has weight 1, and 1 more for each CHARACTERS_OF_WEIGHT characters, up to SHARED_BATCH.

2,000 characters fill the encoder, and take 1.5 times as long as 300; 60,000 take 1.8 times as long.
"""
SECONDS_SHARED = 1.0
"""How long after its last batch a caller still counts as one that writes."""
MAX_WAIT_SECONDS = 20.0
"""Maximum duration of `GroupCommit.write`, in the queue and during the commit together.

Shorter than the default request timeout, so that the client gets an answer about the state of its write.
"""
SLOT_SECONDS = 0.5
"""How long a write waits for a slot.

A commit takes milliseconds, so this is enough if the store is fast. If the store is slow, a waiting write holds its
request permit, which readers need too, for at most this time.
"""
IDLE_SECONDS_OPEN = 1.0
"""How long an idle destination stays open.

While open, the index destination holds a writer lease. An idle writer acknowledges no candidate, so a re-embed would
wait for it.
"""

STORED = (Outcome.APPLIED, Outcome.UNCHANGED, Outcome.ACCEPTED)
"""Outcomes whose `Written.version` is the version of the write; with others it is the conflicting stored version."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of one change. `version`: the stored or the published version; None if it is unknown."""

    outcome: Outcome
    reason: str = ""
    version: int | None = None


Commit: TypeAlias = Callable[[Sequence[Change]], list[Written]]


class Destination(Protocol):
    """Destination of changes: the index or a Kafka topic."""

    def opened(self) -> AbstractContextManager[Commit]:
        """Open the destination; return the function that commits a batch durably and returns one result per change.

        Only one thread may call the function. If it raises a SimilarityError, every request of the batch fails. After
        any other exception, the requests are committed again one by one.
        """


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """The changes of one request, with the caller and the id of the request for the audit record."""

    changes: Sequence[Change]
    who: str = field(default_factory=who)
    request_id: str = field(default_factory=request_id.get)
    results: "Future[list[Written]]" = field(default_factory=Future)

    @property
    def weight(self) -> int:
        return sum(map(weight_of, self.changes))


class GroupCommit:
    """Commits the writes of many requests to one destination. Thread-safe; its thread starts with the first write.

    `audit`: gets the outcome of each change before the request returns. `max_waiting`: maximum number of requests in
    the queue and in the commit together. `max_wait_seconds`: maximum duration of `write`.
    """

    def __init__(
        self,
        destination: Destination,
        *,
        audit: AuditRecord | None = None,
        max_waiting: int = MAX_WAITING_REQUESTS,
        max_wait_seconds: float = MAX_WAIT_SECONDS,
    ) -> None:
        self._destination = destination
        self._audit = audit or AuditRecord(None)
        self._max_waiting = max_waiting
        self._max_wait_seconds = max_wait_seconds
        self._queue: list[_Request] = []
        self._last_turns: dict[str, float] = {}  # times by caller
        self._waiting = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def write(self, changes: Sequence[Change], *, waits_longer_for_slot: bool = False) -> list[Written]:
        """Return one result per change, in order, when the changes are durable.

        If too many requests wait, the write waits for a slot: for at most SLOT_SECONDS; if `waits_longer_for_slot`, for
        at most `max_wait_seconds`.

        Raises:
            Problem: too many requests wait, the service is stopping, or the write takes too long. The message says
                whether the changes may be stored.
            SimilarityError: the destination raised it, or the audit record cannot be written.
        """
        deadline = time.monotonic() + self._max_wait_seconds
        request = _Request(changes)
        self._enqueue(request, seconds=self._max_wait_seconds if waits_longer_for_slot else SLOT_SECONDS)
        try:
            return request.results.result(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            if request.results.cancel():  # still in the queue
                raise Problem(problems.OVERLOADED, "the store is slow; nothing was written, send it again") from None
            raise Problem(
                problems.TOOK_TOO_LONG,
                "the store is slow; the write may or may not be stored: send it again",
            ) from None
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def full_batch(self, caller: str | None = None) -> int:
        """Return the maximum weight of a batch of this caller, by default of the current caller."""
        now, caller = time.monotonic(), caller or who()
        with self._changed:
            times = [at for each, at in self._last_turns.items() if each != caller]
        is_shared = any(now - at < SECONDS_SHARED for at in times)
        return SHARED_BATCH if is_shared else FULL_BATCH

    def close(self) -> None:
        """Refuse new writes, commit the queued ones, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _enqueue(self, request: _Request, *, seconds: float) -> None:
        """Add a request to the queue; wait at most `seconds` for a slot. Raises a Problem if there is none."""
        with self._changed:
            has_slot = self._changed.wait_for(
                lambda: self._stopping or self._waiting < self._max_waiting, timeout=seconds
            )
            if self._stopping:
                raise Problem(problems.STOPPING, "the service is stopping; nothing was written, send it again")
            if not has_slot:
                raise Problem(problems.OVERLOADED, "too many writes are waiting; nothing was written, send it again")
            self._queue.append(request)
            self._waiting += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="writes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        """Commit batch after batch until `close`; the destination is open while there is work."""
        while batch := self._next_batch(timeout=None):
            try:
                with self._destination.opened() as commit:
                    while batch:
                        _commit_batch(batch, commit, self._audit)
                        batch = self._next_batch(timeout=IDLE_SECONDS_OPEN)
            except Exception as error:
                if not isinstance(error, IndexUnavailable):  # `similarity.upkeep.outage` logs IndexUnavailable
                    log.warning("the destination of writes cannot be opened or closed: %r", error)
                _fail(batch, error)

    def _next_batch(self, *, timeout: float | None) -> list[_Request]:
        """Wait for requests and return the next batch.

        The batch is empty after `timeout` seconds without a request, or if the queue is empty after `close`.
        """
        batch: list[_Request] = []
        with self._changed:
            while not batch:
                self._changed.wait_for(lambda: self._queue or self._stopping, timeout=timeout)
                if not self._queue:
                    return []
                # False for a request that was cancelled in the queue, because it had waited too long.
                batch = [request for request in self._dequeue() if request.results.set_running_or_notify_cancel()]
                self._changed.notify_all()
        return batch

    def _dequeue(self) -> list[_Request]:
        """Remove requests from the queue, at least one, and return them.

        They are the oldest ones of the caller whose last turn is the longest ago, with at most the weight
        `full_batch` together; only a single request may exceed that.
        """
        caller = min((request.who for request in self._queue), key=lambda who: self._last_turns.get(who, 0.0))
        most = self.full_batch(caller)
        waiting = [request for request in self._queue if request.who == caller]
        weights = accumulate(request.weight for request in waiting)
        batch = [request for request, weight in zip(waiting, weights, strict=True) if weight <= most]
        batch = batch or waiting[:1]
        self._queue = [request for request in self._queue if request not in batch]
        self._last_turns[caller] = time.monotonic()
        return batch


def weight_of(change: Change) -> int:
    """Return how much of a batch a change takes."""
    characters = 0 if isinstance(change, DeletedCompany) else change.company.characters()
    return min(SHARED_BATCH, 1 + characters // CHARACTERS_OF_WEIGHT)


def _commit_batch(batch: Sequence[_Request], commit: Commit, audit: AuditRecord) -> None:
    """Commit a batch, write its outcomes to the audit record, and give each request its results or an error."""
    try:
        audit.write([])  # raises if entries of earlier changes are not on the disk: then nothing may be committed
        committed = commit([change for request in batch for change in request.changes])
        audit.write(_entries(batch, committed))
        results = iter(committed)
    except AuditUnavailable as error:
        _fail(batch, error)
    except Exception as error:
        if isinstance(error, SimilarityError) or len(batch) == 1:
            # A part of the batch may be stored, so the audit record needs an entry for each change.
            failed = [Written(Outcome.FAILED) for request in batch for _ in request.changes]
            with suppress(AuditUnavailable):
                audit.write(_entries(batch, failed))
            _fail(batch, error)
            return
        # An unexpected exception may be caused by one request, so commit each request separately.
        for request in batch:
            _commit_batch([request], commit, audit)
    else:
        for request in batch:
            request.results.set_result(list(islice(results, len(request.changes))))


def _entries(batch: Sequence[_Request], results: Sequence[Written]) -> list[Entry]:
    """Return the audit entries of the changes in a batch; `results`: one per change."""
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
    """Give `error` to each request of the batch that has no results yet."""
    for request in batch:
        if not request.results.done():
            request.results.set_exception(error)
