"""The product's own stream on a real Flink, from a real Kafka into a real Elasticsearch: killed, stalled, replaced.

Everything is a process of its own and dies by SIGKILL. What must hold: every message is settled, every
company is as its newest message says, what was deleted stays deleted, and bad messages, no others, are
dead letters.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from similarity.index.opening import open_index
from similarity.kafka import GroupOffsets, KafkaUnavailable
from tests.end_to_end.streaming import GROUP, Story, eventually, index_on
from tests.faults.flink_stream_messages import Sender
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.servers.flink import FlinkCluster
from tests.servers.kafka import KafkaBroker
from tests.tiny_bundle import write_tiny_bundle

pytestmark = pytest.mark.faults

PER_SECOND = 100.0
BROKER_AWAY_SECONDS = 10.0
# So long it takes until what was killed is missed; then all is calm when so long there was no gap of so many seconds.
NOTICED_SECONDS, CALM_SECONDS, CALM_GAP_SECONDS = 8.0, 5.0, 4.5


@pytest.fixture(scope="module")
def broker(startable_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that may be killed."""
    with KafkaBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def story(broker: KafkaBroker, flink: FlinkCluster, cluster: ElasticsearchCluster, tmp_path: Path) -> Iterator[Story]:
    """A new topic and a new index; the stream between them, when it is started, runs on Flink."""
    runner = [*flink.beam_options(parallelism=2, checkpoint_ms=1000), f"--flink_master={flink.rest.url}"]
    with index_on(cluster.connection) as target:
        bundle = write_tiny_bundle(tmp_path / "bundle").folder
        yield Story(tmp_path, kafka=broker, target=target, runner=runner, bundle=bundle)


class Pulse:
    """Notes when the group's offsets grow, in a thread, until the end of the block."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._beats = [time.monotonic()]

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def longest_gap(self, *, since: float) -> float:
        """Seconds in which nothing was settled, the ones before now among them."""
        beats = [*self._beats, time.monotonic()]
        return max(after - before for before, after in pairwise(beats) if after > since)

    def stood_still(self, fault: Callable[[], None]) -> float:
        """Does it when all is calm, and returns when all is again; for how many seconds nothing was settled between."""
        self._wait_for_calm(since=time.monotonic())
        began = time.monotonic()
        fault()
        self._wait_for_calm(since=began + NOTICED_SECONDS)
        return self.longest_gap(since=began)

    def _wait_for_calm(self, *, since: float) -> None:
        def calm() -> bool:
            now = time.monotonic()
            return now > since + CALM_SECONDS and self.longest_gap(since=now - CALM_SECONDS) < CALM_GAP_SECONDS

        eventually(calm, self._story)

    def _run(self) -> None:
        settled = 0
        with closing(GroupOffsets(self._story.settings, topic=self._story.topic, group=GROUP)) as offsets:
            while not self._stop.wait(0.1):
                with suppress(KafkaUnavailable):
                    now = sum(offsets.committed([0, 1]).values())
                    if now > settled:
                        settled = now
                        self._beats.append(time.monotonic())


def assert_all_is_well(story: Story, sender: Sender) -> None:
    with closing(open_index(story.target, {})) as index:
        assert sender.expected.problems(story, index) == []


def test_what_is_killed_loses_nothing(story: Story, broker: KafkaBroker, flink: FlinkCluster) -> None:
    names = [program.name for program in flink.task_managers]
    busy: list[str] = []

    def kill_taskmanager() -> None:
        busy.extend(flink.rest.busy_task_managers(flink.jobs()[0].id))
        flink.kill_taskmanager(names.index(busy[0]))

    def kill_broker() -> None:
        broker.kill()
        time.sleep(BROKER_AWAY_SECONDS)
        broker.start()

    with story.streaming(), Sender(story.settings, story.topic, per_second=PER_SECOND) as sender, Pulse(story) as pulse:
        gaps = {"TaskManager": pulse.stood_still(kill_taskmanager)}
        flink.start_taskmanager(names.index(busy[0]))
        gaps["worker"] = pulse.stood_still(lambda: print("killed worker", flink.kill_worker()))
        gaps["broker"] = pulse.stood_still(kill_broker)
        sender.stop()
        eventually(story.all_committed, story)
    assert_all_is_well(story, sender)
    told = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in gaps.items())
    print(f"{sender.expected.sent:,} messages, {len(sender.expected.poison)} dead; nothing settled for: {told}")


def states(flink: FlinkCluster, story: Story) -> list[str]:
    """Of the story's jobs, the newest first, in Flink's words."""
    return [job.state for job in flink.jobs() if story.topic in job.name]


def replaced(jobs: list[str]) -> bool:
    """Whether the newest runs and all before it are canceled: on a slow machine a job may be started anew once more."""
    return jobs[:1] == ["RUNNING"] and set(jobs[1:]) == {"CANCELED"}


def settled_offsets(story: Story) -> dict[str, int]:
    """What the group has committed, by partition as in the position of a message."""
    return {f"kafka:{story.topic}/{position.partition}": position.committed for position in story.positions()}


def assert_nothing_settled_was_read_again(story: Story, settled: dict[str, int]) -> None:
    """By the messages that are known to have been read twice: those with two dead letters."""
    positions = Counter(letter.message.position for letter in story.dead_letters())
    for position, times in positions.items():
        partition, _, offset = position.rpartition("/")
        assert times == 1 or int(offset) >= settled[partition], position


def test_another_version_goes_on_where_the_one_before_was_stopped(story: Story, flink: FlinkCluster) -> None:
    with Sender(story.settings, story.topic, per_second=PER_SECOND) as sender:
        with story.streaming() as process:
            eventually(lambda: story.committed() > 500, story)
        assert process.returncode == 0
        assert states(flink, story) == ["CANCELED"]
        settled = settled_offsets(story)
        with story.streaming("--batch-messages=20", "--bundle-messages=100", "--parallelism=1"):
            eventually(lambda: story.committed() > sum(settled.values()) + 500, story)
            sender.stop()
            eventually(story.all_committed, story)
    assert_nothing_settled_was_read_again(story, settled)
    assert_all_is_well(story, sender)


def test_the_job_of_a_command_that_was_killed_is_replaced_by_the_next(story: Story, flink: FlinkCluster) -> None:
    with Sender(story.settings, story.topic, per_second=PER_SECOND) as sender:
        first = story.start()
        eventually(lambda: story.committed() > 100, story)
        first.kill()
        first.wait()
        with story.streaming():
            eventually(lambda: replaced(states(flink, story)), story)
            assert "that an earlier command had left on Flink" in story.said()
            sender.stop()
            eventually(story.all_committed, story)
    assert_all_is_well(story, sender)


def test_a_start_that_reads_nothing_is_started_anew(story: Story, flink: FlinkCluster) -> None:
    pool = flink.pool.pid
    assert pool is not None
    with Sender(story.settings, story.topic, per_second=PER_SECOND) as sender:
        os.kill(pool, signal.SIGSTOP)  # a job then waits for its workers
        try:
            with story.streaming("--stalled-after=10"):
                eventually(lambda: "restarting the job" in story.said(), story)
                os.kill(pool, signal.SIGCONT)
                waited = eventually(lambda: story.committed() > 100, story)
                sender.stop()
                eventually(story.all_committed, story)
                jobs = states(flink, story)
        finally:
            os.kill(pool, signal.SIGCONT)
    assert replaced(jobs), jobs
    print(f"settled {waited:.1f} s after it was started anew")
    assert_all_is_well(story, sender)
