"""When a stream is started anew, what it is called, and that Flink really ends it."""

import json
import socket
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import flink, stream
from pipelines import watch as watching
from pipelines.flink import FlinkMaster, FlinkUnavailable, master_of
from pipelines.options import Source, StreamOptions, add_stream_options, beam_options, stream_options
from pipelines.stream import promote_and_measure
from pipelines.watch import Progress, StallWatch, StreamFailed, cancel, seconds_to_wait, watch
from pipelines.worker_settings import WorkerSettings
from similarity.errors import InvalidInput

pytestmark = pytest.mark.pipelines

STUCK = Progress(acknowledged=3, backlog=5)


@pytest.fixture
def options() -> StreamOptions:
    """Of a stream that stands still at once."""
    parser = ArgumentParser()
    add_stream_options(parser)
    return stream_options(parser.parse_args(["--kafka-topic=t", "--stalled-after=1e-9"]))


def test_a_job_whose_store_or_source_is_away_does_not_stand_still() -> None:
    watch = StallWatch(60)
    looks = [(0, STUCK), (50, None), (500, None), (510, STUCK), (559, STUCK), (560, STUCK)]
    assert [watch.stalled(progress, now=now) for now, progress in looks] == [False] * 5 + [True]
    assert not watch.moved


def test_a_job_that_got_on_has_moved() -> None:
    watch = StallWatch(60)
    watch.stalled(STUCK, now=0)
    watch.stalled(Progress(acknowledged=4, backlog=4), now=1)
    assert watch.moved


def test_starts_in_vain_make_the_next_one_wait_longer() -> None:
    assert [seconds_to_wait(120, restarts_without_progress=number) for number in (0, 1, 4, 9)] == [120, 240, 1920, 1920]


def test_a_job_has_the_same_name_at_each_start() -> None:
    topic = Source(topic="EU.companies_v2", group="g1")
    assert topic.job_name == "similarity-eu-companies-v2-g1"
    given = [beam_options(rest, bounded=False, job_name="ours") for rest in ([], ["--job_name=theirs"])]
    assert [options.get_all_options()["job_name"] for options in given] == ["ours", "theirs"]


@pytest.mark.parametrize(
    ("said", "added"),
    [
        (["--runner=PortableRunner"], ["--checkpointing_interval=5000", "--finish_bundle_before_checkpointing"]),
        (["--runner", "FlinkRunner", "--checkpointing_interval", "1000"], ["--finish_bundle_before_checkpointing"]),
        (
            [
                "--runner=PortableRunner",
                *"--checkpointing_interval=1 --finish_bundle_before_checkpointing=false".split(),
            ],
            [],
        ),
        (["--runner=PrismRunner"], []),
    ],
)
def test_a_stream_on_flink_has_checkpoints_that_hold_nothing_back(said: list[str], added: list[str]) -> None:
    options = beam_options(said, bounded=False)
    unknown = [argument for argument in options._flags if argument not in said]
    assert unknown == added


def test_a_stream_starts_from_no_savepoint() -> None:
    with pytest.raises(InvalidInput, match="continues at the committed offsets"):
        beam_options(["--savepoint_path=file:/s"], bounded=False)


class Job:
    """A job in the states that are given, one at each look; the last one stays."""

    def __init__(self, *states: str) -> None:
        self._states = list(states)

    @property
    def state(self) -> str:
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if state == "silent":
            raise Silent
        return state

    def cancel(self) -> None:
        raise Silent


class Silent(grpc.RpcError):
    """What is raised where no runner answers."""

    def code(self) -> str:
        return "UNAVAILABLE"


