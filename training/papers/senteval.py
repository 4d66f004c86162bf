"""SentEval: accuracy of a linear classifier on frozen sentence vectors, the paper's Table 3.

MR, CR, SUBJ and MPQA: accuracy over ten outer folds; the strength of regularisation is chosen on inner folds. SST2,
TREC and MRPC: official splits; the strength is chosen on the dev part of SST2, and on folds of the training part of the
others. MRPC classifies pairs by |u−v| and u∗v, and also has an F1.

Vectors are scaled to a mean square of 1 first, so that the same strengths fit every dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.console import Log, quiet
from training.data.tab_separated import benchmark_rows
from training.evaluate.encoding import Encode, encode_all

FOLDED = ("MR", "CR", "SUBJ", "MPQA")
SPLIT = ("SST2", "TREC", "MRPC")
TASKS = (*FOLDED, *SPLIT)
OUTER_FOLDS = 10
INNER_FOLDS = 5
STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""C of scikit-learn: a smaller value regularises more."""

Features = NDArray[np.float32]
Labels = NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTask:
    """The texts of each row (one or, of MRPC, two), its label, and its split ("" if the task has no splits)."""

    name: str
    texts: tuple[tuple[str, ...], ...]
    labels: Labels
    splits: NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferQuality:
    """Accuracy in per cent; of a task without splits, the mean over the outer `folds`. `f1` is that of MRPC."""

    accuracy: float
    folds: tuple[float, ...]
    strengths: tuple[float, ...]
    f1: float | None = None


def read_task(folder: Path, name: str) -> TransferTask:
    """Return the task of this name, one of TASKS. An empty text becomes ".", as in SentEval.

    Raises:
        InvalidInput: there is no such file, or a column or split is missing.
    """
    texts = ("text1", "text2") if name == "MRPC" else ("text",)
    split = ("split",) if name in SPLIT else ()
    rows = benchmark_rows(folder, name, ("label", *texts, *split))
    task = TransferTask(
        name=name,
        texts=tuple(tuple(text or "." for text in row[1 : 1 + len(texts)]) for row in rows),
        labels=np.array([row[0] for row in rows]),
        splits=np.array([row[-1] if split else "" for row in rows]),
    )
    missing = {"train", "test"} - set(task.splits.tolist()) if split else set()
    if missing:
        raise InvalidInput(f"{name} in {folder} has no rows of the split {min(missing)}; download it again")
    return task


def evaluate_task(encode: Encode, task: TransferTask, *, seed: int = 0, log: Log = quiet) -> TransferQuality:
    """Encode and classify the rows of a task; `seed` selects the folds.

    Raises:
        InvalidInput: a class has fewer rows than there are folds.
    """
    from threadpoolctl import threadpool_limits

    columns = [encode_all(encode, [texts[side] for texts in task.texts]) for side in range(len(task.texts[0]))]
    features = pair_features(*columns) if len(columns) == 2 else scaled(columns[0])
    log(f"{task.name}: {len(features):,} rows encoded")
    # The steps are so small that the threads of the matrix library mostly wait: one is up to a hundred times faster.
    with threadpool_limits(limits=1):
        if task.name in SPLIT:
            return _split_quality(task, features, seed=seed)
        return _folded_quality(task, features, seed=seed, log=log)


def scaled(vectors: Features) -> Features:
    """Return unit rows `[n, d]` times √d, so that their entries have a mean square of 1."""
    return vectors * np.float32(np.sqrt(vectors.shape[1]))


def pair_features(left: Features, right: Features) -> Features:
    """Return |u−v| and u∗v of the scaled rows, concatenated, `[n, 2d]`."""
    one, other = scaled(left), scaled(right)
    return np.concatenate([np.abs(one - other), one * other], axis=1)


def best_strength(features: Features, labels: Labels, folds: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> float:
    """Return the strength of highest accuracy over folds (known rows, held-out rows); of equal ones, the lowest."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(LogisticRegression(max_iter=2_000), {"C": list(STRENGTHS)}, cv=folds, refit=False)
    return float(search.fit(features, labels).best_params_["C"])


def classify(features: Features, labels: Labels, rows: Features, *, strength: float) -> Labels:
    """Return the labels of `rows` predicted by a logistic regression that is fitted on `features` and `labels`."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=strength, max_iter=2_000).fit(features, labels)
    predicted: Labels = fitted.predict(rows)
    return predicted


def _folded_quality(task: TransferTask, features: Features, *, seed: int, log: Log) -> TransferQuality:
    accuracies, strengths = [], []
    for number, (known, held) in enumerate(_folds(task.labels, OUTER_FOLDS, seed), 1):
        inner = _folds(task.labels[known], INNER_FOLDS, seed)
        strength = best_strength(features[known], task.labels[known], inner)
        predicted = classify(features[known], task.labels[known], features[held], strength=strength)
        accuracies.append(100 * float((predicted == task.labels[held]).mean()))
        strengths.append(strength)
        log(f"{task.name}: fold {number} of {OUTER_FOLDS}, {accuracies[-1]:.2f} with C {strength:g}")
    return TransferQuality(accuracy=float(np.mean(accuracies)), folds=tuple(accuracies), strengths=tuple(strengths))


def _split_quality(task: TransferTask, features: Features, *, seed: int) -> TransferQuality:
    from sklearn.metrics import f1_score

    train, dev, test = (np.flatnonzero(task.splits == split) for split in ("train", "dev", "test"))
    if len(dev):
        strength = best_strength(features, task.labels, [(train, dev)])
    else:
        strength = best_strength(features[train], task.labels[train], _folds(task.labels[train], INNER_FOLDS, seed))
    predicted = classify(features[train], task.labels[train], features[test], strength=strength)
    return TransferQuality(
        accuracy=100 * float((predicted == task.labels[test]).mean()),
        folds=(),
        strengths=(strength,),
        f1=100 * float(f1_score(task.labels[test], predicted, pos_label="1")) if task.name == "MRPC" else None,
    )


def _folds(labels: Labels, folds: int, seed: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    from sklearn.model_selection import StratifiedKFold

    _, counts = np.unique(labels, return_counts=True)
    if len(counts) < 2 or counts.min() < folds:
        raise InvalidInput(f"{folds} folds need two classes of {folds} rows; the smallest class has {counts.min()}")
    return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels))
