"""Asking the index for a page of hits: more than are wanted, because some are folded, unlikely or shown already.

Every page is cut from the same ranking, read from its top: what a page shows depends on nothing but
the question and where the page before ended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from services.search.asking.answers import probability_of
from services.search.asking.cursors import Position
from services.search.asking.duplicates import Folded, Kept, fold
from similarity.company import Company, SimilarCompany, Vector
from similarity.index.protocol import CompanyIndex, FieldFilter, Generation, SimilarCompanies

DEPTH = 1_000
"""How many hits a question has at most, over all pages."""
HYBRID_DEPTH = 250
"""The same for hybrid ones: their order depends on how far down the two rankings are read, so that is always as far."""
SPARE = 5
HYBRID_SPARE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked of `generation`.

    `named` are the companies that are told of which hits are the same: anchors, then negatives. `left_out`
    are those that shall not be hits under another id either. `positives` are the anchors' vectors, where
    `vector` is not the only one of them itself. With `words`, hybrid. `after`: where the page before
    ended.
    """

    generation: Generation
    vector: Vector
    k: int
    named: Sequence[Company] = ()
    left_out: Sequence[Company] = ()
    positives: Sequence[Vector] = ()
    filters: Sequence[FieldFilter] = ()
    exclude: frozenset[str] = frozenset()
    words: str = ""
    min_probability: float | None = None
    after: Position | None = None

    @property
    def depth(self) -> int:
        """The last rank there can be."""
        return HYBRID_DEPTH if self.words else DEPTH

    @property
    def start(self) -> int:
        """The rank of the last hit of the page before."""
        return self.after.rank if self.after else 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hit in its place, with the ids of those that were folded into it."""

    hit: SimilarCompany
    rank: int
    probability: float | None
    duplicates: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The hits of a page, whether more follow, and for each that was `named` the ids of hits that are the same."""

    hits: list[Ranked]
    more: bool
    of_named: list[list[str]]
    approximate: bool


@dataclass(slots=True)
class Ranker:
    """Answers one `Wanted` from `index`."""

    index: CompanyIndex
    wanted: Wanted
    _nearest: dict[str, float] = field(default_factory=dict)

    def page(self) -> Page:
        """The page. Raises what the index raises."""
        wanted = self.wanted
        size = min(wanted.k, wanted.depth - wanted.start)
        most = wanted.depth + HYBRID_SPARE
        fetch = most if wanted.words else min(wanted.start + size + 1 + max(SPARE, size // 10), most)
        while True:
            found = self._similar(fetch)
            folded = fold(found.hits, [*wanted.named, *wanted.left_out])
            hits, all_seen = self._likely(folded.kept)
            rest = _after(hits, wanted.after, in_order=not wanted.words)
            if len(rest) > size or all_seen or len(found.hits) < fetch or fetch >= most:
                return self._page(rest, size, folded, approximate=found.approximate)
            fetch = min(2 * fetch, most)

    def _similar(self, k: int) -> SimilarCompanies:
        wanted = self.wanted
        words = {"words": wanted.words} if wanted.words else {}
        return self.index.similar(
            wanted.generation.name, wanted.vector, k=k, filters=wanted.filters, exclude=wanted.exclude, **words
        )

    def _page(self, rest: Sequence[Kept], size: int, folded: Folded, *, approximate: bool) -> Page:
        shown, start = rest[:size], self.wanted.start
        probabilities = self._probabilities(shown)
        return Page(
            hits=[
                Ranked(each.hit, start + place, probability, each.duplicates)
                for place, (each, probability) in enumerate(zip(shown, probabilities, strict=True), 1)
            ],
            more=len(rest) > size and start + size < self.wanted.depth,
            of_named=folded.of_given[: len(self.wanted.named)],
            approximate=approximate,
        )

    def _likely(self, hits: Sequence[Kept]) -> tuple[Sequence[Kept], bool]:
        """The hits that are probable enough, and whether no further one can be."""
        least = self.wanted.min_probability
        if least is None:
            return hits, False
        probabilities = self._probabilities(hits)
        likely = [each for each, probability in zip(hits, probabilities, strict=True) if (probability or 0.0) >= least]
        calibration = self.wanted.generation.calibration
        falling = not self.wanted.positives and not self.wanted.words and calibration and calibration.slope >= 0
        return likely, bool(falling and len(likely) < len(hits))

    def _probabilities(self, hits: Sequence[Kept]) -> list[float | None]:
        """By the highest cosine to one anchor."""
        calibration = self.wanted.generation.calibration
        if calibration is None:
            return [None] * len(hits)
        if not self.wanted.positives:
            return [probability_of(each.hit.score, calibration) for each in hits]
        self._compare(each.hit.company.id for each in hits)
        # A company that was deleted a moment ago has no vector any more.
        cosines = [self._nearest.get(each.hit.company.id) for each in hits]
        return [None if cosine is None else probability_of(cosine, calibration) for cosine in cosines]

    def _compare(self, ids: Iterable[str]) -> None:
        new = [each for each in ids if each not in self._nearest]
        documents = self.index.get(self.wanted.generation.name, new) if new else {}
        if documents:
            anchors = np.array(self.wanted.positives)
            vectors = np.array([document.vector for document in documents.values()])
            cosines = np.clip((vectors @ anchors.T).max(axis=1), -1.0, 1.0)
            self._nearest.update(zip(documents, cosines.tolist(), strict=True))


def _after(hits: Sequence[Kept], position: Position | None, *, in_order: bool) -> Sequence[Kept]:
    """The hits behind `position`. In the order of scores, wherever writes meanwhile have moved that to."""
    if position is None:
        return hits
    if in_order:
        last = (-position.score, position.id)
        return [each for each in hits if (-each.hit.score, each.hit.company.id) > last]
    place = next((place for place, each in enumerate(hits, 1) if each.hit.company.id == position.id), position.rank)
    return hits[place:]
