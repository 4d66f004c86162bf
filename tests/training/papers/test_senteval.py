"""Transfer tasks on vectors with separable classes, or not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.papers.senteval import (
    STRENGTHS,
    best_strength,
    classify,
    evaluate_task,
    pair_features,
    read_task,
    scaled,
)


def numbers(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit rows along the angle that a text's last word names."""
    radians = np.radians([float(text.split()[-1]) if text != "." else 0.0 for text in texts])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def write(folder: Path, name: str, header: str, rows: Sequence[str]) -> None:
    (folder / f"{name}.tsv").write_text("\n".join([header, *rows]) + "\n")


def test_scaled_rows_have_a_mean_square_of_one() -> None:
    assert (scaled(numbers(["20", "75"])) ** 2).mean(axis=1) == pytest.approx([1, 1])


def test_pairs_are_distance_and_product() -> None:
    left, right = numbers(["0"]), numbers(["90"])
    root = np.sqrt(2)
    assert pair_features(left, right)[0] == pytest.approx([root, root, 0, 0], abs=1e-6)


def test_an_empty_text_becomes_a_full_stop(tmp_path: Path) -> None:
    write(tmp_path, "CR", "label\ttext", ["0\t", "1\tgood"])
    assert read_task(tmp_path, "CR").texts == ((".",), ("good",))


def test_missing_splits_and_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, "TREC", "label\ttext\tsplit", ["0\tx\ttrain"])
    with pytest.raises(InvalidInput, match="no rows of the split test"):
        read_task(tmp_path, "TREC")
    with pytest.raises(InvalidInput, match=r"there is no MRPC\.tsv\.gz"):
        read_task(tmp_path, "MRPC")


@pytest.mark.training
def test_separable_classes_of_a_folded_task_are_separated(tmp_path: Path) -> None:
    write(tmp_path, "MR", "label\ttext", [f"{n % 2}\t{40 * (n % 2) + n / 10}" for n in range(60)])
    task = read_task(tmp_path, "MR")
    said: list[str] = []
    found = evaluate_task(numbers, task, log=said.append)
    assert found.accuracy == 100
    assert len(found.folds) == len(found.strengths) == 10
    assert said[0] == "MR: 60 rows encoded"
    assert said[-1].startswith("MR: fold 10 of 10, 100.00 with C")
    assert found == evaluate_task(numbers, task)


@pytest.mark.training
def test_official_splits_are_kept(tmp_path: Path) -> None:
    # The test part has its labels the other way round: whoever trained on it would not fail it entirely.
    rows = [f"{n % 2}\t{40 * (n % 2)}\ttrain" for n in range(20)]
    rows += [f"{n % 2}\t{40 * (n % 2)}\tdev" for n in range(4)]
    rows += [f"{1 - n % 2}\t{40 * (n % 2)}\ttest" for n in range(10)]
    write(tmp_path, "SST2", "label\ttext\tsplit", rows)
    found = evaluate_task(numbers, read_task(tmp_path, "SST2"))
    assert (found.accuracy, found.folds) == (0, ())


@pytest.mark.training
def test_paraphrases_are_classified_by_both_texts(tmp_path: Path) -> None:
    rows = [f"{n % 2}\t{10 * n}\t{10 * n + (0 if n % 2 else 80)}\t{'test' if n >= 30 else 'train'}" for n in range(36)]
    write(tmp_path, "MRPC", "label\ttext1\ttext2\tsplit", rows)
    found = evaluate_task(numbers, read_task(tmp_path, "MRPC"))
    assert found.accuracy == 100
    assert found.f1 == 100


@pytest.mark.training
def test_the_strength_of_highest_held_out_accuracy_is_taken() -> None:
    random = np.random.default_rng(4)
    features = random.normal(size=(60, 30)).astype(np.float32)
    labels = np.where(features[:, 0] + random.normal(size=60) > 0, "1", "0")
    known, held = np.arange(40), np.arange(40, 60)
    reached = {
        strength: (classify(features[known], labels[known], features[held], strength=strength) == labels[held]).mean()
        for strength in STRENGTHS
    }
    chosen = best_strength(features, labels, [(known, held)])
    assert reached[chosen] == max(reached.values())
    assert chosen == min(strength for strength in STRENGTHS if reached[strength] == reached[chosen])


@pytest.mark.training
def test_a_class_smaller_than_the_folds_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "CR", "label\ttext", ["0\t1", "0\t2", "1\t3"])
    with pytest.raises(InvalidInput, match="10 folds need two classes of 10 rows; the smallest class has 1"):
        evaluate_task(numbers, read_task(tmp_path, "CR"))
