"""Gains for unlabelled pairs from what is known of the companies anyway, such as their industries."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from similarity.errors import InvalidInput
from similarity.files import read_rows
from similarity.judgements import GAINS
from training.data.pairs import Pairs

RELATED = 1


def with_shared_values(pairs: Pairs, value_of: Mapping[str, str], *, gain: float = GAINS[RELATED]) -> Pairs:
    """The pairs, those without a gain now with `gain` if both companies have the same value, else 0.

    Pairs of which one company has no value stay without a gain.
    """
    values = np.array([value_of.get(company, "") for company in pairs.ids])
    left, right = values[pairs.left], values[pairs.right]
    rows = np.flatnonzero(~np.isfinite(pairs.gains) & (left != "") & (right != ""))
    return pairs.with_gains(rows, np.where(left[rows] == right[rows], gain, 0).astype(np.float32))


def read_values(companies: Path, field: str) -> dict[str, str]:
    """The value of a field of each company that has one, by id, from a file of companies.

    Raises:
        InvalidInput: no company has the field.
    """
    values = {str(row.record["id"]): str(row.record[field]) for row in read_rows(companies) if row.record.get(field)}
    if not values:
        raise InvalidInput(f"no company in {companies} has a field {field!r}")
    return values
