r"""Writes dead letters to files in a folder (on a disk, S3 or GCS), or to a Kafka topic.

    _ = ingested.dead | write_to_folder("s3://bucket/dead-letters")
    _ = ingested.dead | write_to_topic(KafkaSettings.from_environment(os.environ), "companies.dead")

Both write before the Beam bundle is committed, without state or shuffle, so no acknowledged message is lost. A retried
Beam bundle may write a letter twice; both copies have the same position.

In a folder, each Beam bundle with dead letters writes one file of JSON lines, dead-TIME-RANDOM.jsonl, which gets its
name when it is complete. `remove_expired` removes old files. For a topic, retention is a setting of the topic. Create
the topic before the job starts, for example with 90 days of retention:

    kafka-topics.sh --bootstrap-server HOST:9092 --create --topic companies.dead \
        --config retention.ms=7776000000 --config max.message.bytes=16777216

(a letter contains its message as text, up to six times as long as its bytes). The key of a record is the position, the
value is the same line as in a file.
"""

import os
import re
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from pipelines.file_systems import finish_writing, located, matches, open_to_read, open_to_write
from similarity.company import utc_now
from similarity.errors import InvalidInput
from similarity.ingest.dead_letters import DeadLetter
from similarity.kafka import KafkaSettings, KeyedProducer

REPLAYED = "replayed"
FILE_TIME = "%Y%m%dT%H%M%S.%fZ"
FILE_NAME = re.compile(r"\.?dead-(\d{8}T\d{6}\.\d{6}Z)-[0-9a-f]{8}\.jsonl(\.part)?")


def write_to_folder(folder: str, *, clock: Callable[[], datetime] = utc_now) -> beam.PTransform:
    """Return a transform that writes dead letters to files of a folder, which is created if it is missing."""
    return beam.ParDo(_WriteFile(located(folder), clock)).with_output_types(None)


def write_to_topic(settings: KafkaSettings, topic: str) -> beam.PTransform:
    """Return a transform that writes dead letters to a Kafka topic.

    Only the addresses of `settings` are part of the job; each worker reads its login from the SIMILARITY_KAFKA_
    variables of its own environment.
    """
    return beam.ParDo(_WriteTopic(settings.servers, topic)).with_output_types(None)


class _WriteFile(beam.DoFn):
    def __init__(self, folder: str, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self._folder = folder
        self._clock = clock

    def setup(self) -> None:
        self._file: LetterFile | None = None

    def start_bundle(self) -> None:
        self._abandon()  # the file of a failed Beam bundle, which is retried

    def teardown(self) -> None:
        self._abandon()

    def process(self, letter: DeadLetter) -> None:
        self._file = self._file or LetterFile(self._folder, begun=self._clock())
        self._file.add(letter)

    def finish_bundle(self) -> None:
        if self._file is not None:
            self._file.finish()
            self._file = None

    def _abandon(self) -> None:
        if self._file is not None:
            self._file.abandon()
            self._file = None


class LetterFile:
    """One file of dead letters, which gets its name when it is finished; `begun` is the time in the name."""

    def __init__(self, folder: str, *, begun: datetime) -> None:
        name = file_name(begun)
        self._final = FileSystems.join(folder, name)
        self._partial = FileSystems.join(folder, f".{name}.part")
        self._stream = open_to_write(self._partial)

    def add(self, letter: DeadLetter) -> None:
        """Write one letter."""
        self._stream.write(letter.to_line().encode() + b"\n")

    def finish(self) -> None:
        """Make the file durable and visible."""
        finish_writing(self._stream, self._partial, final=self._final)

    def abandon(self) -> None:
        """Close the file without finishing it; it stays hidden until it expires."""
        self._stream.close()


class _WriteTopic(beam.DoFn):
    def __init__(self, servers: str, topic: str) -> None:
        super().__init__()
        self._servers = servers
        self._topic = topic

    def setup(self) -> None:
        self._producer = KeyedProducer(KafkaSettings.from_environment(os.environ, servers=self._servers))

    def process(self, letter: DeadLetter) -> None:
        self._producer.send(self._topic, key=letter.message.position.encode(), value=letter.to_line().encode())

    def finish_bundle(self) -> None:
        self._producer.flush()


def file_name(begun: datetime) -> str:
    """Return a name for a file of dead letters; names sort by time."""
    return f"dead-{begun.astimezone(UTC).strftime(FILE_TIME)}-{uuid.uuid4().hex[:8]}.jsonl"


def begun_at(path: str) -> datetime | None:
    """Return the time in the name of a file of dead letters; None if it is not such a file."""
    match = FILE_NAME.fullmatch(path.rpartition("/")[2])
    return datetime.strptime(match[1], FILE_TIME).replace(tzinfo=UTC) if match else None


def expired(paths: Iterable[str], *, before: datetime) -> list[str]:
    """Return the files of dead letters begun before a time, including unfinished files of killed workers."""
    return [path for path in paths if (begun := begun_at(path)) is not None and begun < before]


def remove_expired(folder: str, *, keep: timedelta, now: datetime) -> int:
    """Remove the files of dead letters that are older than `keep`, replayed ones too; return their number.

    A file with a newer message stays: the clock that gave it its name was behind.

    Raises:
        InvalidInput: the folder cannot be read, or `keep` is not above 0.
    """
    if keep <= timedelta(0):
        raise InvalidInput(f"dead letters cannot be kept for {keep}; give more than 0 days")
    patterns = [FileSystems.join(located(folder), name) for name in ("dead-*", ".dead-*", f"{REPLAYED}/dead-*")]
    named_old = expired([path for pattern in patterns for path in matches(pattern)], before=now - keep)
    old = [path for path in named_old if not _has_message_from(path, now - keep, until=now)]
    FileSystems.delete(old)
    return len(old)


def _has_message_from(path: str, start: datetime, *, until: datetime) -> bool:
    """Return whether a file has a letter of a message with a time from `start` to `until`."""
    with open_to_read(path) as stream:
        for line in stream:
            with suppress(InvalidInput, UnicodeDecodeError):  # a killed worker may leave half a line
                if start <= DeadLetter.from_line(line.decode()).message.time <= until:
                    return True
    return False
