"""Cancels jobs on Flink through Flink's REST API.

Beam's job server does not cancel them: it only stops waiting for the job, which keeps running on Flink (seen with Beam
2.62; its `JobInvocation.cancel` drops the result that it would have to cancel). So a command that stops or restarts a
streaming job must cancel the job in Flink itself.
"""

import http.client
import json
import time
import urllib.request
from typing import Any

from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions

from similarity.errors import SimilarityError

SECONDS_TO_ANSWER = 10.0
SECONDS_TO_END = 120.0
LOOK_SECONDS = 0.5
# Values of --flink_master in Beam's options that contain no address: only the job server knows it.
UNNAMED = ("[auto]", "[local]", "[collection]")
ENDED = {"FINISHED", "CANCELED", "FAILED"}


class FlinkUnavailable(SimilarityError):
    """Flink does not answer, or does not cancel a job."""


class FlinkMaster:
    """The REST API of a cluster, at `http://HOST:PORT`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def running(self, name: str) -> list[str]:
        """Return the ids of the jobs of this name that have not ended.

        Raises:
            FlinkUnavailable: Flink does not answer.
        """
        jobs = self._ask("/jobs/overview")["jobs"]
        return [str(job["jid"]) for job in jobs if job["name"] == name and job["state"] not in ENDED]

    def end(self, name: str, *, expect_seconds: float = 0.0) -> int:
        """Cancel the jobs of this name, wait until they have ended, and return their number.

        If there is none, wait `expect_seconds` for a submitted job to appear.

        Raises:
            FlinkUnavailable: Flink does not answer, or does not cancel them.
        """
        seen: set[str] = set()
        began = time.monotonic()
        while (running := set(self.running(name))) or (not seen and time.monotonic() < began + expect_seconds):
            if time.monotonic() > began + SECONDS_TO_END:
                raise FlinkUnavailable(
                    f"Flink has not ended {name} after {SECONDS_TO_END:.0f} seconds; end it at {self.url}"
                )
            for job in running - seen:
                self._ask(f"/jobs/{job}?mode=cancel", method="PATCH")
            seen |= running
            time.sleep(LOOK_SECONDS)
        return len(seen)

    def _ask(self, path: str, *, method: str = "GET") -> Any:
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310 - the operator names the address
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER) as answer:  # noqa: S310
                return json.loads(answer.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise FlinkUnavailable(
                f"Flink does not answer at {self.url} ({error}); --flink_master must name the host and port of its "
                "REST API"
            ) from error


def master_of(options: PipelineOptions) -> FlinkMaster | None:
    """Return the cluster that --flink_master names in Beam's options, or None."""
    address = options.view_as(FlinkRunnerOptions).flink_master.strip()
    if address in UNNAMED:
        return None
    return FlinkMaster(address if "://" in address else f"http://{address}")
