"""The errors of search."""

import re
from collections.abc import Collection, Sequence

from similarity.company import Company
from similarity.errors import InvalidInput, SimilarityError
from similarity.index.validation import MAX_RESOLVED
from similarity.preparation.words import MIN_CONTENT_WORDS

CANDIDATES_NAMED = 10
LATIN = re.compile("[A-Za-z]")


def with_name(company: Company) -> str:
    """Return the id of a company with its name and country, as messages show it."""
    return f"{company.id} ({', '.join(filter(None, (company.name, company.country)))})"


class UnknownCompany(InvalidInput):
    """No company matches `reference`. `suggestions`: companies with similar names, best first.

    `is_unlike_all`: whether similar names were searched and none was found; the suggestions are then companies whose
    names begin with the same letters. `is_described`: whether only the description or website of the first suggestion,
    and not its name, has the words of `reference`.
    """

    def __init__(
        self,
        reference: str,
        suggestions: Sequence[Company] = (),
        *,
        is_unlike_all: bool = False,
        is_described: bool = False,
    ) -> None:
        advice = ""
        if is_unlike_all:
            is_foreign = any(map(str.isalpha, reference)) and not LATIN.search(reference)
            names = "try its name in Latin letters, " if is_foreign else ""
            alike = ", ".join(f"{each.name} ({each.id})" for each in suggestions)
            beginning = f"; names that begin alike: {alike}" if alike else ""
            advice = (
                f", or a similar one{beginning}; {names}describe what it does in a text instead, or add the company"
            )
        elif suggestions and is_described:
            advice = f"; the description or website of {suggestions[0].name} ({suggestions[0].id}) mentions it"
        elif suggestions:
            advice = f"; did you mean {suggestions[0].name} ({suggestions[0].id})?"
        if "," in reference or ";" in reference:
            advice += "; if these are several companies, give them one by one, or paste them as a list on the page"
        super().__init__(f"no company has the id, domain, name or alias {reference!r}{advice}")
        self.reference = reference
        self.suggestions = tuple(suggestions)
        self.is_unlike_all = is_unlike_all


class AmbiguousCompany(InvalidInput):
    """Several companies match `reference`: `count` in all, with these `ids`; `candidates` are the first of them."""

    def __init__(self, reference: str, candidates: Sequence[Company], *, count: int, ids: Collection[str] = ()) -> None:
        named = ", ".join(map(with_name, candidates[:CANDIDATES_NAMED]))
        others = count - CANDIDATES_NAMED
        more = f"; or type more of the name ({others} more)" if others > 0 else ""
        counted = f"at least {count}" if count >= MAX_RESOLVED else count
        super().__init__(f"{counted} companies match {reference!r}; use one of the ids: {named}{more}")
        self.reference = reference
        self.candidates = tuple(candidates)
        self.count = count
        self.ids = frozenset(ids or (each.id for each in candidates))


def deleted_or_named(reference: str, company: Company) -> AmbiguousCompany:
    """Return the error for the id of a deleted company that is also a domain, name or alias of `company`."""
    error = AmbiguousCompany(reference, [company], count=2)
    error.args = (f"{reference!r} was the id of a deleted company, and {with_name(company)} goes by it; give that id",)
    return error


class TooFewWords(InvalidInput):
    """A text, or the description of an anchor, a negative or the company to locate, has too few words to rank by."""

    def __init__(self, described: str) -> None:
        super().__init__(
            f"{described} has too few words to rank by; write a description of at least {MIN_CONTENT_WORDS} words that "
            "say what the company does, or ask with such words as a text"
        )


class EncoderNotLoaded(SimilarityError):
    """Free text or a segment cannot be compared, because the encoder of the generation is not loaded."""


class NotCalibrated(InvalidInput):
    """The generation has no probabilities to filter by: it has no ranker or, for rank *cosine*, no calibration."""


class RankingExpired(SimilarityError):
    """The generation of the previous page was retired; start again from the first page."""
