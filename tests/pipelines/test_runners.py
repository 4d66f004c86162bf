"""The runners that other tests rely on: jobs run on them, and a stream goes on after what is done to them."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.pipelines.counting import count, left_in
from tests.servers.flink import FlinkCluster
from tests.servers.flink_rest import Job
from tests.servers.prism import Prism

pytestmark = [pytest.mark.integration, pytest.mark.pipelines]

ROOT = Path(__file__).parents[2]
# Not "-m", because workers do not find what is called __main__ here.
PROGRAM = "from tests.pipelines.counting import main; main()"
NUMBERS = 50
SECONDS = 180.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for what a job leaves."""
    folder = tmp_path / "numbers"
    folder.mkdir()
    return folder


@contextmanager
def counting(folder: Path, options: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Submits a stream in a process of its own, because Beam's threads do not outlive a runner's crash in silence."""
    command = [sys.executable, "-c", PROGRAM, str(folder), *options, "--streaming"]
    with (folder.parent / "submitted.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], what: str) -> float:
    """Seconds until it was so."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + SECONDS, f"after {SECONDS:.0f} s there was no {what}"
        time.sleep(0.1)
    return time.monotonic() - started


def wait_for_more(folder: Path, more: int) -> None:
    """Waits until so many numbers have come that were not there before."""
    before = len(left_in(folder))
    wait_until(lambda: len(left_in(folder)) >= before + more, f"number beyond the {before} that had come")


def assert_none_is_missing(folder: Path) -> None:
    numbers = left_in(folder)
    # The last ones may have overtaken each other.
    settled = max(numbers) - 5
    assert set(range(settled)) <= numbers


def test_a_batch_job_runs_on_prism(prism: Prism, folder: Path) -> None:
    result = count(folder, NUMBERS, PipelineOptions(prism.beam_options())).run()
    assert result.wait_until_finish() == "DONE"
    assert left_in(folder) == set(range(NUMBERS))


def test_a_stream_runs_on_prism_until_it_is_interrupted(prism: Prism, folder: Path) -> None:
    with counting(folder, prism.beam_options()) as process:
        wait_for_more(folder, NUMBERS)
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)
    assert_none_is_missing(folder)


def test_prism_takes_new_jobs_after_sigkill(startable_prism: None, folder: Path, tmp_path: Path) -> None:
    with Prism(tmp_path / "prism") as prism:
        with counting(folder, prism.beam_options()) as process:
            wait_for_more(folder, 5)
            prism.kill()
            assert process.wait(SECONDS) != 0
        prism.start()
        with counting(folder, prism.beam_options()):
            wait_for_more(folder, 5)


def test_a_batch_job_runs_on_flink(flink: FlinkCluster, folder: Path) -> None:
    result = count(folder, NUMBERS, PipelineOptions(flink.beam_options())).run()
    assert result.wait_until_finish() == "DONE"
    assert left_in(folder) == set(range(NUMBERS))


@contextmanager
def counting_on_flink(flink: FlinkCluster, folder: Path, *, name: str, savepoint: str | None = None) -> Iterator[Job]:
    """A stream that has completed a checkpoint; cancelled at the end unless it has ended by then."""
    options = flink.beam_options(checkpoint_ms=500, savepoint=savepoint)
    with counting(folder, [*options, f"--job_name={name}"]):
        job = flink.wait_for_job(name)
        try:
            wait_for_more(folder, 5)
            wait_until(lambda: flink.rest.completed_checkpoints(job.id) > 0, "checkpoint")
            yield job
        finally:
            if flink.rest.job_state(job.id) not in {"CANCELED", "FAILED", "FINISHED"}:
                flink.cancel(job)
                wait_until(lambda: flink.rest.job_state(job.id) == "CANCELED", "end of the job")


def test_a_stream_on_flink_survives_what_is_killed(flink: FlinkCluster, folder: Path) -> None:
    with counting_on_flink(flink, folder, name="survivor") as job:
        names = [program.name for program in flink.task_managers]
        (busy,) = flink.rest.busy_task_managers(job.id)
        flink.kill_taskmanager(names.index(busy))
        wait_for_more(folder, NUMBERS)
        assert_none_is_missing(folder)
        assert flink.rest.busy_task_managers(job.id) == set(names) - {busy}
        flink.start_taskmanager(names.index(busy))

        killed = flink.kill_worker()
        wait_for_more(folder, NUMBERS)
        assert_none_is_missing(folder)
        assert killed not in flink.workers()


def test_a_stream_on_flink_goes_on_from_a_savepoint(flink: FlinkCluster, folder: Path) -> None:
    with counting_on_flink(flink, folder, name="before") as job:
        savepoint = flink.rest.savepoint(job.id, then_cancel=True)
        wait_until(lambda: flink.rest.job_state(job.id) == "CANCELED", "end of the job")
    before = max(left_in(folder))
    for file in folder.iterdir():
        file.unlink()
    with counting_on_flink(flink, folder, name="after", savepoint=savepoint):
        # It did not begin anew, and what was done between the savepoint and the end is done again.
        assert 0 < min(left_in(folder)) <= before + 1
