import os
from pathlib import Path

import pytest

from tests.faults.sqlite_kill import run_campaign


@pytest.mark.faults
def test_a_killed_writer_loses_no_acknowledged_write(tmp_path: Path) -> None:
    runs, seed = int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))
    campaign = run_campaign(tmp_path, runs=runs, seed=seed)
    assert campaign.lost == []
    assert campaign.problems == []
    assert campaign.kills == runs
    assert campaign.documents > 0
