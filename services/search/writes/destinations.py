"""The destinations of writes: the index, or Kafka, from where the stream writes to the index."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from similarity.errors import SimilarityError
from similarity.index.protocol import CompanyIndex
from similarity.ingest.delivery import Delivery
from similarity.ingest.late_changes import received_before_erasure
from similarity.ingest.messages import MAX_FOLLOWED_VERSION, encode, following
from similarity.ingest.records import Change
from similarity.ingest.writer_leases import WriterLease
from similarity.kafka import NotDelivered
from similarity.model.encoder_protocol import Encoder
from similarity.upkeep.outage import Outage

from .group_commit import Commit, Written
from .write_schemas import Outcome

SECONDS_TO_RETRY = 2.0
"""How long to retry while the store accepts nothing. A client waits, and can send its write again."""
MAX_REMEMBERED_VERSIONS = 10_000
"""Maximum number of companies whose published version is kept in memory."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexDestination:
    """Embeds changes and writes them to the candidate, live and previous generation.

    `encoders`: the encoders in the bundle store (`similarity.index.bundle_store.StoredEncoders`), which opens the
    encoder of a new candidate when the first write needs it. If an encoder is missing, writes are refused.
    The writer lease is held while there is work, so that a re-embed does not wait for an idle service.

    Raises (when a batch is committed):
        EncoderMismatch: the encoder of a generation is missing.
        EncodingFailed: an encoder fails on every text.
        InvalidBundle: a bundle of the store is damaged.
        IndexUnavailable: the store accepts nothing.
        NoLiveGeneration: there is nothing to write to.
    """

    index: CompanyIndex
    encoders: Mapping[str, Encoder]
    seconds_to_retry: float = SECONDS_TO_RETRY

    @contextmanager
    def opened(self) -> Iterator[Commit]:
        with WriterLease(self.index) as writer:
            delivery = Delivery(writer, self.encoders, patience=self.seconds_to_retry)

            def commit(changes: Sequence[Change]) -> list[Written]:
                ends = delivery.deliver(changes)
                return [Written(Outcome(end.outcome.value), end.reason, end.version) for end in ends]

            yield commit


class Producer(Protocol):
    """The part of `similarity.kafka.KeyedProducer` that publishing needs."""

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None: ...

    def flush(self) -> None:
        """Return when every message is acknowledged; raise NotDelivered with the keys of the others."""


class KafkaDestination:
    """Publishes changes to a topic; a change is accepted when the brokers have acknowledged it.

    An untimed change gets a version after the one in `index` and after those published before, which the stream may not
    have stored yet. If it was received before an erasure of its company, it is superseded and not published: it would
    be the only message about the company that a compacted topic keeps. `make_producer`: called at the first write, so
    that the service starts without Kafka.
    """

    def __init__(self, make_producer: Callable[[], Producer], topic: str, index: CompanyIndex) -> None:
        self._make_producer = make_producer
        self._topic = topic
        self._index = index
        self._outage = Outage("Kafka")
        self._producer: Producer | None = None
        self._published: dict[str, int] = {}

    @contextmanager
    def opened(self) -> Iterator[Commit]:
        if self._producer is None:
            self._producer = self._make_producer()
        producer = self._producer

        def commit(changes: Sequence[Change]) -> list[Written]:
            stored, late = self._read_index(changes)
            results: list[Written] = []
            for position, change in enumerate(changes):
                if position in late:
                    results.append(Written(Outcome.SUPERSEDED))
                    continue
                newest = max(stored.get(change.id, -1), self._published.get(change.id, -1))
                behind = change.untimed and change.version <= newest <= MAX_FOLLOWED_VERSION
                follows = newest if behind else None
                key, value = encode(change, follows=follows)
                producer.send(self._topic, key=key, value=value)
                version = following(change, follows).version
                results.append(Written(Outcome.ACCEPTED, version=version))
                self._remember(change.id, max(newest, version))
            lost: frozenset[bytes] = frozenset()
            try:
                producer.flush()
            except NotDelivered as error:
                lost = frozenset(error.keys)
                self._outage.away("it did not acknowledge messages in time")
            else:
                self._outage.over()
            failed = Written(Outcome.FAILED, "Kafka did not acknowledge it in time")
            return [
                failed if result.outcome is Outcome.ACCEPTED and change.id.encode() in lost else result
                for change, result in zip(changes, results, strict=True)
            ]

        yield commit

    def _read_index(self, changes: Sequence[Change]) -> tuple[dict[str, int], frozenset[int]]:
        """Return the live versions of companies with untimed changes, and the positions of the late changes.

        A late change was received before an erasure of its company. Both results are empty if the index cannot be read,
        because Kafka still accepts writes.
        """
        ids = [change.id for change in changes if change.untimed]
        try:
            stored = self._index.stored_versions(self._index.live().name, ids) if ids else {}
            return stored, received_before_erasure(self._index.ledger, changes) if ids else frozenset()
        except SimilarityError as error:
            log.warning("writes are published without reading the stored versions: %s", error)
            return {}, frozenset()

    def _remember(self, company_id: str, version: int) -> None:
        self._published.pop(company_id, None)
        self._published[company_id] = version
        if len(self._published) > MAX_REMEMBERED_VERSIONS:
            del self._published[next(iter(self._published))]
