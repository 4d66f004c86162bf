"""Fault schedules drawn from seeds: RUNS of them on one node, a third as many on three; SEED is the first."""

import os
from pathlib import Path

import pytest

from tests.faults.elasticsearch_campaign import run_campaign

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("nodes", [1, 3])
def test_no_acknowledged_write_is_lost_and_no_delete_undone(
    nodes: int, startable_elasticsearch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, seed = int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))
    seeds = range(seed, seed + (runs if nodes == 1 else max(1, runs // 3)))
    schedules = run_campaign(seeds, nodes=nodes, version=startable_elasticsearch, folder=tmp_path)
    with capsys.disabled():
        faults = sum(each.faults.total() for each in schedules)
        inputs = sum(each.inputs for each in schedules)
        print(f"\n{nodes} nodes: {len(schedules)} schedules, {faults} faults, {inputs} inputs")
    assert [f"seed {each.schedule.seed}: {problem}" for each in schedules for problem in each.problems] == []
    assert [each.lost + each.resurrected for each in schedules] == [0] * len(seeds)
    assert all(each.inputs for each in schedules)
