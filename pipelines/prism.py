"""Prism started from where it is installed.

Beam's own runner makes the program executable before it starts it, whether it is or not. On a read-only file system,
as in our images, that fails (EROFS is no PermissionError, which Beam would forgive).

Prism asks a worker to split a bundle that does not get on. In Beam 2.77's worker the progress of an element can be NaN
then, and the job fails with "cannot convert float NaN to integer": seen once, on a busy machine. It counts an element
before it notes its size; asked between the two, it has no mean size yet (runners/worker/operations.py,
`total_output_bytes`).
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, PrismRunnerOptions
from apache_beam.runners.portability.job_server import StopOnExitJobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner
from apache_beam.runners.worker.bundle_processor import DataInputOperation

# What Beam itself takes where an element's progress is not known.
UNKNOWN_PROGRESS = 0.5
_BEAMS_SPLIT: Callable[..., Any] = DataInputOperation._compute_split


class InstalledPrism(PrismJobServer):
    """Prism at the path that `--prism_location` names."""

    @staticmethod
    def _prepare_executable(url: str, bin_cache: str, ignore_cache: bool = True) -> str:
        """Beam's step between finding the program and starting it."""
        del bin_cache, ignore_cache
        return url


class InstalledPrismRunner(PrismRunner):
    """Runs jobs on it."""

    def default_job_server(self, options: PipelineOptions) -> StopOnExitJobServer:
        """Starts Prism with the job and ends it with the process."""
        return StopOnExitJobServer(InstalledPrism(options))


def is_installed(options: PipelineOptions) -> bool:
    """Whether `--prism_location` names a program of this machine that can be started as it is."""
    location = options.view_as(PrismRunnerOptions).prism_location or ""
    return Path(location).is_file() and os.access(location, os.X_OK) and not location.endswith(".zip")


def forgive_unknown_progress() -> None:
    """Makes workers in this process split where progress is not a number, instead of failing the job."""
    setattr(DataInputOperation, _BEAMS_SPLIT.__name__, staticmethod(_split))  # a class of Beam, not of ours


def _split(index: int, progress: float, *more: Any, **named: Any) -> Any:
    """Beam's own, but for the progress of the element at `index`."""
    return _BEAMS_SPLIT(index, UNKNOWN_PROGRESS if math.isnan(progress) else progress, *more, **named)
