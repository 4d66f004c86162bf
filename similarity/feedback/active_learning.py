"""Active learning: the pairs whose labels would help a model most (no I/O).

Two signals, each 0 to 1, that need no label:

- *uncertainty*, 1 - |2p - 1|: high if the probability of the second stage is near one half;
- *disagreement*: the difference of a hit's ranks by cosine (`Rank.COSINE`) and by the second stage (`Rank.BUSINESS`),
  as a share of the depth of the rankings. It is high for hits that other features than the cosine move far, such as
  shared words.

The value of a pair is the mean of both. (Which weighting saves most labels is not measured.) A pair that anybody has
judged is not suggested again.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from similarity.feedback.protocol import Pair

# A signal of at least this value is stated as a reason: a probability of 0.25 to 0.75, a tenth of the depth.
NOTABLE_UNCERTAINTY = 0.5
NOTABLE_DISAGREEMENT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A hit of an anchor, with its ranks by cosine and by the second stage; None if a ranking does not contain it."""

    anchor: str
    hit: str
    score: float
    probability: float | None
    cosine_rank: int | None
    business_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A pair to label next: its value (`worth`, 0 to 1), and at least one reason (`why`)."""

    candidate: Candidate
    worth: float
    why: tuple[str, ...]


def candidates_of(
    anchor: str,
    *,
    by_cosine: Sequence[tuple[str, float]],
    by_business: Sequence[tuple[str, float]],
    probabilities: Mapping[str, float | None],
) -> list[Candidate]:
    """Return the hits of one anchor in either ranking; both are `(id, score)`, best first. `probabilities`: by id."""
    cosine_ranks = {hit: rank for rank, (hit, _) in enumerate(by_cosine, 1)}
    business_ranks = {hit: rank for rank, (hit, _) in enumerate(by_business, 1)}
    return [
        Candidate(
            anchor=anchor,
            hit=hit,
            score=score,
            probability=probabilities.get(hit),
            cosine_rank=cosine_ranks.get(hit),
            business_rank=business_ranks.get(hit),
        )
        for hit, score in dict((*by_business, *by_cosine)).items()
    ]


def most_worth_labelling(
    candidates: Iterable[Candidate], *, judged: Container[Pair], depth: int, k: int
) -> list[Suggestion]:
    """Return the k pairs whose labels are worth most, best first; ties by ids. Each unordered pair occurs once.

    `judged`: pairs (of sorted ids) that anybody has judged. `depth`: number of hits of each ranking.
    """
    best: dict[Pair, Suggestion] = {}
    for candidate in candidates:
        pair = _pair(candidate)
        if pair in judged:
            continue
        suggestion = _suggestion(candidate, depth)
        if pair not in best or _order(suggestion) < _order(best[pair]):
            best[pair] = suggestion
    return sorted(best.values(), key=_order)[:k]


def uncertainty(probability: float) -> float:
    """Return the uncertainty: 1 for probability one half, 0 for 0 and 1."""
    return 1 - abs(2 * probability - 1)


def disagreement(cosine_rank: int | None, business_rank: int | None, depth: int) -> float:
    """Return the difference of two ranks as a share of `depth`, 0 to 1; a missing hit has the rank `depth` + 1."""
    last = depth + 1
    return min(1.0, abs((cosine_rank or last) - (business_rank or last)) / depth)


def _suggestion(candidate: Candidate, depth: int) -> Suggestion:
    unsure = 0.0 if candidate.probability is None else uncertainty(candidate.probability)
    apart = disagreement(candidate.cosine_rank, candidate.business_rank, depth)
    why = []
    if candidate.probability is not None and unsure >= NOTABLE_UNCERTAINTY:
        why.append(f"uncertain: a competitor with probability {candidate.probability:.2f}")
    if apart >= NOTABLE_DISAGREEMENT:
        by_cosine, by_business = _rank_text(candidate.cosine_rank, depth), _rank_text(candidate.business_rank, depth)
        why.append(f"the rankings disagree: rank {by_cosine} by cosine, {by_business} by business")
    return Suggestion(
        candidate=candidate, worth=(unsure + apart) / 2, why=tuple(why) or ("nobody has judged this pair yet",)
    )


def _rank_text(rank: int | None, depth: int) -> str:
    return f"below {depth}" if rank is None else str(rank)


def _pair(candidate: Candidate) -> Pair:
    first, second = sorted((candidate.anchor, candidate.hit))
    return first, second


def _order(suggestion: Suggestion) -> tuple[float, str, str]:
    return -suggestion.worth, suggestion.candidate.anchor, suggestion.candidate.hit
