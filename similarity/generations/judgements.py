"""Judged pairs of companies, and how well an order of candidates agrees with them.

A file of judgements is a table (TSV or CSV, plain or gzipped) with the columns anchor, candidate and
grade: 2 competitor, 1 related, 0 other business. Its ids are those of the companies in the index.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.ingest.files import Row, read_rows

Judgements: TypeAlias = Mapping[str, Mapping[str, int]]
"""anchor -> candidate -> grade"""

GAINS = {0: 0.0, 1: 1.0, 2: 3.0}
COMPETITOR = 2
DEPTH = 10
COLUMNS = ("anchor", "candidate", "grade")


def read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """anchor -> candidate -> grade, from a gzipped or plain TSV (or CSV) file.

    Raises:
        InvalidInput: no such file, a column is missing, or a row is unusable; the message names the row.
    """
    judgements: dict[str, dict[str, int]] = {}
    for row in read_rows(path):
        anchor, candidate, grade = _judgement(row, path)
        known = judgements.setdefault(anchor, {}).setdefault(candidate, grade)
        if known != grade:
            raise InvalidInput(
                f"{path}, row {row.number}: {candidate} was graded {known} for {anchor} before and is graded {grade} "
                "here; keep one of the two"
            )
    if not judgements:
        raise InvalidInput(f"{path} has no judgements; give rows with the columns {', '.join(COLUMNS)}")
    return judgements


def ndcg(scores: NDArray[np.floating], grades: NDArray[np.integer]) -> float:
    """nDCG at DEPTH of one anchor's candidates by their grades, gains 3/1/0: see `ndcg_of_gains`."""
    return ndcg_of_gains(scores, np.array([GAINS[int(grade)] for grade in grades]))


def ndcg_of_gains(scores: NDArray[np.floating], gains: NDArray[np.floating]) -> float:
    """nDCG at DEPTH of one anchor's candidates; 0 where no candidate has a gain.

    `scores` and `gains` are `[candidates]`. Candidates of equal score share their gains, as if ties
    were broken at random: the order of a file must not decide, nor may equal vectors look like a good
    order (McSherry and Najork, ECIR 2008).
    """
    discounts = 1 / np.log2(np.arange(2, min(DEPTH, len(gains)) + 2))
    ideal = float(np.sort(gains)[::-1][: len(discounts)] @ discounts)
    if not ideal:
        return 0.0
    _, place, ties = np.unique(-scores, return_inverse=True, return_counts=True)
    shared = np.bincount(place, weights=gains) / ties
    return float(np.repeat(shared, ties)[: len(discounts)] @ discounts) / ideal


def _judgement(row: Row, path: Path) -> tuple[str, str, int]:
    if row.unreadable:
        raise InvalidInput(f"{path}, row {row.number}: {row.unreadable}")
    missing = [name for name in COLUMNS if name not in row.record]
    if missing:
        listed = ", ".join(COLUMNS)
        raise InvalidInput(f"{path} has no column {missing[0]!r}; a file of judgements has the columns {listed}")
    anchor, candidate, grade = (str(row.record[name]).strip() for name in COLUMNS)
    if grade not in {str(known) for known in GAINS}:
        raise InvalidInput(f"{path}, row {row.number}: grade {grade!r} is not 0, 1 or 2")
    if not anchor or not candidate:
        raise InvalidInput(f"{path}, row {row.number}: a judgement needs both an anchor and a candidate")
    if anchor == candidate:
        raise InvalidInput(f"{path}, row {row.number}: {anchor} is judged against itself; leave this row out")
    return anchor, candidate, int(grade)
