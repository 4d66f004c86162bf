import os
from pathlib import Path

import pytest

from tests.faults.bit_flips import run_campaign


@pytest.mark.faults
def test_flipped_bits_change_no_ranking_in_silence(tmp_path: Path) -> None:
    runs, seed = 100 * int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))
    campaign = run_campaign(tmp_path, runs=runs, seed=seed)
    assert campaign.problems == []
    assert campaign.trials == runs
    assert campaign.noticed