@pytest.mark.parametrize(("end", "problem"), [("FAILED", "ended by itself"), ("silent", "does not answer")])
def test_a_job_that_is_gone_is_told(end: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    with pytest.raises(StreamFailed, match=problem):
        watch(Job("RUNNING", end), threading.Event(), StallWatch(60), progress=lambda: STUCK, clock=lambda: 0.0)


def test_a_job_that_stands_still_is_to_be_started_anew_and_one_that_was_stopped_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    assert watch(Job("RUNNING"), threading.Event(), StallWatch(60), progress=lambda: STUCK, clock=count(0, 20).__next__)
    stop = threading.Event()
    stop.set()
    assert not watch(Job("RUNNING"), stop, StallWatch(60), progress=lambda: STUCK, clock=lambda: 0.0)


def test_a_runner_that_does_not_answer_is_not_asked_twice_to_end_a_job() -> None:
    cancel(Job("silent"))


def test_an_index_that_is_away_does_not_end_the_command(options: StreamOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    away = WorkerSettings(index=f"http://127.0.0.1:{port}/companies")
    assert promote_and_measure(replace(options, worker_settings=away), {}) is None


class Cluster(ThreadingHTTPServer):
    """Answers as Flink does. A job is cancelled two looks after it was asked to be."""

    def __init__(self, **jobs: str) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.jobs = jobs
        self.cancelling: dict[str, int] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Cluster

    def do_GET(self) -> None:
        cluster = self.server
        for job, looks in list(cluster.cancelling.items()):
            cluster.cancelling[job] = looks - 1
            cluster.jobs[job] = "CANCELLING" if looks > 1 else "CANCELED"
        self.answer({"jobs": [{"jid": job, "name": job[:-1], "state": state} for job, state in cluster.jobs.items()]})

    def do_PATCH(self) -> None:
        self.server.cancelling[self.path.removeprefix("/jobs/").removesuffix("?mode=cancel")] = 2
        self.answer({})

    def answer(self, value: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(cluster: Cluster) -> Iterator[FlinkMaster]:
    thread = threading.Thread(target=cluster.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield FlinkMaster(cluster.url)
    finally:
        cluster.shutdown()
        thread.join()
        cluster.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flink, "LOOK_SECONDS", 0.01)


def test_all_jobs_of_a_name_are_ended_and_no_others() -> None:
    with running(Cluster(ours1="RUNNING", ours2="RESTARTING", ours3="FAILED", theirs1="RUNNING")) as master:
        assert master.end("ours") == 2
        assert master.running("ours") == []
        assert master.running("theirs") == ["theirs1"]


def test_a_job_on_its_way_to_flink_is_waited_for() -> None:
    cluster = Cluster(ours1="CANCELED")
    with running(cluster) as master:
        assert master.end("ours", expect_seconds=0.05) == 0
        arrival = threading.Timer(0.1, lambda: cluster.jobs.update(ours2="RUNNING"))
        arrival.start()
        assert master.end("ours", expect_seconds=5) == 1
        arrival.join()


def test_a_job_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flink, "SECONDS_TO_END", 0.05)
    with running(Cluster(ours1="RUNNING")) as master, monkeypatch.context() as deaf:
        deaf.setattr(Answer, "do_PATCH", lambda self: self.answer({}))
        with pytest.raises(FlinkUnavailable, match="has not ended ours"):
            master.end("ours")


def test_a_flink_that_does_not_answer_is_told() -> None:
    cluster = Cluster()
    cluster.server_close()
    with pytest.raises(FlinkUnavailable, match="--flink_master must name the host"):
        FlinkMaster(cluster.url).running("ours")


def test_only_an_address_names_a_cluster() -> None:
    urls = [
        (master := master_of(PipelineOptions(given))) and master.url
        for given in ([], ["--flink_master=[local]"], ["--flink_master=f:8081"], ["--flink_master=https://f/"])
    ]
    assert urls == [None, None, "http://f:8081", "https://f"]


def test_a_stalled_job_is_ended_on_flink_before_the_next_is_started(
    options: StreamOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, stop, said = Cluster(ours0="RUNNING"), threading.Event(), list[str]()
    numbers = count(1)

    def started(*_: object) -> Job:
        assert set(cluster.jobs.values()) == {"CANCELED"}
        cluster.jobs[f"ours{(number := next(numbers))}"] = "RUNNING"
        if number == 3:
            stop.set()
        return Job("RUNNING")

    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(stream, "submit_job", started)
    monkeypatch.setattr(stream, "promote_and_measure", lambda *_: STUCK)
    with running(cluster) as master:
        pipeline_options = beam_options(
            ["--runner=PortableRunner", f"--flink_master={master.url}"], bounded=False, job_name="ours"
        )
        stream.keep_running(options, pipeline_options, stop, environ={}, log=said.append)
    assert cluster.jobs == dict.fromkeys(["ours0", "ours1", "ours2", "ours3"], "CANCELED")
    assert said[0] == "cancelled the job ours that an earlier command had left on Flink"
    assert said.count("restarting the job") == 2


def test_a_command_that_cannot_end_its_job_says_so_and_starts_no_other(
    options: StreamOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(stream, "submit_job", lambda *_: Job("RUNNING"))
    monkeypatch.setattr(stream, "promote_and_measure", lambda *_: STUCK)
    pipeline_options = beam_options(["--runner=PortableRunner"], bounded=False)
    with pytest.raises(StreamFailed, match="does not cancel Flink jobs; cancel it in Flink"):
        stream.keep_running(options, pipeline_options, threading.Event(), environ={}, log=lambda line: None)
