"""Parses the labels of a file into classes, targets and gains.

The labels determine which of three families the data belong to:

- *competitors*: positive / negative / unlabelled (also 1 / 0 / empty or "-", and the words of verdicts:
  competitor / not_competitor / unsure), or grades 2 / 1 / 0;
- *classes*: one name per row, such as entailment / neutral / contradiction;
- *multi-label*: names separated by ";", or a column of 1 / 0 per class (`label_<class>`).

In every family, an empty cell and "-" mean that the row is unlabelled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.generations.judgements import COMPETITOR, GAINS

GradeOne: TypeAlias = Literal["negative", "unlabelled"]

COMPETITOR_CLASSES = ("competitor", "other")
POSITIVE_WORDS = frozenset({"positive", "competitor", "1", "true"})
NEGATIVE_WORDS = frozenset({"negative", "not_competitor", "other", "0", "false"})
UNLABELLED_WORDS = frozenset({"", "-", "unlabelled", "unlabeled", "unsure", "none", "null", "nan"})
SEPARATOR = ";"
# A column with more distinct values does not contain classes but, for example, reasons.
MAX_CLASSES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCell:
    """The label of one row as written: a label, a grade or a cell per class. `place` is the file and row number."""

    place: str
    label: str = ""
    grade: str = ""
    by_class: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether the row is unlabelled."""
        return all(is_unlabelled(text) for text in (self.label, self.grade, *self.by_class.values()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """`targets` float32 and `known` bool are `[n, C]` for the `C` names of `classes`; `gains` float32 `[n]`."""

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

    `classes` sets the classes and their order; if omitted, they are the classes that occur. Competitor data without a
    negative have the single class "competitor". `grade_one` sets how a related company (grade 1) is treated: as a
    negative with gain 1, or as unlabelled.

    Raises:
        InvalidInput: a label does not belong to the family of the data; the message names its row.
    """
    if grade_one not in ("negative", "unlabelled"):
        raise InvalidInput(f"grade_one is {grade_one!r}; it must be 'negative' or 'unlabelled'")
    labelled = [cell for cell in cells if not cell.empty]
    named = tuple(classes) if classes is not None else ()
    if len(set(named)) < len(named):
        raise InvalidInput(f"a class is named twice: {', '.join(named)}")
    if any(cell.by_class for cell in labelled):
        return _columns_of_classes(cells, named)
    if _speaks_of_competitors(labelled, named):
        return _competitors(cells, named, grade_one)
    return _named_classes(cells, named)


def _speaks_of_competitors(labelled: Sequence[LabelCell], named: tuple[str, ...]) -> bool:
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
    negatives_or_nothing = bool((labelled & ~positive).any()) or not labelled.any()
    classes = named or (COMPETITOR_CLASSES if negatives_or_nothing else COMPETITOR_CLASSES[:1])
    columns = {COMPETITOR_CLASSES[0]: positive, COMPETITOR_CLASSES[1]: labelled & ~positive}
    return Labels(
        classes=classes,
        targets=np.stack([columns[name] for name in classes], axis=1).astype(np.float32),
        known=np.repeat(labelled[:, None], len(classes), axis=1),
        gains=gains,
    )


def _gain(cell: LabelCell, grade_one: GradeOne) -> float:
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
    several = any(SEPARATOR in cell.label for cell in cells)
    names = [_names(cell, several=several) for cell in cells]
    classes = named or tuple(sorted({name for row in names for name in row}))
    if len(classes) > MAX_CLASSES:
        raise InvalidInput(
            f"the label column contains {len(classes):,} different labels, such as {classes[0]!r:.60}: too many to be "
            "classes; rename the column of labels to 'label'"
        )
    number = {name: column for column, name in enumerate(classes)}
    targets = np.zeros((len(cells), len(classes)), dtype=np.float32)
    for row, (cell, found) in enumerate(zip(cells, names, strict=True)):
        for name in found:
            if name not in number:
                raise InvalidInput(f"{cell.place}: label {name!r:.60} is none of {', '.join(classes)}")
            targets[row, number[name]] = 1
    known = np.repeat(targets.any(axis=1, keepdims=True), len(classes), axis=1)
    return _ungraded(classes, targets, known)


def _names(cell: LabelCell, *, several: bool) -> list[str]:
    if not is_unlabelled(cell.grade):
        raise InvalidInput(f"{cell.place}: has a grade, but other rows have classes; read the two apart")
    if cell.empty:
        return []
    parts = cell.label.split(SEPARATOR) if several else [cell.label]
    return [part.strip() for part in parts if part.strip()]


def _columns_of_classes(cells: Sequence[LabelCell], named: tuple[str, ...]) -> Labels:
    classes = named or tuple(dict.fromkeys(name for cell in cells for name in cell.by_class))
    targets = np.zeros((len(cells), len(classes)), dtype=np.float32)
    known = np.zeros((len(cells), len(classes)), dtype=np.bool_)
    for row, cell in enumerate(cells):
        if not is_unlabelled(cell.label) or not is_unlabelled(cell.grade):
            raise InvalidInput(f"{cell.place}: has one label, but other rows have a column per class; read them apart")
        for column, name in enumerate(classes):
            known[row, column], targets[row, column] = _yes_or_no(cell, name)
    return _ungraded(classes, targets, known)


def _yes_or_no(cell: LabelCell, name: str) -> tuple[bool, float]:
    text = cell.by_class.get(name, "")
    word = text.casefold()
    if is_unlabelled(text):
        return False, 0.0
    if word in POSITIVE_WORDS or word in NEGATIVE_WORDS:
        return True, float(word in POSITIVE_WORDS)
    raise InvalidInput(f"{cell.place}: {text!r:.60} for class {name} is none of 1, 0 and empty")


def _ungraded(classes: tuple[str, ...], targets: NDArray[np.float32], known: NDArray[np.bool_]) -> Labels:
    gains = np.full(len(targets), np.nan, dtype=np.float32)
    return Labels(classes=classes, targets=targets, known=known, gains=gains)
