"""Textual similarity on sets of a few pairs: texts are angles, so cosines are known."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.papers.sts import evaluate_sts, read_sts

HEADER = "score\tsentence1\tsentence2\tsubset\n"


def angles(texts: Sequence[str]) -> NDArray[np.float32]:
    radians = np.radians([float(text) for text in texts])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def write(folder: Path, name: str, *rows: tuple[float, int, int, str]) -> None:
    lines = ["\t".join(map(str, row)) for row in rows]
    (folder / f"{name}.tsv").write_text(HEADER + "\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # Within each subset the order is right; between them it is not.
    write(tmp_path, "STS12", (5, 0, 50, "one"), (4, 0, 60, "one"), (2, 0, 10, "two"), (1, 0, 20, "two"))
    write(tmp_path, "STSb-test", (5, 0, 10, "x"), (1, 0, 20, "x"), (3, 0, 30, "y"), (2, 0, 40, "y"))
    return tmp_path


def test_pairs_are_pooled_and_subsets_are_a_second_figure(folder: Path) -> None:
    report = evaluate_sts(angles, [read_sts(folder, "STS12")])
    # Ranks of cosine 2 1 4 3 against those of score 4 3 2 1: 1 - 6 (4 + 4 + 4 + 4) / (4 * 15).
    assert report.sets["STS12"].pooled == pytest.approx(-60)
    assert report.sets["STS12"].subset_mean == pytest.approx(100)


def test_the_benchmark_is_always_pooled(folder: Path) -> None:
    report = evaluate_sts(angles, [read_sts(folder, "STSb-test")])
    # Ranks of cosine 4 3 2 1 against those of score 4 1 3 2: 1 - 6 (0 + 4 + 1 + 1) / 60.
    assert report.sets["STSb-test"].pooled == pytest.approx(40)
    assert report.sets["STSb-test"].subset_mean == pytest.approx(40)


def test_averages_are_over_sets(folder: Path) -> None:
    report = evaluate_sts(angles, [read_sts(folder, name) for name in ("STS12", "STSb-test")])
    assert report.average == pytest.approx((-60 + 40) / 2)
    assert report.subset_average == pytest.approx((100 + 40) / 2)
    assert [each.pairs for each in report.sets.values()] == [4, 4]


def test_equal_scores_have_no_correlation(tmp_path: Path) -> None:
    write(tmp_path, "STS13", (3, 0, 10, "x"), (3, 0, 20, "x"))
    assert math.isnan(evaluate_sts(angles, [read_sts(tmp_path, "STS13")]).average)


@pytest.mark.parametrize("score", ["high", "nan", "", "5.5", "-1"])
def test_a_score_that_is_no_number_is_refused(tmp_path: Path, score: str) -> None:
    (tmp_path / "STS13.tsv").write_text(f"{HEADER}1\ta\tb\tx\n{score}\ta\tb\tx\n")
    with pytest.raises(InvalidInput, match="STS13, row 2: the score"):
        read_sts(tmp_path, "STS13")


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no STS16\.tsv\.gz"):
        read_sts(tmp_path, "STS16")
