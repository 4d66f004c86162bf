"""The stream is killed at random moments; RUNS says how many schedules of ten kills (half of it), SEED the first."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.stream_kill import RESULTS, Stage, missing, run_campaign
from tests.faults.stream_nursery import MISTAKES
from tests.faults.stream_report import summary

pytestmark = pytest.mark.faults

# A kill costs some three seconds, much more than one of the other campaigns.
RUNS_PER_SCHEDULE = 2


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A test that asks for it is "not run" where Beam or Kafka cannot be used."""
    if reason := missing():
        pytest.skip(reason)
    with Stage() as stage:
        yield stage


def test_a_killed_stream_loses_no_message_that_it_committed(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    runs, seed = int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))
    seeds = range(seed, seed + max(1, (runs + 1) // RUNS_PER_SCHEDULE))
    lines = run_campaign(seeds, stage, results=RESULTS)
    with capsys.disabled():
        print(f"\n{summary(lines)}")
    assert [f"seed {line['seed']}: {problem}" for line in lines for problem in line["problems"]] == []
    assert [line["lost"] for line in lines] == [0] * len(seeds)
    assert all(line["kills"] and line["checked"] and line["poison"] for line in lines)


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_planted_on_purpose_is_found(stage: Stage, mistake: str, tmp_path: Path) -> None:
    for seed in range(1, 17):  # what it takes is a kill at the right moment; most often the first schedule has one
        [line] = run_campaign([seed], stage, results=tmp_path / "results.jsonl", kills=5, mistake=mistake)
        if line["lost"]:
            return
    raise AssertionError(f"nothing was lost in 80 kills of a stream with this mistake: {mistake}")
