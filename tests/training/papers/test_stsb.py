"""Regression of scored pairs in the trainer, and the Table 2 command on a tiny model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.papers.sentence_pairs import write_sts
from training.papers.sts import StsSelection, StsSet, scored_pairs
from training.papers.stsb import main
from training.run.task import fingerprint_of

pytestmark = pytest.mark.training


@pytest.fixture(scope="module")
def sts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sts(tmp_path_factory.mktemp("sts"))


def made(scores: Sequence[float]) -> StsSet:
    count = len(scores)
    return StsSet(
        name="made",
        left=tuple(f"text {number}" for number in range(count)),
        right=("text 0",) * count,
        scores=np.array(scores),
        subsets=("",) * count,
    )


def command(model: Path, sts: Path, output: Path, *extra: str) -> list[str]:
    fixed = f"--sts {sts} --output {output} --model {model} --batch-pairs 8 --learning-rate 3e-3 --evaluate-every 10"
    return [*fixed.split(), "--precision", "float32", *extra]


def results(output: Path) -> list[dict[str, Any]]:
    return [json.loads((output / "cells" / f"{name}.json").read_text()) for name in ("start", "seed-1", "seed-2")]


def test_a_pair_keeps_its_score_and_has_no_class() -> None:
    pairs = scored_pairs(made([0, 2.5, 5]))
    assert pairs.gains.tolist() == [0, 2.5, 5]
    assert pairs.texts == ("text 0", "text 1", "text 2")
    assert pairs.right.tolist() == [0, 0, 0]
    assert pairs.classes == ()
    assert not pairs.labelled.any()


def test_other_scores_are_other_data() -> None:
    first, again, other = (fingerprint_of(scored_pairs(made(scores))) for scores in ([1, 2], [1, 2], [1, 3]))
    assert first == again != other


def test_selection_is_the_correlation_of_its_set() -> None:
    def near_text_0(texts: Any) -> Any:
        angles = np.array([int(text.split()[1]) / 10 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    assert StsSelection(made([5, 3, 1]))(near_text_0)["spearman"] == pytest.approx(100)
    assert StsSelection(made([5, 1, 3]))(near_text_0)["spearman"] == pytest.approx(50)
    assert StsSelection(made([2, 2, 2]))(near_text_0) == {"spearman": -100.0}


def test_the_command_fine_tunes_each_seed_and_reports_test(
    model: Path, sts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(command(model, sts, tmp_path, "--seeds", "1", "2", "--epochs", "20"))
    start, *tuned = results(tmp_path)
    assert [result["seed"] for result in tuned] == [1, 2]
    assert min(result["test"] for result in tuned) > start["test"] + 5
    assert {result["steps"] for result in tuned} == {60}
    table = (tmp_path / "table.md").read_text()
    assert table in capsys.readouterr().out
    assert f"| as it came | {start['test']:.2f} |" in table
    assert " ± " in table.splitlines()[-1]
    best = tmp_path / "runs" / "seed-1" / "best"
    assert not (best / "head.safetensors").exists()
    assert json.loads((best / "training.json").read_text())["classes"] == []


def test_a_head_learns_the_scores_and_the_cosine_is_measured(model: Path, sts: Path, tmp_path: Path) -> None:
    main(command(model, sts, tmp_path, "--target", "head", "--seeds", "1", "--epochs", "20"))
    start, tuned = (json.loads((tmp_path / "cells" / f"{name}.json").read_text()) for name in ("start", "seed-1"))
    assert tuned["test"] != start["test"]
    assert tuned["settings"]["target"] == "head"
    assert (tmp_path / "runs" / "seed-1" / "best" / "head.safetensors").exists()


def test_a_missing_set_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no STSb-train\.tsv"):
        main(command(model, tmp_path, tmp_path / "out"))
