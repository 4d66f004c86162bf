"""Parses the labels of the data into classes, targets and gains.

There are two kinds of data. The labels, or the names of classes if they are given, determine the kind:

- *competitors*: a label is positive or negative (also 1 or 0, or a word of verdicts: competitor or not_competitor), or
  a grade is 2, 1 or 0;
- *classes*: a label is the name of a class, such as entailment, neutral or contradiction.

In both kinds, a row is unlabelled if its cell is empty or one of UNLABELLED_WORDS, such as "-" or "unsure".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import (
    COMPETITOR,
    GAINS,
    NEGATIVE_WORDS,
    POSITIVE_WORDS,
    UNLABELLED_WORDS,
)

GradeOne: TypeAlias = Literal["negative", "unlabelled"]

COMPETITOR_CLASSES = ("competitor", "other")
# A column with more distinct values contains, for example, reasons instead of classes.
MAX_CLASSES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCell:
    """The label and the grade of one row as written; "" if there is none. `place` is the file and row number."""

    place: str
    label: str = ""
    grade: str = ""

    @property
    def empty(self) -> bool:
        """Whether the row is unlabelled."""
        return is_unlabelled(self.label) and is_unlabelled(self.grade)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """The labels of `n` rows, for the `C` names of `classes`.

    Attributes:
        targets: float32 `[n, C]`; 1 if the row has the class, else 0.
        known: bool `[n, C]`; False if the row is unlabelled.
        gains: float32 `[n]`; the gain of the label or grade; NaN if the row is unlabelled or the data are *classes*.
    """

    classes: tuple[str, ...]
    targets: NDArray[np.float32]
    known: NDArray[np.bool_]
    gains: NDArray[np.float32]

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Bool `[n]`: rows with at least one known class."""
        return np.asarray(self.known.any(axis=1))


def is_unlabelled(text: str) -> bool:
    """Return whether a cell means that there is no label."""
    return text.casefold() in UNLABELLED_WORDS


def read_labels(
    cells: Sequence[LabelCell], *, classes: Sequence[str] | None = None, grade_one: GradeOne = "negative"
) -> Labels:
    """Return the labels of all rows of the data.

    `classes` sets the classes and their order; if omitted, they are the classes that occur. Competitor data with
    positive labels only have the single class "competitor". `grade_one` sets how a related company (grade 1) is
    treated: as a negative with gain 1, or as unlabelled.

    Raises:
        InvalidInput: a label does not fit the kind of the data (the message names its row), `classes` has a name twice,
            or the labels are too many to be classes or may mean grades.
    """
    labelled = [cell for cell in cells if not cell.empty]
    named = tuple(classes) if classes is not None else ()
    if len(set(named)) < len(named):
        raise InvalidInput(f"a class is named twice among {', '.join(named)}; name each class once")
    if _are_competitors(labelled, named):
        return _competitors(cells, named, grade_one)
    return _named_classes(cells, named)


def _are_competitors(labelled: Sequence[LabelCell], named: tuple[str, ...]) -> bool:
    """Return whether the data are *competitors*, not *classes*. `labelled`: the cells of the labelled rows."""
    if named:
        return set(named) <= set(COMPETITOR_CLASSES)
    labels = {cell.label.casefold() for cell in labelled if cell.label}
    if labels == {"0", "1", "2"}:
        raise InvalidInput(
            "the label column contains 0, 1 and 2; call it 'grade' if 2 means competitor and 1 related, "
            "or name the classes (--classes) if these are three classes"
        )
    return not labels or bool(labels & (POSITIVE_WORDS | NEGATIVE_WORDS))


def _competitors(cells: Sequence[LabelCell], named: tuple[str, ...], grade_one: GradeOne) -> Labels:
    gains = np.array([_gain(cell, grade_one) for cell in cells], dtype=np.float32)
    labelled, positive = ~np.isnan(gains), gains == GAINS[COMPETITOR]
    only_positives = bool(labelled.any()) and not (labelled & ~positive).any()
    classes = named or (COMPETITOR_CLASSES[:1] if only_positives else COMPETITOR_CLASSES)
    columns = {COMPETITOR_CLASSES[0]: positive, COMPETITOR_CLASSES[1]: labelled & ~positive}
    return Labels(
        classes=classes,
        targets=np.stack([columns[name] for name in classes], axis=1).astype(np.float32),
        known=np.repeat(labelled[:, None], len(classes), axis=1),
        gains=gains,
    )


def _gain(cell: LabelCell, grade_one: GradeOne) -> float:
    """Return the gain of a row of competitor data; NaN if it is unlabelled."""
    if cell.empty:
        return float("nan")
    if not is_unlabelled(cell.grade):
        return _graded_gain(cell, grade_one)
    word = cell.label.casefold()
    if word in POSITIVE_WORDS:
        return GAINS[COMPETITOR]
    if word in NEGATIVE_WORDS:
        return 0.0
    raise InvalidInput(
        f"{cell.place}: label {cell.label!r:.60} is none of positive, negative, unlabelled (or 1, 0, empty); "
        "correct it, or name the classes (--classes) if these are other classes"
    )


def _graded_gain(cell: LabelCell, grade_one: GradeOne) -> float:
    if cell.grade not in {str(grade) for grade in GAINS}:
        raise InvalidInput(f"{cell.place}: grade {cell.grade!r:.60} is not 2, 1 or 0 (or empty)")
    grade = int(cell.grade)
    return float("nan") if grade == 1 and grade_one == "unlabelled" else GAINS[grade]


def _named_classes(cells: Sequence[LabelCell], named: tuple[str, ...]) -> Labels:
    graded = next((cell for cell in cells if not is_unlabelled(cell.grade)), None)
    if graded:
        raise InvalidInput(f"{graded.place}: has a grade, but other rows have classes; use them in separate runs")
    names = ["" if cell.empty else cell.label for cell in cells]
    classes = named or tuple(sorted(set(names) - {""}))
    if len(classes) > MAX_CLASSES:
        raise InvalidInput(
            f"the label column contains {len(classes):,} different labels, such as {classes[0]!r:.60}: too many to be "
            "classes; rename the column of labels to 'label'"
        )
    number = {name: column for column, name in enumerate(classes)}
    targets = np.zeros((len(cells), len(classes)), dtype=np.float32)
    for row, (cell, name) in enumerate(zip(cells, names, strict=True)):
        if name and name not in number:
            raise InvalidInput(f"{cell.place}: label {name!r:.60} is none of {', '.join(classes)}")
        if name:
            targets[row, number[name]] = 1
    known = np.repeat(targets.any(axis=1, keepdims=True), len(classes), axis=1)
    return Labels(classes=classes, targets=targets, known=known, gains=np.full(len(cells), np.nan, dtype=np.float32))
