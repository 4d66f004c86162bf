"""Runs the SIGKILL campaign on the embedded index and writes `docs/reports/sqlite-kill.md`.

    RUNS=200 SEED=1 python -m tests.faults.report

The exit status is 1 if anything was lost or wrong.
"""

import os
import platform
import sqlite3
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.campaign_facts import ROOT, commit, machine
from tests.faults.sqlite_kill import FRESH_FILE_EVERY, Campaign, run_campaign

REPORT = ROOT / "docs" / "reports" / "sqlite-kill.md"


def main() -> int:
    runs, seed = int(os.environ.get("RUNS", "200")), int(os.environ.get("SEED", "1"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        campaign = run_campaign(Path(folder), runs=runs, seed=seed)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(report(campaign, seed=seed, seconds=time.monotonic() - started), encoding="utf-8")
    print(REPORT.read_text(encoding="utf-8"))
    return 1 if campaign.lost or campaign.problems else 0


def report(campaign: Campaign, *, seed: int, seconds: float) -> str:
    lines = [*campaign.lost, *campaign.problems]
    return f"""# Killing the embedded index while it writes

A writer process is killed with SIGKILL at a random moment, {campaign.kills} times, mostly going on with the same file
and every {FRESH_FILE_EVERY}th time with a new one. After each kill the file must open, pass SQLite's integrity
check, hold every acknowledged batch and the one under way wholly or not at all; words and lookups must fit the
documents, and search and look-up must answer as a scan does.

| | |
|---|---|
| kills | {campaign.kills} (before the first acknowledged batch: {campaign.kills_before_the_first_batch}) |
| files | {campaign.files} |
| acknowledged batches | {campaign.batches:,} |
| acknowledged writes (documents) | {campaign.documents:,} |
| batches kept though the kill came before the acknowledgement | {campaign.kept_unacknowledged} |
| **acknowledged writes lost** | **{len(campaign.lost)}** |
| **other problems** | **{len(campaign.problems)}** |
| run | `RUNS={campaign.kills} SEED={seed} python -m tests.faults.report`, {seconds:.0f} s |
| commit | {commit()} |
| date | {datetime.now(UTC):%Y-%m-%d %H:%M} UTC |
| machine | {machine()} |
| software | Python {platform.python_version()}, SQLite {sqlite3.sqlite_version} |

SIGKILL ends the process, not the machine: what this shows is that no commit is torn and none is acknowledged too
early. That a commit also survives a power cut rests on `synchronous=FULL` and on a disk that keeps what it flushed.
""" + "".join(f"\n- {line}" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
