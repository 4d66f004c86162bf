"""Ends the jobs of a stream on Flink, by Flink's own REST API.

Beam's job server does not: asked to cancel a job it stops waiting for it, and on Flink the job runs on
(seen with Beam 2.62; its `JobInvocation.cancel` drops the result that it would have to cancel). So who
stops a stream, or starts one anew, has to tell Flink itself.
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
# Flink calls itself so in Beam's options when the job server knows the address, and nobody else.
UNNAMED = ("[auto]", "[local]", "[collection]")
ENDED = {"FINISHED", "CANCELED", "FAILED"}


class FlinkUnavailable(SimilarityError):
    """Flink does not answer, or does not end a job."""


class FlinkMaster:
    """The REST API of a cluster, at `http://HOST:PORT`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def running(self, name: str) -> list[str]:
        """The ids of the jobs of this name that have not ended.

        Raises:
            FlinkUnavailable: Flink does not answer.
        """
        jobs = self._ask("/jobs/overview")["jobs"]
        return [str(job["jid"]) for job in jobs if job["name"] == name and job["state"] not in ENDED]

    def end(self, name: str, *, expect_seconds: float = 0.0) -> int:
        """Cancels the jobs of this name and returns when they have ended; how many there were.

        Where there is none it waits `expect_seconds` for one that may still be on its way.

        Raises:
            FlinkUnavailable: Flink does not answer, or does not end them.
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
    """The cluster that Beam's options name with --flink_master; None where they name none."""
    address = options.view_as(FlinkRunnerOptions).flink_master.strip()
    if address in UNNAMED:
        return None
    return FlinkMaster(address if "://" in address else f"http://{address}")
