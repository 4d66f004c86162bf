"""A corpus whose cosines are set by hand: every company's cosine to the shoe maker `acme` is its own."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from similarity.company import EmbeddedCompany, Vector
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from similarity.model.calibration import Calibration
from tests.contract.steps import add_candidate
from tests.factories import DIMENSION, make_embedded

UPDATED_AT = datetime(2025, 1, 2, tzinfo=UTC)
VERSION = 2 * int(UPDATED_AT.timestamp()) * 1_000_000
CALIBRATION = Calibration(slope=10.0, intercept=-5.0)


def at_cosine(cosine: float, axis: int) -> Vector:
    """A unit vector of this cosine to the first axis, turned towards another one."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[0], vector[axis] = cosine, math.sqrt(1 - cosine * cosine)
    return vector


def company(company_id: str, cosine: float, axis: int, /, **fields: Any) -> EmbeddedCompany:
    return make_embedded(company_id, version=VERSION, vector=at_cosine(cosine, axis), **fields)


def companies() -> list[EmbeddedCompany]:
    german = {"country": "Germany", "industry": "Footwear"}
    return [
        company("acme", 1.0, 1, name="Acme Shoes, Inc.", aliases=("Acme",), domain="acme.com", country="France"),
        company("boots", 0.9, 1, name="Boots GmbH", domain="boots.de", attributes={"employees": 12}, **german),
        company("clogs", 0.8, 2, name="Clogs", aliases=("Delta",), country="France", industry="Footwear"),
        company("delta-air", 0.3, 3, name="Delta", country="United States", industry="Airlines"),
        company("zapatos", 0.5, 4, name="Zapatos SA", country="Spain", industry="Footwear", language="es"),
        company("as-nord", 0.1, 5, name="A/S Nord", description="Ships cargo over the North Sea.", tags=("cargo",)),
    ]


def filled_index(path: Path, *, calibration: Calibration | None = None) -> SqliteIndex:
    """An index whose live generation `first` holds `companies()`."""
    index = SqliteIndex(path)
    add_generation(index, "first", companies(), calibration=calibration)
    index.promote("first")
    return index


def add_generation(
    index: CompanyIndex, name: str, documents: list[EmbeddedCompany], *, calibration: Calibration | None = None
) -> None:
    """A candidate generation that holds `documents`."""
    add_candidate(index, name, calibration=calibration)
    index.upsert(name, documents)
