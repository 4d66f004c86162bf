"""Runs Prism from its installed location, and works around a bug in splitting.

Beam's runner always makes the program executable before it starts it. On a read-only file system, as in our images,
that fails (EROFS is not a PermissionError, which Beam would ignore).

Prism asks a worker to split a Beam bundle that makes no progress. In the worker of Beam 2.77, an element can then have
a progress of NaN, and the job fails with "cannot convert float NaN to integer" (seen once, on a busy machine). The
worker counts an element before it records the size of the element, so between these steps there is no mean size
(runners/worker/operations.py, `total_output_bytes`).
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

# The value that Beam uses if the progress of an element is unknown.
UNKNOWN_PROGRESS = 0.5
_BEAMS_SPLIT: Callable[..., Any] = DataInputOperation._compute_split


class InstalledPrism(PrismJobServer):
    """Prism at the path that `--prism_location` names."""

    @staticmethod
    def _prepare_executable(url: str, bin_cache: str, ignore_cache: bool = True) -> str:
        """Return the path unchanged, instead of Beam's step that makes the program executable."""
        del bin_cache, ignore_cache
        return url


class InstalledPrismRunner(PrismRunner):
    """Runs jobs on the installed Prism."""

    def default_job_server(self, options: PipelineOptions) -> StopOnExitJobServer:
        """Return a server that starts Prism with the job and stops it with the process."""
        return StopOnExitJobServer(InstalledPrism(options))


def is_installed(options: PipelineOptions) -> bool:
    """Return whether `--prism_location` names an executable program on this machine."""
    location = options.view_as(PrismRunnerOptions).prism_location or ""
    return Path(location).is_file() and os.access(location, os.X_OK) and not location.endswith(".zip")


def forgive_unknown_progress() -> None:
    """Make workers in this process treat a NaN progress as unknown when they split, instead of failing the job."""
    setattr(DataInputOperation, _BEAMS_SPLIT.__name__, staticmethod(_split))  # a class of Beam, not of ours


def _split(index: int, progress: float, *more: Any, **named: Any) -> Any:
    """Call Beam's function with UNKNOWN_PROGRESS if the progress of the element at `index` is NaN."""
    return _BEAMS_SPLIT(index, UNKNOWN_PROGRESS if math.isnan(progress) else progress, *more, **named)
