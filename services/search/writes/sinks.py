"""Where writes go: into the index, or to Kafka, from where the stream brings them into the index."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from similarity.errors import SimilarityError
from similarity.index.protocol import CompanyIndex
from similarity.ingest.delivery import Delivery
from similarity.ingest.messages import MAX_FOLLOWED_VERSION, encode, following
from similarity.ingest.records import Change
from similarity.ingest.writer_leases import WriterLease
from similarity.kafka import NotDelivered
from similarity.model.encoder_protocol import Encoder
from similarity.upkeep.outage import Outage

from .committing import Commit, Written
from .write_schemas import Outcome

SECONDS_TO_RETRY = 2.0
"""For a store that takes nothing just now: somebody waits for the answer, and can ask again."""
MOST_REMEMBERED = 10_000
"""Companies whose published version is remembered."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexSink:
    """Embeds and writes to every generation that must have it: candidate, live and previous.

    `encoders` are those of the index's bundle store (`similarity.index.bundle_store.StoredEncoders`): the
    encoder of a candidate that appears is opened when the first write needs it. Without it nothing is
    written, to no generation. The writer's lease is held while there is work, so that a re-embed
    waits for a service that writes and never for one that idles.

    Raises (when a batch is committed):
        EncoderMismatch: the encoder of a generation is not at hand.
        EncodingFailed: an encoder fails on every text.
        InvalidBundle: a bundle of the store is damaged.
        IndexUnavailable: the store takes nothing.
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
    """What publishing needs of Kafka; `similarity.kafka.KeyedProducer` is one."""

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None: ...

    def flush(self) -> None:
        """Returns when every message is acknowledged. NotDelivered names those that are not."""


class KafkaSink:
    """Publishes changes to a topic; each is accepted only when the brokers have acknowledged it.

    An untimed change is published to follow the version that `index` holds, and those published before,
    which the stream may not have stored yet. `make_producer` is called with the first write, so that the
    service starts while Kafka is away.
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
            stored = self._stored_versions([change.id for change in changes if change.untimed])
            versions = []
            for change in changes:
                newest = max(stored.get(change.id, -1), self._published.get(change.id, -1))
                behind = change.untimed and change.version <= newest <= MAX_FOLLOWED_VERSION
                follows = newest if behind else None
                key, value = encode(change, follows=follows)
                producer.send(self._topic, key=key, value=value)
                versions.append(following(change, follows).version)
                self._remember(change.id, max(newest, versions[-1]))
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
                failed if change.id.encode() in lost else Written(Outcome.ACCEPTED, version=version)
                for change, version in zip(changes, versions, strict=True)
            ]

        yield commit

    def _stored_versions(self, ids: Collection[str]) -> dict[str, int]:
        """What the live generation holds of `ids`; nothing where it cannot be read: Kafka takes writes all the same."""
        if not ids:
            return {}
        try:
            return self._index.stored_versions(self._index.live().name, ids)
        except SimilarityError as error:
            log.warning("writes are published without a look at what is stored: %s", error)
            return {}

    def _remember(self, company_id: str, version: int) -> None:
        self._published.pop(company_id, None)
        self._published[company_id] = version
        if len(self._published) > MOST_REMEMBERED:
            del self._published[next(iter(self._published))]
