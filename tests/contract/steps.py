"""Steps and readings that the contract tests share."""

from collections.abc import Iterable

from similarity.index.protocol import CompanyIndex, SimilarCompanies, WriteOutcome, WriteResult
from tests.factories import ENCODER_ID, make_generation


def add_candidate(index: CompanyIndex, name: str, *, encoder_id: str = ENCODER_ID) -> str:
    index.create_generation(make_generation(name, encoder_id=encoder_id))
    index.register_candidate(name)
    return name


def add_live(index: CompanyIndex, name: str) -> str:
    add_candidate(index, name)
    index.promote(name)
    return name


def outcomes(results: Iterable[WriteResult]) -> list[WriteOutcome]:
    return [result.outcome for result in results]


def found(similar: SimilarCompanies) -> list[str]:
    return [hit.company.id for hit in similar.hits]
