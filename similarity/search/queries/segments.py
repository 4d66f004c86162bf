"""The segments that a query names: which phrases of a company count, and the text that is encoded for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from similarity.company import Company
from similarity.errors import InvalidInput
from similarity.preparation.masking import mask_names
from similarity.search.explanations.segments import Segment
from similarity.search.names.resolver import FoundCompany, Resolved
from similarity.search.queries.question import Anchor

Segments: TypeAlias = Callable[[Sequence[Company]], Sequence[Sequence[Segment]]]
"""Returns the segments of each company."""


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A segment of `company`. `words`: the text to encode, with the names of the company masked."""

    company: Company
    segment: Segment

    @property
    def words(self) -> str:
        return mask_names(self.segment.text, (self.company.name, *self.company.aliases))


def named_segments(
    anchors: Sequence[Anchor], known: Mapping[str, Resolved], segments: Segments
) -> dict[Anchor, NamedSegment]:
    """Return the segment that each anchor names; an anchor without a segment, or whose company is not found, has none.

    Raises:
        InvalidInput: the company has no segment of this number.
    """
    named = [
        (anchor, anchor.segment, found.document.company)
        for anchor in anchors
        if anchor.segment is not None and isinstance(found := known[anchor.reference], FoundCompany)
    ]
    # `segments` needs an encoder, so it is called only if an anchor names a segment.
    of_each = segments([company for *_, company in named]) if named else []
    return {
        anchor: NamedSegment(company, _numbered(number, company, of_company))
        for (anchor, number, company), of_company in zip(named, of_each, strict=True)
    }


def _numbered(number: int, company: Company, segments: Sequence[Segment]) -> Segment:
    for segment in segments:
        if segment.number == number:
            return segment
    known = f"has the segments 1 to {len(segments)}" if segments else "has no segments"
    raise InvalidInput(
        f"there is no segment {number} of {company.name} ({company.id}): its description {known}", about="segment"
    )
