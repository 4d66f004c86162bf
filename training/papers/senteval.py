"""SentEval: accuracy of a linear classifier on frozen sentence vectors, the paper's Table 3.

MR, CR, SUBJ and MPQA: accuracy over ten outer folds, the strength of regularisation chosen inside each by
inner folds. SST2, TREC and MRPC: official splits; the strength is chosen on SST2's dev part, and by folds
of the training part where there is none. MRPC classifies pairs by |u−v| and u∗v and has F1 too.

Rows are scaled to a mean square of 1 before, so that one grid of strengths fits every dimension.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.evaluate.encoding import Encode, encode_all
from training.papers.tsv import read_columns

FOLDED = ("MR", "CR", "SUBJ", "MPQA")
SPLIT = ("SST2", "TREC", "MRPC")
TASKS = (*FOLDED, *SPLIT)
OUTER_FOLDS = 10
INNER_FOLDS = 5
STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""C of scikit-learn: smaller regularises more."""

Features = NDArray[np.float32]
Labels = NDArray[np.str_]
Step = Callable[[str], None]
"""called with a line that says what has been done"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTask:
    """Texts of a task, one tuple of one or two for each row, their labels, and the split ("" where there is none)."""

    name: str
    texts: tuple[tuple[str, ...], ...]
    labels: Labels
    splits: NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferQuality:
    """Accuracy in per cent; over the outer folds (`folds`) where there are any. `f1` is MRPC's, in per cent."""

    accuracy: float
    folds: tuple[float, ...]
    strengths: tuple[float, ...]
    f1: float | None = None


def read_task(folder: Path, name: str) -> TransferTask:
    """The task of this name. An empty text becomes ".", as in SentEval.

    Raises:
        InvalidInput: there is no such task or file, or a column or split is missing.
    """
    if name not in TASKS:
        raise InvalidInput(f"there is no task {name!r:.40}; use {', '.join(TASKS)}")
    texts = ("text1", "text2") if name == "MRPC" else ("text",)
    split = ("split",) if name in SPLIT else ()
    rows = read_columns(folder, name, ("label", *texts, *split))
    task = TransferTask(
        name=name,
        texts=tuple(tuple(text or "." for text in row[1 : 1 + len(texts)]) for row in rows),
        labels=np.array([row[0] for row in rows]),
        splits=np.array([row[-1] if split else "" for row in rows]),
    )
    missing = {"train", "test"} - set(task.splits.tolist()) if split else set()
    if missing:
        raise InvalidInput(f"{name} in {folder} has no rows of the split {min(missing)}; fetch it again")
    return task


def evaluate_task(
    encode: Encode,
    task: TransferTask,
    *,
    seed: int = 0,
    outer_folds: int = OUTER_FOLDS,
    inner_folds: int = INNER_FOLDS,
    step: Step | None = None,
) -> TransferQuality:
    """Encodes a task and classifies it; the same `seed` makes the same folds.

    Raises:
        InvalidInput: a class has fewer rows than there are folds.
    """
    from threadpoolctl import threadpool_limits

    columns = [encode_all(encode, [texts[side] for texts in task.texts]) for side in range(len(task.texts[0]))]
    features = pair_features(*columns) if len(columns) == 2 else scaled(columns[0])
    if step is not None:
        step(f"{task.name}: {len(features):,} rows encoded")
    # Threads of the matrix library wait for each other at every small step: one is up to a hundred times faster.
    with threadpool_limits(limits=1):
        if task.name in SPLIT:
            return _split_quality(task, features, seed=seed, inner_folds=inner_folds)
        return _folded_quality(task, features, seed=seed, folds=(outer_folds, inner_folds), step=step)


def scaled(vectors: Features) -> Features:
    """Unit rows `[n, d]` times √d: entries have a mean square of 1."""
    return vectors * np.float32(np.sqrt(vectors.shape[1]))


def pair_features(left: Features, right: Features) -> Features:
    """|u−v| and u∗v side by side, `[n, 2d]`, of scaled rows."""
    one, other = scaled(left), scaled(right)
    return np.concatenate([np.abs(one - other), one * other], axis=1)


def best_strength(features: Features, labels: Labels, folds: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> float:
    """The strength of highest accuracy over folds (known rows, held-out rows); the strongest of equal ones."""
    reached = [
        np.mean(
            [
                (classify(features[known], labels[known], features[held], strength=strength) == labels[held]).mean()
                for known, held in folds
            ]
        )
        for strength in STRENGTHS
    ]
    return STRENGTHS[int(np.argmax(reached))]


def classify(features: Features, labels: Labels, rows: Features, *, strength: float) -> Labels:
    """The labels that a logistic regression on `features` and `labels` gives to `rows`."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=strength, max_iter=2_000).fit(features, labels)
    predicted: Labels = fitted.predict(rows)
    return predicted


def f1(predicted: Labels, labels: Labels, positive: str) -> float:
    """2 TP / (2 TP + FP + FN) of the class `positive`; NaN where it neither occurs nor is predicted."""
    hits = ((predicted == positive) & (labels == positive)).sum()
    claims = (predicted == positive).sum() + (labels == positive).sum()
    return float(2 * hits / claims) if claims else float("nan")


def _folded_quality(
    task: TransferTask, features: Features, *, seed: int, folds: tuple[int, int], step: Step | None
) -> TransferQuality:
    """`folds`: outer, inner."""
    accuracies, strengths = [], []
    for number, (known, held) in enumerate(_folds(task.labels, folds[0], seed), 1):
        inner = _folds(task.labels[known], folds[1], seed)
        strength = best_strength(features[known], task.labels[known], inner)
        predicted = classify(features[known], task.labels[known], features[held], strength=strength)
        accuracies.append(100 * float((predicted == task.labels[held]).mean()))
        strengths.append(strength)
        if step is not None:
            step(f"{task.name}: fold {number} of {folds[0]}, {accuracies[-1]:.2f} with C {strength:g}")
    return TransferQuality(accuracy=float(np.mean(accuracies)), folds=tuple(accuracies), strengths=tuple(strengths))


def _split_quality(task: TransferTask, features: Features, *, seed: int, inner_folds: int) -> TransferQuality:
    train, dev, test = (np.flatnonzero(task.splits == split) for split in ("train", "dev", "test"))
    if len(dev):
        strength = best_strength(features, task.labels, [(train, dev)])
    else:
        folds = _folds(task.labels[train], inner_folds, seed)
        strength = best_strength(features[train], task.labels[train], folds)
    predicted = classify(features[train], task.labels[train], features[test], strength=strength)
    return TransferQuality(
        accuracy=100 * float((predicted == task.labels[test]).mean()),
        folds=(),
        strengths=(strength,),
        f1=100 * f1(predicted, task.labels[test], "1") if task.name == "MRPC" else None,
    )


def _folds(labels: Labels, folds: int, seed: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    from sklearn.model_selection import StratifiedKFold

    _, counts = np.unique(labels, return_counts=True)
    if len(counts) < 2 or counts.min() < folds:
        raise InvalidInput(f"{len(counts)} classes with at least {counts.min()} rows make no {folds} folds")
    return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels))
