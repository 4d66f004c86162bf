"""One page of a ranking: candidates of the index, duplicates folded, unlikely ones dropped.

Every page is cut from the same ranking, read from its top: a page depends only on the question and on the
last hit of the page before. So more candidates are fetched than hits are shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from similarity.company import Company, SimilarCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, Generation, SimilarCompanies
from similarity.model.calibration import probability_of
from similarity.search.duplicates import Folded, Kept, fold

DEPTH = 1_000
"""How many hits a question has at most, over all pages."""
HYBRID_DEPTH = 250
"""The same for hybrid ones: their order depends on how far down the two rankings are read, so that is always as far."""
SPARE = 5
HYBRID_SPARE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last hit of a page: its score, id and rank, in the ranking of `generation` for the question `digest`."""

    generation: str
    digest: str
    score: float
    id: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A page of the ranking of `generation` around the query `vector`.

    `named` are companies whose duplicates among the hits are reported: anchors, then negatives. `left_out` are
    companies whose duplicates are dropped. `positives` are the anchors' vectors, empty where `vector` is that of
    the only anchor. With `words` the ranking is hybrid. The page follows the position `after`.
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
    """A hit with its rank, its probability, and the ids of its duplicates."""

    hit: SimilarCompany
    rank: int
    probability: float | None
    duplicates: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The hits of a page, whether more follow, and the ids of the duplicates of each `named` company."""

    hits: list[Ranked]
    more: bool
    of_named: list[list[str]]
    approximate: bool


@dataclass(slots=True)
class Ranker:
    """Ranks one page from `index`."""

    index: CompanyIndex
    request: PageRequest
    _nearest: dict[str, float] = field(default_factory=dict)

    def page(self) -> Page:
        """The page. Raises what the index raises."""
        request = self.request
        size = min(request.k, request.depth - request.start)
        most = request.depth + HYBRID_SPARE
        fetch = most if request.words else min(request.start + size + spare_candidates(size), most)
        while True:
            found = self._similar(fetch)
            folded = fold(found.hits, [*request.named, *request.left_out])
            hits, all_seen = self._likely(folded.kept)
            rest = _after(hits, request.after, in_order=not request.words)
            if len(rest) > size or all_seen or len(found.hits) < fetch or fetch >= most:
                return self._page(rest, size, folded, approximate=found.approximate)
            fetch = min(2 * fetch, most)

    def _similar(self, k: int) -> SimilarCompanies:
        request = self.request
        words = {"words": request.words} if request.words else {}
        return self.index.similar(
            request.generation.name, request.vector, k=k, filters=request.filters, exclude=request.exclude, **words
        )

    def _page(self, rest: Sequence[Kept], size: int, folded: Folded, *, approximate: bool) -> Page:
        shown, start = rest[:size], self.request.start
        probabilities = self._probabilities(shown)
        return Page(
            hits=[
                Ranked(each.hit, start + place, probability, each.duplicates)
                for place, (each, probability) in enumerate(zip(shown, probabilities, strict=True), 1)
            ],
            more=len(rest) > size and start + size < self.request.depth,
            of_named=folded.of_given[: len(self.request.named)],
            approximate=approximate,
        )

    def _likely(self, hits: Sequence[Kept]) -> tuple[Sequence[Kept], bool]:
        """The hits that are probable enough, and whether no further one can be."""
        least = self.request.min_probability
        if least is None:
            return hits, False
        probabilities = self._probabilities(hits)
        likely = [each for each, probability in zip(hits, probabilities, strict=True) if (probability or 0.0) >= least]
        calibration = self.request.generation.calibration
        falling = not self.request.positives and not self.request.words and calibration and calibration.slope >= 0
        return likely, bool(falling and len(likely) < len(hits))

    def _probabilities(self, hits: Sequence[Kept]) -> list[float | None]:
        """By the highest cosine to one anchor."""
        calibration = self.request.generation.calibration
        if calibration is None:
            return [None] * len(hits)
        if not self.request.positives:
            return [probability_of(each.hit.score, calibration) for each in hits]
        self._compare(each.hit.company.id for each in hits)
        # A company that was deleted a moment ago has no vector any more.
        cosines = [self._nearest.get(each.hit.company.id) for each in hits]
        return [None if cosine is None else probability_of(cosine, calibration) for cosine in cosines]

    def _compare(self, ids: Iterable[str]) -> None:
        new = [each for each in ids if each not in self._nearest]
        documents = self.index.get(self.request.generation.name, new) if new else {}
        if documents:
            anchors = np.array(self.request.positives)
            vectors = np.array([document.vector for document in documents.values()])
            cosines = np.clip((vectors @ anchors.T).max(axis=1), -1.0, 1.0)
            self._nearest.update(zip(documents, cosines.tolist(), strict=True))


def spare_candidates(size: int) -> int:
    """How many candidates more than `size` are fetched at first: for duplicates, and to see whether a page follows."""
    return 1 + max(SPARE, size // 10)


def _after(hits: Sequence[Kept], position: Position | None, *, in_order: bool) -> Sequence[Kept]:
    """The hits behind `position`. In the order of scores, wherever writes meanwhile have moved that to."""
    if position is None:
        return hits
    if in_order:
        last = (-position.score, position.id)
        return [each for each in hits if (-each.hit.score, each.hit.company.id) > last]
    place = next((place for place, each in enumerate(hits, 1) if each.hit.company.id == position.id), position.rank)
    return hits[place:]
