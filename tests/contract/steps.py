"""Steps and readings that the contract tests share."""

from collections.abc import Iterable
from typing import Any

from similarity.index.protocol import CompanyIndex, SimilarCompanies, WriteOutcome, WriteResult
from tests.factories import make_generation


def add_candidate(index: CompanyIndex, name: str, **fields: Any) -> str:
    """Makes a candidate; `fields` are those of its generation."""
    index.create_generation(make_generation(name, **fields))
    index.register_candidate(name)
    return name


def add_live(index: CompanyIndex, name: str, **fields: Any) -> str:
    """Makes a generation and promotes it."""
    add_candidate(index, name, **fields)
    index.promote(name)
    return name


def outcomes(results: Iterable[WriteResult]) -> list[WriteOutcome]:
    return [result.outcome for result in results]


def found(similar: SimilarCompanies) -> list[str]:
    return [hit.company.id for hit in similar.hits]
