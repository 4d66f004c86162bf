"""A topic, an index and a folder of dead letters, and what can be seen of them from outside."""

import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from similarity.company import EmbeddedCompany
from similarity.index.opening import open_index
from similarity.index.protocol import Generation
from similarity.ingest.dead_letters import DeadLetter
from similarity.kafka import End, GroupOffsets, KafkaSettings, KafkaUnavailable, KeyedProducer, Record, TopicConsumer
from tests.faults.stream_check import Content, Documents, Position, Written
from tests.faults.stream_inputs import Sent

GROUP = "killed"
PARTITIONS = 2
# Small, so that many commits happen and every bundle has several batches.
BUNDLE_MESSAGES, BATCH_MESSAGES = 40, 16
BUNDLE_SECONDS = 0.5
ANSWER_SECONDS = 60.0


class Scene:
    """Where one schedule takes place. As a context manager it closes its connections."""

    def __init__(self, folder: Path, *, servers: str, topic: str, target: str) -> None:
        self.folder = folder
        self.target = target
        self.topic: dict[Position, Written] = {}
        """All messages that were sent."""
        self._name = topic
        self._settings = KafkaSettings(servers=servers)
        self._known: dict[tuple[bytes, bytes | None], Sent] = {}
        make_topic(self._settings, topic)
        self._reading = TopicConsumer(self._settings, topic=topic, group="onlooker")
        self._offsets = GroupOffsets(self._settings, topic=topic, group=GROUP)
        self._ends = dict.fromkeys(range(PARTITIONS), 0)

    def __enter__(self) -> "Scene":
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()
        self._offsets.close()

    @property
    def arguments(self) -> list[str]:
        """Of the command."""
        return [
            *("--kafka-topic", self._name, "--kafka-group", GROUP, "--once", "--threads", "1"),
            *("--index", self.target, "--bundles", str(self.folder / "bundles")),
            *("--dead-letters", str(self.folder / "dead"), "--batch-messages", str(BATCH_MESSAGES)),
            *("--bundle-messages", str(BUNDLE_MESSAGES), "--bundle-seconds", str(BUNDLE_SECONDS)),
        ]

    @property
    def log(self) -> Path:
        """Of the command."""
        return self.folder / "stream.log"

    @property
    def ends(self) -> dict[int, int]:
        """The offset behind the last message of each partition."""
        return dict(self._ends)

    def send(self, messages: Iterable[Sent]) -> None:
        """Puts messages on the topic, and reads back where they lie and when they were written."""
        with KeyedProducer(self._settings) as producer:
            for sent in messages:
                self._known[sent.key, sent.value] = sent
                producer.send(self._name, key=sent.key, value=sent.value)
        self._reading.read_from(self._ends)
        open_ends = set(self._ends)
        deadline = time.monotonic() + ANSWER_SECONDS
        while open_ends:
            assert time.monotonic() < deadline, "the topic cannot be read back"
            match self._reading.poll(1):
                case Record() as record:
                    self._note(record)
                case End(partition=partition):
                    open_ends.discard(partition)

    def committed(self) -> dict[int, int]:
        """The group's offsets."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self._offsets.committed(list(self._ends))
            except KafkaUnavailable:  # it looks for the group's coordinator, the first time
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def generations(self) -> list[Generation]:
        """Those of the index, none where it is not made yet."""
        with closing(open_index(self.target, {}, create=True)) as index:
            return index.generations()

    def stored(self) -> dict[str, Any]:
        """All documents of the index, by id."""
        with closing(open_index(self.target, {}, create=True)) as index:
            targets = index.write_targets()
            return {each.id: each for target in targets for page in index.scan(target.name) for each in page}

    def dead(self) -> list[Position]:
        """The positions of the dead letters, once for each letter."""
        files = sorted((self.folder / "dead").glob("dead-*.jsonl"))
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [_position(DeadLetter.from_line(line)) for line in lines]

    def _note(self, record: Record) -> None:
        assert record.timestamp is not None
        sent = self._known[record.key or b"", record.value]
        self.topic[record.partition, record.offset] = Written(
            sent=sent, microseconds=1000 * record.timestamp + record.offset % 900
        )
        self._ends[record.partition] = record.offset + 1


def contents(stored: dict[str, Any]) -> Documents:
    """What a check needs of documents."""
    return {
        each.id: Content(
            version=each.version,
            description=each.company.description if isinstance(each, EmbeddedCompany) else None,
        )
        for each in stored.values()
    }


def make_topic(settings: KafkaSettings, name: str) -> None:
    # Imported here, because "make test" collects this file without the client being installed.
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({**settings.client(), "log_level": 2})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(ANSWER_SECONDS)


def _position(letter: DeadLetter) -> Position:
    _, partition, offset = letter.message.position.rsplit("/", 2)
    return int(partition), int(offset)
