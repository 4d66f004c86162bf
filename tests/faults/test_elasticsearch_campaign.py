"""Fault schedules drawn from seeds: RUNS of them on one node, a third as many on three; SEED is the first."""

import os

import pytest

from tests.faults.elasticsearch_campaign import RESULTS, run_campaign
from tests.faults.elasticsearch_report import summary

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("nodes", [1, 3])
def test_no_acknowledged_write_is_lost_and_no_delete_undone(
    nodes: int, startable_elasticsearch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, seed = int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))
    seeds = range(seed, seed + (runs if nodes == 1 else max(1, runs // 3)))
    lines = run_campaign(seeds, nodes=nodes, results=RESULTS, version=startable_elasticsearch)
    with capsys.disabled():
        print(f"\n{summary(lines)}")
    assert [f"seed {line['seed']}: {problem}" for line in lines for problem in line["problems"]] == []
    assert [line["lost"] + line["resurrected"] for line in lines] == [0] * len(seeds)
    assert all(line["inputs"] for line in lines)
