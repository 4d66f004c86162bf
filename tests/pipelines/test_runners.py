"""Batch jobs run on real runners. Of streams see tests/end_to_end and tests/faults."""

from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.servers.flink import FlinkCluster
from tests.servers.prism import Prism

pytestmark = [pytest.mark.integration, pytest.mark.pipelines]

NUMBERS = 50


class Leave(beam.DoFn):
    """Makes a file named after the number."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = str(folder)

    def process(self, number: int) -> Iterator[int]:
        (Path(self._folder) / str(number)).touch()
        yield number


def assert_all_numbers_arrive(folder: Path, options: list[str]) -> None:
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    shared = pipeline | beam.Create(range(NUMBERS), reshuffle=False) | beam.Reshuffle()
    _ = shared | beam.ParDo(Leave(folder))
    assert pipeline.run().wait_until_finish() == "DONE"
    assert {int(file.name) for file in folder.iterdir()} == set(range(NUMBERS))


def test_a_batch_job_runs_on_prism(prism: Prism, tmp_path: Path) -> None:
    assert_all_numbers_arrive(tmp_path, prism.beam_options())


def test_a_batch_job_runs_on_flink(flink: FlinkCluster, tmp_path: Path) -> None:
    assert_all_numbers_arrive(tmp_path, flink.beam_options())
