import pickle
import secrets
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apache_beam as beam
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dead_letters import (
    LetterFile,
    _WriteFile,
    begun_at,
    expired,
    file_name,
    remove_expired,
    write_to_folder,
    write_to_topic,
)
from similarity.company import EPOCH
from similarity.errors import InvalidInput
from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.messages import Message
from similarity.kafka import KafkaSettings, Record, TopicConsumer
from tests.servers.kafka import KafkaBroker

pytestmark = pytest.mark.pipelines
NOW = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)


def letter(number: int, value: bytes = b"{oops", *, days: int = 0) -> DeadLetter:
    time = NOW - timedelta(days=days)
    message = Message(position=f"kafka:companies/0/{number}", key=b"a", value=value, time=time)
    return DeadLetter(message=message, stage=Stage.DECODE, reason="value: is not JSON")


def fixed() -> datetime:
    return NOW


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def letters_in(folder: Path) -> list[DeadLetter]:
    return [
        DeadLetter.from_line(line) for path in sorted(folder.glob("dead-*")) for line in path.read_text().splitlines()
    ]


def test_dead_letters_of_a_job_are_kept_whole(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dead"
    expected = [letter(1), letter(2, b"\xff\x00\n")]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(expected) | write_to_folder(str(folder))
    assert sorted(letters_in(folder), key=lambda found: found.message.position) == expected


def test_a_job_without_dead_letters_leaves_no_file(tmp_path: Path) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([letter(1)]) | beam.Filter(lambda _: False) | write_to_folder(str(tmp_path))
    assert names(tmp_path) == []


def test_a_relative_folder_is_the_one_of_the_launching_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write = write_to_folder("dead")
    monkeypatch.chdir("/")
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([letter(1)]) | write
    assert letters_in(tmp_path / "dead") == [letter(1)]


def test_a_file_has_its_name_only_when_its_bundle_is_finished(tmp_path: Path) -> None:
    writing = _WriteFile(str(tmp_path), fixed)
    writing.setup()
    for _ in range(2):
        writing.start_bundle()
        writing.process(letter(1))
        writing.process(letter(2))
        assert letters_in(tmp_path) == []
    writing.finish_bundle()  # the first one failed, and was tried again
    assert letters_in(tmp_path) == [letter(1), letter(2)]
    assert len(names(tmp_path)) == 2, "what the failed bundle left is there until it expires"


@given(st.lists(st.integers(0, 4 * 10**15), min_size=1))
def test_names_sort_by_time_and_tell_it(microseconds: list[int]) -> None:
    times = [EPOCH + timedelta(microseconds=since) for since in microseconds]
    assert [begun_at(name) for name in sorted(map(file_name, times))] == sorted(times)


def test_only_files_of_dead_letters_from_before_a_time_are_expired() -> None:
    old = [
        "/dead/dead-20261119T115959.000000Z-00000000.jsonl",
        "/dead/.dead-20261119T115959.000000Z-00000000.jsonl.part",
        "s3://bucket/replayed/dead-20260101T000000.000000Z-0123abcd.jsonl",
    ]
    kept = ["/dead/dead-20261119T120001.000000Z-00000000.jsonl", "/dead/notes-20200101.txt", "/dead/dead-letters.jsonl"]
    assert expired([*old, *kept], before=datetime(2026, 11, 19, 12, tzinfo=UTC)) == old


def test_old_files_are_removed_replayed_ones_too(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "replayed"):
        for days in (1, 100):
            file = LetterFile(str(folder), begun=NOW - timedelta(days=days))
            file.add(letter(1, days=days))
            file.finish()
    (tmp_path / "readme.txt").touch()
    assert remove_expired(str(tmp_path), keep=timedelta(days=90), now=NOW) == 2
    assert len(names(tmp_path)) == 3
    assert len(names(tmp_path / "replayed")) == 1
    assert remove_expired(str(tmp_path), keep=timedelta(days=90), now=NOW) == 0


@pytest.mark.parametrize(("days", "removed"), [([91, 89], 0), ([91, -1], 1)])
def test_a_file_from_a_clock_that_was_behind_is_kept_for_its_messages(
    tmp_path: Path, days: list[int], removed: int
) -> None:
    file = LetterFile(str(tmp_path), begun=NOW - timedelta(days=120))
    for each in days:
        file.add(letter(1, days=each))
    file.finish()
    with next(tmp_path.glob("dead-*")).open("a") as half:
        half.write('{"position": "kafka:comp')
    assert remove_expired(str(tmp_path), keep=timedelta(days=90), now=NOW) == removed


def test_a_folder_that_is_not_there_yet_has_no_old_files(tmp_path: Path) -> None:
    assert remove_expired(str(tmp_path / "none"), keep=timedelta(days=1), now=NOW) == 0


def test_keeping_for_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="give more than 0 days"):
        remove_expired(str(tmp_path), keep=timedelta(0), now=NOW)


def test_a_login_does_not_travel_with_the_job() -> None:
    settings = KafkaSettings(servers="kafka:9092", username="writer", password="secret-password")
    travelling = pickle.dumps(write_to_topic(settings, "companies.dead"))
    assert b"kafka:9092" in travelling
    assert b"secret-password" not in travelling


@pytest.mark.integration
def test_a_real_topic_has_every_letter_even_of_large_messages(kafka: KafkaBroker) -> None:
    topic = f"dead-{secrets.token_hex(4)}"
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    [made] = admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "16777216"})]).values()
    made.result(30)
    settings = KafkaSettings(servers=kafka.servers)
    letters = [letter(1), letter(2, "é".encode() * 500_000)]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(letters) | write_to_topic(settings, topic)
    consumer = TopicConsumer(settings, topic=topic, group="test")
    consumer.read_from({0: 0})
    found: list[DeadLetter] = []
    deadline = time.monotonic() + 60
    while len(found) < len(letters) and time.monotonic() < deadline:
        if isinstance(record := consumer.poll(1), Record):
            assert record.value is not None
            found.append(DeadLetter.from_line(record.value.decode()))
    consumer.close()
    assert sorted(found, key=lambda each: each.message.position) == letters
