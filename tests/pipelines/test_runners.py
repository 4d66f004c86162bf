"""Batch jobs run on real runners. Of streams see tests/end_to_end and tests/faults."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.options import beam_options
from tests.servers import prism_installation
from tests.servers.flink import FlinkCluster
from tests.servers.prism import Prism

pytestmark = [pytest.mark.integration, pytest.mark.pipelines]

NUMBERS = 50


@pytest.fixture
def prism_program(prism: Prism) -> Path:
    """The program, which `prism` has installed."""
    del prism
    return prism_installation.install()


class Leave(beam.DoFn):
    """Makes a file named after the number."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = str(folder)

    def process(self, number: int) -> Iterator[int]:
        (Path(self._folder) / str(number)).touch()
        yield number


def assert_all_numbers_arrive(folder: Path, options: PipelineOptions) -> None:
    pipeline = beam.Pipeline(options=options)
    shared = pipeline | beam.Create(range(NUMBERS), reshuffle=False) | beam.Reshuffle()
    _ = shared | beam.ParDo(Leave(folder))
    assert pipeline.run().wait_until_finish() == "DONE"
    assert {int(file.name) for file in folder.iterdir()} == set(range(NUMBERS))


def test_a_batch_job_runs_on_prism(prism: Prism, tmp_path: Path) -> None:
    assert_all_numbers_arrive(tmp_path, PipelineOptions(prism.beam_options()))


def test_prism_runs_from_a_read_only_file_system(
    prism_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "chmod", read_only)
    given = ["--runner=PrismRunner", f"--prism_location={prism_program}", "--environment_type=LOOPBACK"]
    assert_all_numbers_arrive(tmp_path, beam_options(given, bounded=True))


def test_a_batch_job_runs_on_flink(flink: FlinkCluster, tmp_path: Path) -> None:
    assert_all_numbers_arrive(tmp_path, PipelineOptions(flink.beam_options()))
