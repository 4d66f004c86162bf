"""The stream is killed at random moments; RUNS says how many schedules of ten kills (half of it), SEED the first."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.stream_kill import Stage, missing
from tests.faults.stream_victim import MISTAKES

pytestmark = pytest.mark.faults

# A kill costs several seconds (each life imports Beam), much more than one of the other campaigns.
RUNS_PER_SCHEDULE = 2


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A test that asks for it is "not run" where Beam or Kafka cannot be used."""
    if reason := missing():
        pytest.skip(reason)
    with Stage(elasticsearch=os.environ.get("STORE") == "elasticsearch") as stage:
        yield stage


def test_a_killed_stream_loses_no_message_that_it_committed(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, first = int(os.environ.get("RUNS", "10")), int(os.environ.get("SEED", "1"))
    seeds = range(first, first + max(1, (runs + 1) // RUNS_PER_SCHEDULE))
    schedules = [stage.play(seed, folder=tmp_path / f"seed-{seed}") for seed in seeds]
    with capsys.disabled():
        kills, checked = (sum(getattr(each, name) for each in schedules) for name in ("kills", "checked"))
        print(f"\n{len(schedules)} schedules, {kills} kills, {checked} messages checked")
    assert [f"seed {each.seed}: {problem}" for each in schedules for problem in each.problems] == []
    assert [each.lost for each in schedules] == [0] * len(seeds)
    assert all(each.kills and each.checked and each.poison for each in schedules)


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_planted_on_purpose_is_found(stage: Stage, mistake: str, tmp_path: Path) -> None:
    for seed in range(1, 17):  # what it takes is a kill at the right moment; most often the first schedule has one
        if stage.play(seed, folder=tmp_path / f"seed-{seed}", kills=5, mistake=mistake).lost:
            return
    raise AssertionError(f"nothing was lost in 80 kills of a stream with this mistake: {mistake}")
