"""Batch jobs run on real runners. Of streams see tests/end_to_end and tests/faults."""

import errno
import math
import os
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import bundle_processor

from pipelines import prism as our_prism
from pipelines.options import beam_options
from tests.servers import prism as prism_server
from tests.servers.flink import FlinkCluster
from tests.servers.prism import Prism

pytestmark = [pytest.mark.integration, pytest.mark.pipelines]

NUMBERS = 50


@pytest.fixture
def prism_program(prism: Prism) -> Path:
    """The program, which `prism` has installed."""
    del prism
    return prism_server.install()


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


def test_a_worker_splits_where_an_elements_progress_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    # As Prism asks for it: half of what is left, here of four elements of which the first is under way.
    def split(progress: float) -> object:
        return bundle_processor.DataInputOperation._compute_split(0, progress, math.inf, 0.5, 4)

    monkeypatch.setattr(bundle_processor.DataInputOperation, "_compute_split", staticmethod(our_prism._BEAMS_SPLIT))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        split(math.nan)
    known = split(0.25)
    beam_options(["--runner=PrismRunner"], bounded=False)
    assert split(math.nan) == split(0.5) is not None
    assert split(0.25) == known


def test_a_batch_job_runs_on_flink(flink: FlinkCluster, tmp_path: Path) -> None:
    assert_all_numbers_arrive(tmp_path, PipelineOptions(flink.beam_options()))
