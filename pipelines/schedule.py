"""Re-embedding at the times of a cron expression, with the newest bundle of a folder."""

from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.cron import CronTrigger

from similarity.bundle import MANIFEST_FILE, ModelBundle
from similarity.errors import InvalidInput


def run_on_schedule(job: Callable[[], None], expression: str, *, zone: str = "UTC") -> None:
    """Runs the job at these times until the process is stopped; never two at once, missed ones once.

    Raises:
        InvalidInput: this is no cron expression of five fields, or no time zone.
    """
    scheduler = BlockingScheduler(timezone=_zone(zone))
    scheduler.add_job(job, cron_trigger(expression, zone=zone), coalesce=True, max_instances=1, misfire_grace_time=None)
    scheduler.start()


def cron_trigger(expression: str, *, zone: str) -> CronTrigger:
    """The times of a cron expression: minute, hour, day of month, month, day of week (0 is Monday, or mon ... sun).

    Raises:
        InvalidInput: it is none.
    """
    try:
        return CronTrigger.from_crontab(expression, timezone=_zone(zone))
    except ValueError as error:
        raise InvalidInput(
            f"{expression!r} is no cron expression ({error}); write five fields, such as '0 3 * * sat'"
        ) from None


def newest_bundle(folder: Path) -> ModelBundle:
    """The bundle of a folder of bundles that was put there last.

    Raises:
        InvalidInput: there is none.
        InvalidBundle: it is damaged.
    """
    manifests = sorted(folder.glob(f"*/{MANIFEST_FILE}"), key=lambda manifest: manifest.stat().st_mtime)
    if not manifests:
        raise InvalidInput(f"there is no bundle in {folder}; training.export puts them there, a folder each")
    return ModelBundle.load(manifests[-1].parent)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInput(f"{name!r} is no time zone; write one such as Europe/Stockholm") from None
