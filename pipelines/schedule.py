"""Scheduled re-embedding by a cron expression, with the newest bundle of a folder.

Prometheus metrics of the scheduling process:

    similarity_reembed_runs_total{end="done"}        runs by outcome: done, refused, failed
    similarity_reembed_last{end="done"}              1 for the outcome of the last run, 0 for the others
    similarity_reembed_running                       1 during a run
    similarity_reembed_due_timestamp_seconds         the first scheduled time whose run has not ended
    similarity_reembed_success_timestamp_seconds     the end of the last successful run; 0 before the first
    process_...                                      memory, CPU time, open files of the process

The due time is in the future if all is well; it is in the past while a run is active or hangs, or if it did not start.
"""

from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.cron import CronTrigger
from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, start_http_server

from similarity.bundle import MANIFEST_FILE, ModelBundle
from similarity.company import utc_now
from similarity.errors import InvalidInput

End: TypeAlias = Literal["done", "refused", "failed"]
"""Outcome of a run. Refused: the new generation does not pass the gate, or rejects documents."""


def run_on_schedule(job: Callable[[], None], expression: str, *, zone: str = "UTC") -> None:
    """Run the job at the scheduled times until the process ends. Never two run at once; one run replaces missed runs.

    Raises:
        InvalidInput: the cron expression or the time zone is invalid.
    """
    scheduler = BlockingScheduler(timezone=_zone(zone))
    scheduler.add_job(job, cron_trigger(expression, zone=zone), coalesce=True, max_instances=1, misfire_grace_time=None)
    scheduler.start()


class RunMetrics:
    """Prometheus metrics of the scheduled runs; create one per process."""

    def __init__(self, times: CronTrigger, *, now: Callable[[], datetime] = utc_now) -> None:
        self._times = times
        self._now = now
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._runs = Counter("similarity_reembed_runs", "Runs by end", ["end"], registry=registry)
        self._last = Gauge("similarity_reembed_last", "How the last run ended", ["end"], registry=registry)
        self._running = Gauge("similarity_reembed_running", "Whether a run is under way", registry=registry)
        self._due = Gauge("similarity_reembed_due_timestamp_seconds", "Of the next run", registry=registry)
        self._success = Gauge("similarity_reembed_success_timestamp_seconds", "Of the last one", registry=registry)
        for end in get_args(End):
            self._runs.labels(end)
            self._last.labels(end)
        self._look_ahead()

    def serve(self, port: int) -> None:
        """Serve the metrics over HTTP.

        Raises:
            InvalidInput: the port cannot be opened.
        """
        try:
            start_http_server(port, registry=self.registry)
        except OSError as error:
            raise InvalidInput(f"metrics cannot be served on port {port} ({error}); name another one") from error

    def counted(self, job: Callable[[], End]) -> Callable[[], None]:
        """Return the job with its outcome counted; a job that raises has failed."""

        def run() -> None:
            end: End = "failed"
            self._running.set(1)
            try:
                end = job()
            finally:
                self._ended(end)

        return run

    def _ended(self, end: End) -> None:
        self._running.set(0)
        self._runs.labels(end).inc()
        for each in get_args(End):
            self._last.labels(each).set(each == end)
        if end == "done":
            self._success.set(self._now().timestamp())
        self._look_ahead()

    def _look_ahead(self) -> None:
        due = self._times.get_next_fire_time(None, self._now())
        self._due.set(due.timestamp() if due else float("inf"))


def cron_trigger(expression: str, *, zone: str) -> CronTrigger:
    """Return the trigger of a cron expression: minute, hour, day of month, month, day of week (0 or mon is Monday).

    Raises:
        InvalidInput: the expression or the time zone is invalid.
    """
    try:
        return CronTrigger.from_crontab(expression, timezone=_zone(zone))
    except ValueError as error:
        raise InvalidInput(
            f"{expression!r} is not a cron expression ({error}); write five fields, such as '0 3 * * sat'"
        ) from None


def newest_bundle(folder: Path) -> ModelBundle:
    """Return the bundle in a folder of bundles whose manifest was modified last.

    Raises:
        InvalidInput: the folder contains no bundle.
        InvalidBundle: the bundle is damaged.
    """
    manifests = sorted(folder.glob(f"*/{MANIFEST_FILE}"), key=lambda manifest: manifest.stat().st_mtime)
    if not manifests:
        raise InvalidInput(f"there is no bundle in {folder}; training.export puts them there, a folder each")
    return ModelBundle.load(manifests[-1].parent)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInput(f"{name!r} is not a time zone; write one such as Europe/Stockholm") from None
