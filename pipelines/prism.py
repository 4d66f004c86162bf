"""Prism started from where it is installed.

Beam's own runner makes the program executable before it starts it, whether it is or not. On a read-only file system,
as in our images, that fails (EROFS is no PermissionError, which Beam would forgive).
"""

import os
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions, PrismRunnerOptions
from apache_beam.runners.portability.job_server import StopOnExitJobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner


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
