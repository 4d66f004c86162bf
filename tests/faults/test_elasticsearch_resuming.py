"""A campaign goes on where it was killed, on the same code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults import elasticsearch_campaign as campaign
from tests.faults.campaign_facts import commit
from tests.faults.elasticsearch_faults import Schedule
from tests.faults.elasticsearch_report import report, summary
from tests.faults.elasticsearch_schedule import Finished


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that were run; seed 13 finds a problem."""
    seeds: list[int] = []

    def run(schedule: Schedule, cluster: Any, folder: Path) -> Finished:
        seeds.append(schedule.seed)
        folder.mkdir()
        (folder / "writer-0.jsonl").touch()
        finished = Finished(schedule=schedule, seconds=2.0, inputs=10, attempts=3)
        finished.faults["node killed"] = 1
        finished.classes["indexed"] = 10
        if schedule.seed == 13:
            finished.lost = 1
            finished.problems.append("first: lost: c1 v4 is v2")
        return finished

    monkeypatch.setattr(campaign, "run", run)
    monkeypatch.setattr(campaign.Clusters, "running", lambda clusters: None)
    return seeds


def test_what_was_fine_is_not_run_again(ran: list[int], tmp_path: Path) -> None:
    results = tmp_path / "faults" / "results.jsonl"
    campaign.run_campaign(range(1, 3), nodes=1, results=results)
    with results.open("a") as file:
        file.write('{"seed": 3, "no')  # killed while it wrote this
    lines = campaign.run_campaign(range(1, 5), nodes=1, results=results)
    assert ran == [1, 2, 3, 4]
    assert [line["seed"] for line in lines] == [1, 2, 3, 4]
    campaign.run_campaign(range(1, 3), nodes=3, results=results)
    assert ran == [1, 2, 3, 4, 1, 2]


def test_other_code_has_no_results_yet(ran: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "results.jsonl"
    campaign.run_campaign(range(1, 3), nodes=1, results=results)
    monkeypatch.setattr(campaign, "CODE", ("pyproject.toml",))
    campaign.run_campaign(range(1, 3), nodes=1, results=results)
    assert ran == [1, 2, 1, 2]


def test_what_had_problems_is_run_again_and_its_journals_are_kept(ran: list[int], tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    for _ in range(2):
        [line] = campaign.run_campaign([13], nodes=1, results=results)
        assert line["problems"] == ["first: lost: c1 v4 is v2"]
    assert ran == [13, 13]
    assert (tmp_path / "failed" / "run-1-13" / "writer-0.jsonl").exists()


def test_results_survive_the_file(ran: list[int], tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    lines = campaign.run_campaign([1, 13], nodes=1, results=results)
    assert lines == [json.loads(json.dumps(line)) for line in lines]
    assert campaign.read_lines(results) == lines


def test_a_summary_names_every_problem(ran: list[int], tmp_path: Path) -> None:
    lines = campaign.run_campaign([12, 13], nodes=3, results=tmp_path / "results.jsonl")
    assert summary(lines) == (
        "3 nodes, 2 schedules: 4 s, 2 faults, 20 inputs, 1 lost, 0 resurrected\n  seed 13: first: lost: c1 v4 is v2"
    )


def test_the_report_counts_each_number_of_nodes_and_hides_no_problem(ran: list[int], tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    lines = campaign.run_campaign(range(1, 4), nodes=1, results=results)
    lines += campaign.run_campaign([13], nodes=3, results=results)
    text = report(lines)
    assert "| schedules | 3 | 1 |" in text
    assert "| = indexed | 30 | 10 |" in text
    assert "| **acknowledged writes lost** | 0 | 1 |" in text
    assert "| node killed | SIGKILL of a node, started again within a second | 3 | 1 |" in text
    assert f"seeds 1 to 3 (3) on 1 node at commit {commit()}; seeds 13 to 13 (1) on 3 nodes at" in text
    assert "- 3 nodes, seed 13: first: lost: c1 v4 is v2" in text
