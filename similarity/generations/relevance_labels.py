"""Relevance labels of pairs of companies, and nDCG of a ranking by these labels.

A file of labels is a table (TSV or CSV, plain or gzipped) with the columns anchor, candidate and grade:
2 competitor, 1 related, 0 other business. Anchors and candidates are ids of companies in the index. The file that
`similarity pairs` writes is read too: its label positive is grade 2, and negative is grade 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
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
COLUMNS = ("anchor", "candidate", "grade")
VERDICT_COLUMNS = {"anchor_id": "anchor", "hit_id": "candidate", "label": "grade"}
VERDICT_GRADES = {"positive": COMPETITOR, "negative": 0}


def read_relevance_labels(path: Path) -> dict[str, dict[str, int]]:
    """Read anchor -> candidate -> grade from a plain or gzipped TSV or CSV file, or from a file of `similarity pairs`.

    Raises:
        InvalidInput: the file cannot be read, lacks a column, has no labels or has an invalid row, which is named.
    """
    labels: dict[str, dict[str, int]] = {}
    for row in _judged_rows(path):
        anchor, candidate, grade = _label(row, path)
        known = labels.setdefault(anchor, {}).setdefault(candidate, grade)
        if known != grade:
            raise InvalidInput(
                f"{path}, row {row.number}: {candidate} has grade {grade} for {anchor}, but an earlier row has grade "
                f"{known}; keep one of the two"
            )
    if not labels:
        raise InvalidInput(f"{path} has no labels; give rows with the columns {', '.join(COLUMNS)}")
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


def _judged_rows(path: Path) -> Iterator[Row]:
    """Yield the rows with the columns and grades of relevance labels, without the unlabelled rows of a pairs file."""
    for row in read_rows(path):
        if "anchor_id" not in row.record:
            yield row
        elif label := row.record.get("label"):
            record = {new: row.record[old] for old, new in VERDICT_COLUMNS.items() if old in row.record}
            yield replace(row, record=record | {"grade": VERDICT_GRADES.get(str(label), label)})


def _label(row: Row, path: Path) -> tuple[str, str, int]:
    if row.unreadable:
        raise InvalidInput(f"{path}, row {row.number}: {row.unreadable}")
    missing = [name for name in COLUMNS if name not in row.record]
    if missing:
        listed = ", ".join(COLUMNS)
        raise InvalidInput(f"{path} has no column {missing[0]!r}; a file of labels has the columns {listed}")
    anchor, candidate, grade = (str(row.record[name]).strip() for name in COLUMNS)
    if grade not in {str(known) for known in GAINS}:
        raise InvalidInput(f"{path}, row {row.number}: grade {grade!r} is not 0, 1 or 2")
    if not anchor or not candidate:
        raise InvalidInput(f"{path}, row {row.number}: a label needs both an anchor and a candidate")
    if anchor == candidate:
        raise InvalidInput(f"{path}, row {row.number}: {anchor} is labelled with itself; remove this row")
    return anchor, candidate, int(grade)
