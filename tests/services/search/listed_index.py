"""An index of a few hits in a list: exact, in memory, and it counts what it is asked."""

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from similarity.company import EmbeddedCompany, SimilarCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, SimilarCompanies


class ListedIndex:
    """Holds `documents`; only what a ranking asks for."""

    def __init__(self, documents: Sequence[EmbeddedCompany]) -> None:
        self.documents = {document.id: document for document in documents}
        self.asked: list[int] = []
        self.got: list[str] = []

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        self.got += ids
        return {each: self.documents[each] for each in ids if each in self.documents}

    def resolve_many(self, generation: str, references: Collection[str]) -> dict[str, list[str]]:
        """Knows domains only."""
        return {
            each: sorted(stored.id for stored in self.documents.values() if stored.company.domain == each.strip())
            for each in references
        }

    def similar(
        self,
        generation: str,
        vector: Vector,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> SimilarCompanies:
        self.asked.append(k)
        found = [
            SimilarCompany(
                company=document.company,
                score=float(np.clip(np.dot(document.vector.astype(np.float64), vector), -1, 1)),
                version=document.version,
                embedded_at=document.embedded_at,
                language=document.language,
            )
            for document in self.documents.values()
            if document.id not in exclude
        ]
        found.sort(key=lambda hit: (-hit.score, hit.company.id))
        return SimilarCompanies(hits=tuple(found[:k]), approximate=False)


def as_index(listed: ListedIndex) -> CompanyIndex:
    """For those who want all of an index; what is not here must not be asked."""
    return cast("CompanyIndex", listed)
