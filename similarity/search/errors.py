"""The errors of search."""

from collections.abc import Sequence

from similarity.company import Company
from similarity.errors import InvalidInput, SimilarityError
from similarity.preparation.words import MIN_CONTENT_WORDS


class UnknownCompany(InvalidInput):
    """No company matches `reference`. `suggestions`: companies with similar names, best first.

    `are_similar`: whether the first of them is similar enough to be asked for in the message.
    """

    def __init__(self, reference: str, suggestions: Sequence[Company] = (), *, are_similar: bool = True) -> None:
        is_likely = suggestions and are_similar
        near = f"; did you mean {suggestions[0].name} ({suggestions[0].id})?" if is_likely else ""
        super().__init__(f"no company has the id, domain, name or alias {reference!r}{near}")
        self.reference = reference
        self.suggestions = tuple(suggestions)


class AmbiguousCompany(InvalidInput):
    """Several companies match `reference`; `candidates` are the first of them, by id."""

    def __init__(self, reference: str, candidates: Sequence[Company], *, count: int) -> None:
        ids = ", ".join(candidate.id for candidate in candidates[:10])
        super().__init__(f"{count} companies match {reference!r}; use one of the ids: {ids}")
        self.reference = reference
        self.candidates = tuple(candidates)
        self.count = count


class TooFewWords(InvalidInput):
    """An anchor or negative, or the company to locate, has too few words to rank by: it has no vector."""

    def __init__(self, described: str) -> None:
        super().__init__(
            f"{described} has too few words to rank by; write a description of at least {MIN_CONTENT_WORDS} words that "
            "say what the company does, or ask with such words as a text"
        )


class EncoderNotLoaded(SimilarityError):
    """Free text cannot be compared, because the encoder of the generation is not loaded."""


class NotCalibrated(InvalidInput):
    """The generation has no calibrator, so there are no probabilities to filter by."""


class RankingExpired(SimilarityError):
    """The generation of the previous page was retired; start again from the first page."""
