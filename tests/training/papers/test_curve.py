"""The label-efficiency command, from files to the report, on a tiny model and a few companies."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.tiny_model import TOPICS
from training.config import TrainSettings
from training.papers.curve import Cell, cells_of, main
from training.papers.reports import curve_table

pytestmark = pytest.mark.training


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judged pairs of 30 companies; dev's anchors are the last six."""
    folder = tmp_path_factory.mktemp("judged")
    random = np.random.default_rng(0)
    topics = [list(TOPICS)[number % 3] for number in range(30)]
    companies = [
        {"id": f"c{n}", "name": f"Firm{n}", "description": f"Lot {n}: {', '.join(random.permutation(TOPICS[topic]))}."}
        for n, topic in enumerate(topics)
    ]
    (folder / "companies.jsonl").write_text("\n".join(map(json.dumps, companies)))
    for split, anchors, others in (("train", range(24), range(24)), ("dev", range(24, 30), range(24))):
        lines = ["anchor\tcandidate\tgrade"]
        for anchor in anchors:
            listed = random.permutation([n for n in others if n != anchor])[:6]
            lines += [f"c{anchor}\tc{other}\t{2 if topics[anchor] == topics[other] else 0}" for other in listed]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def command(model: Path, data: Path, output: Path, *extra: str) -> list[str]:
    fixed = f"--judged {data} --companies {data / 'companies.jsonl'} --output {output} --model {model}"
    return [
        *fixed.split(),
        *"--selection 6 --steps 4 --evaluate-every 2 --frozen-layers 1 --batch-pairs 24 --precision float32".split(),
        *extra,
    ]


def results(output: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (output / "cells").glob("*.json")]


def test_the_command_measures_every_method_and_share(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = ["cross-entropy", "pause", "listwise"]
    main(command(model, data, tmp_path, "--methods", *methods, "--shares", "1", ".5", "--seeds", "1", "2"))
    found = results(tmp_path)
    assert len(found) == 1 + 3 * 2 * 2
    assert {len(result["ndcg10_of_anchors"]) for result in found} == {6}
    assert all("by_head" in result for result in found if result["method"] == "pause")
    table = (tmp_path / "table.md").read_text()
    assert table in capsys.readouterr().out
    assert table.count("| pause |") == 2
    assert "| 100% (" in table
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_changes_of_a_method_change_its_settings() -> None:
    settings = Cell(method="pause/half/constant", share=0.1, seed=2).settings(TrainSettings())
    assert (settings.method, settings.labelled_share, settings.alpha, settings.seed) == ("pause", 0.5, 0.0, 2)
    assert [cell.share for cell in cells_of(["pause/half"], [1.0, 0.1], [1])] == [0.1]


def test_the_length_of_the_runs_is_given_in_steps(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recipe sets the number of steps, so `--epochs` would have no effect."""
    with pytest.raises(SystemExit):
        main(command(model, data, tmp_path, "--epochs", "2"))
    assert "unrecognized arguments: --epochs 2" in capsys.readouterr().err


def test_an_unknown_change_is_refused_with_those_there_are(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(command(model, data, tmp_path, "--methods", "pause/quarter"))
    assert "unknown change 'quarter'" in capsys.readouterr().err


def made(method: str, share: float, seed: int, ndcg: list[float]) -> dict[str, Any]:
    figures = {"accuracy": 0.8, "precision": 0.7, "recall": 0.6, "f1": 0.65, "auc": 0.9}
    return {
        "method": method,
        "share": share,
        "seed": seed,
        "labelled": round(1000 * share),
        "dev": {"ndcg10": float(np.mean(ndcg)), "auc": 0.9, "p10": 0.3},
        "ndcg10_of_anchors": ndcg,
        "by_cosine": figures,
    }


@pytest.fixture
def two_methods() -> list[dict[str, Any]]:
    return [
        made("old", 0.1, 1, [0.5, 0.6]),
        made("old", 0.1, 2, [0.7, 0.8]),
        made("new", 0.1, 1, [0.6, 0.7]),
        made("new", 0.1, 2, [0.8, 0.9]),
    ]


def test_the_table_gives_means_deviations_and_paired_differences(two_methods: list[dict[str, Any]]) -> None:
    old, new = curve_table(two_methods, reference="old").splitlines()[2:]
    # .55 and .75: mean .65, standard deviation .1 * sqrt(2).
    assert "| 0.650 ± 0.141 |" in old
    # Every anchor gains .1, whichever are drawn.
    assert "| +0.100 (+0.100 to +0.100) |" in new
    assert old.endswith("|  | 2 |")


def test_methods_are_only_compared_over_the_same_seeds(two_methods: list[dict[str, Any]]) -> None:
    *_, new = curve_table([*two_methods[:1], *two_methods[2:]], reference="old").splitlines()
    assert new.endswith("|  | 2 |")
