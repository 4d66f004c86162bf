"""Campaigns of random faults: RUNS of them, drawn from SEED. On three nodes of Elasticsearch, a third as many."""

import os
from pathlib import Path

import pytest

from tests.faults import bit_flips, elasticsearch_campaign, sqlite_kill

pytestmark = pytest.mark.faults

RUNS, SEED = int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))


def test_flipped_bits_change_no_ranking_in_silence(tmp_path: Path) -> None:
    campaign = bit_flips.run_campaign(tmp_path, runs=100 * RUNS, seed=SEED)
    assert campaign.problems == []
    assert campaign.trials == 100 * RUNS
    assert campaign.noticed


def test_a_killed_writer_loses_no_acknowledged_write(tmp_path: Path) -> None:
    campaign = sqlite_kill.run_campaign(tmp_path, runs=RUNS, seed=SEED)
    assert campaign.lost == []
    assert campaign.problems == []
    assert campaign.kills == RUNS
    assert campaign.documents > 0


@pytest.mark.parametrize("nodes", [1, 3])
def test_no_acknowledged_write_is_lost_and_no_delete_undone(
    nodes: int, startable_elasticsearch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = range(SEED, SEED + (RUNS if nodes == 1 else max(1, RUNS // 3)))
    schedules = elasticsearch_campaign.run_campaign(
        seeds, nodes=nodes, version=startable_elasticsearch, folder=tmp_path
    )
    with capsys.disabled():
        faults = sum(each.faults.total() for each in schedules)
        inputs = sum(each.inputs for each in schedules)
        print(f"\n{nodes} nodes: {len(schedules)} schedules, {faults} faults, {inputs} inputs")
    assert [f"seed {each.schedule.seed}: {problem}" for each in schedules for problem in each.problems] == []
    assert [each.lost + each.resurrected for each in schedules] == [0] * len(seeds)
    assert all(each.inputs for each in schedules)
