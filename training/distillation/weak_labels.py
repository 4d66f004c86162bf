"""Weak labels: a field of the companies' records, such as the industry, that indicates similar companies."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.ingest.files import read_rows


def read_values(companies: Path, field: str) -> dict[str, str]:
    """Return the value of a field by company id, without companies that have none.

    Raises:
        InvalidInput: no company has the field.
    """
    values = {str(row.record["id"]): str(row.record[field]) for row in read_rows(companies) if row.record.get(field)}
    if not values:
        raise InvalidInput(f"no company in {companies} has a field {field!r}")
    return values


def shared_values(
    texts: Sequence[str], described: Sequence[str], companies: Path, field: str, weight: float
) -> NDArray[np.float32]:
    """Return float32 `[texts, values]`; the product of two rows is `weight` for equal values of the companies, else 0.

    `described` are the texts of the file's companies, in the order of the file. If several companies have the same
    text, the value of the first is used. A company without a value has the product 0 with all others.

    Raises:
        InvalidInput: no company has the field.
    """
    value_of = read_values(companies, field)
    ids = [str(row.record["id"]) for row in read_rows(companies)]
    values: dict[str, str] = {}
    for company, text in zip(ids, described, strict=True):
        values.setdefault(text, value_of.get(company, ""))
    names = sorted(set(values.values()) - {""})
    column = {name: number for number, name in enumerate(names)}
    rows = np.zeros((len(texts), len(names)), dtype=np.float32)
    for row, text in enumerate(texts):
        if values[text]:
            rows[row, column[values[text]]] = np.sqrt(weight)
    return rows
