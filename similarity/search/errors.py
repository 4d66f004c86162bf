"""Why a question cannot be answered."""

from collections.abc import Sequence

from similarity.company import Company
from similarity.errors import InvalidInput, SimilarityError


class UnknownCompany(InvalidInput):
    """No company goes by `reference`. `suggestions` are companies with similar names, best first."""

    def __init__(self, reference: str, suggestions: Sequence[Company] = ()) -> None:
        near = f"; did you mean {suggestions[0].name} ({suggestions[0].id})?" if suggestions else ""
        super().__init__(f"no company has the id, domain, name or alias {reference!r}{near}")
        self.reference = reference
        self.suggestions = tuple(suggestions)


class AmbiguousCompany(InvalidInput):
    """Several companies go by `reference`; `candidates` are the first of them, by id."""

    def __init__(self, reference: str, candidates: Sequence[Company], *, count: int) -> None:
        ids = ", ".join(candidate.id for candidate in candidates[:10])
        super().__init__(f"{count} companies go by {reference!r}; ask again with one of the ids: {ids}")
        self.reference = reference
        self.candidates = tuple(candidates)
        self.count = count


class EncoderNotLoaded(SimilarityError):
    """Free text cannot be compared, because the encoder of the generation is not loaded."""


class NotCalibrated(InvalidInput):
    """The generation has no calibration, so there are no probabilities to filter by."""


class RankingExpired(SimilarityError):
    """The generation that an earlier page came from was retired; ask again from the first page."""
