"""Relevance labels of pairs of companies, and nDCG of a ranking by these labels.

A file of labels is a table with the columns anchor, candidate and grade: 2 competitor, 1 related, 0 other business.
Anchors and candidates are ids of companies in the index. The files of pairs that training reads (company_a, company_b,
label) and that `similarity pairs` writes are read too: a positive label is grade 2, a negative one is grade 0, and
unlabelled rows are left out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.ingest.files import read_rows
from similarity.ingest.rows import Row

RelevanceLabels: TypeAlias = Mapping[str, Mapping[str, int]]
"""anchor -> candidate -> grade"""

GAINS = {0: 0.0, 1: 1.0, 2: 3.0}
COMPETITOR = 2
NDCG_DEPTH = 10
ID_COLUMNS = (("company_a", "company_b"), ("anchor", "candidate"), ("id_a", "id_b"), ("left_id", "right_id"))
VERDICT_COLUMNS = ("anchor_id", "hit_id")
GRADE_COLUMNS = ("grade", "gain")
LABEL_COLUMNS = ("label", "gold_label", "judgement", "class")
POSITIVE_WORDS = frozenset({"positive", "competitor", "1", "true"})
NEGATIVE_WORDS = frozenset({"negative", "not_competitor", "other", "0", "false"})
UNLABELLED_WORDS = frozenset({"", "-", "unlabelled", "unlabeled", "unsure", "none", "null", "nan"})
MAX_MESSAGE = 1_000
EXPECTED = "a file of labels has the columns anchor, candidate, grade (or company_a, company_b, label)"


def read_relevance_labels(path: Path) -> dict[str, dict[str, int]]:
    """Read anchor -> candidate -> grade from a file of labels or pairs, plain or gzipped.

    Raises:
        InvalidInput: the file cannot be read, lacks a column, has no labels or has an invalid row, which is named.
    """
    labels: dict[str, dict[str, int]] = {}
    for row in read_rows(path):
        anchor, candidate, grade = _label(row, path)
        if grade is None:
            continue
        known = labels.setdefault(anchor, {}).setdefault(candidate, grade)
        if known != grade:
            raise InvalidInput(
                f"{path}, row {row.number}: {candidate} has grade {grade} for {anchor}, but an earlier row has grade "
                f"{known}; keep one of the two"
            )
    if not labels:
        raise InvalidInput(f"{path} has no labels; {EXPECTED}")
    return labels


def ndcg(scores: NDArray[np.floating], grades: NDArray[np.integer]) -> float:
    """Return nDCG at NDCG_DEPTH of one anchor's candidates by their grades, gains 3/1/0: see `ndcg_of_gains`."""
    return ndcg_of_gains(scores, np.array([GAINS[int(grade)] for grade in grades]))


def ndcg_of_gains(scores: NDArray[np.floating], gains: NDArray[np.floating]) -> float:
    """Return nDCG at NDCG_DEPTH of one anchor's candidates; 0 if no candidate has a gain.

    `scores` and `gains` are `[candidates]`. Candidates of equal score share their gains, as if ties were broken at
    random, so that the order of a file has no effect (McSherry and Najork, ECIR 2008).
    """
    discounts = 1 / np.log2(np.arange(2, min(NDCG_DEPTH, len(gains)) + 2))
    ideal = float(np.sort(gains)[::-1][: len(discounts)] @ discounts)
    if not ideal:
        return 0.0
    _, place, ties = np.unique(-scores, return_inverse=True, return_counts=True)
    shared = np.bincount(place, weights=gains) / ties
    return float(np.repeat(shared, ties)[: len(discounts)] @ discounts) / ideal


def _label(row: Row, path: Path) -> tuple[str, str, int | None]:
    """Return the anchor, the candidate and the grade of a row; the grade is None if the row is unlabelled."""
    place = f"{path}, row {row.number}"
    if row.unreadable:
        raise InvalidInput(f"{place}: {row.unreadable}")
    names = {str(name).strip().casefold(): name for name in row.record}
    sides = next((each for each in (*ID_COLUMNS, VERDICT_COLUMNS) if names.keys() >= set(each)), None)
    column = next((each for each in (*GRADE_COLUMNS, *LABEL_COLUMNS) if each in names), None)
    if sides is None or column is None:
        missing = "no column of grades or labels" if sides else "no two columns with the ids of a pair"
        raise InvalidInput(f"{path} has {missing}, only {', '.join(map(str, row.record))}; {EXPECTED}"[:MAX_MESSAGE])
    values = [row.record[names[name]] for name in (*sides, column)]
    anchor, candidate, cell = ("" if value is None else str(value).strip() for value in values)
    if not anchor or not candidate:
        raise InvalidInput(f"{place}: a label needs both an anchor and a candidate")
    grade = _grade(cell, is_grade=column in GRADE_COLUMNS, place=place)
    if anchor == candidate and grade is not None:
        raise InvalidInput(f"{place}: {anchor} is labelled with itself; remove this row")
    return anchor, candidate, grade


def _grade(cell: str, *, is_grade: bool, place: str) -> int | None:
    if cell.casefold() in UNLABELLED_WORDS:
        return None
    if is_grade:
        grade = cell.removesuffix(".0")  # of a data frame with missing grades
        if grade not in {str(known) for known in GAINS}:
            raise InvalidInput(f"{place}: grade {cell!r:.60} is not 0, 1 or 2")
        return int(grade)
    if cell.casefold() in POSITIVE_WORDS:
        return COMPETITOR
    if cell.casefold() in NEGATIVE_WORDS:
        return 0
    raise InvalidInput(f"{place}: label {cell!r:.60} is none of positive, negative, unlabelled (or 1, 0, empty)")
