"""Which pairs are most worth a verdict: those a model would learn most from. Pure.

Two signs, each 0 to 1, that need no label:

- *uncertainty*, 1 - |2p - 1|: the calibrated probability is near one half;
- *disagreement*: how far a hit moves when shared words count beside the meaning (hybrid), as a share
  of how deep the rankings are read. A hit that is near by words alone, or by meaning alone, is where
  the encoder may be fooled by words, or the words by the encoder.

What a pair is worth is the mean of both: each shows what the other cannot. (Which weighting saves
most labels is not measured.) A pair that anybody has judged is not suggested again.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from similarity.feedback.protocol import Pair

# From here on a sign is said to be the reason: a probability of 0.25 to 0.75, a tenth of the depth.
NOTABLE_UNCERTAINTY = 0.5
NOTABLE_DISAGREEMENT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A hit of an anchor, with its rank by meaning and its rank when words count too; None: not that deep."""

    anchor: str
    hit: str
    score: float
    probability: float | None
    vector_rank: int | None
    hybrid_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A pair to judge next: what it is `worth` (0 to 1), and `why`, at least one reason in words."""

    candidate: Candidate
    worth: float
    why: tuple[str, ...]


def candidates_of(
    anchor: str,
    *,
    by_vector: Sequence[tuple[str, float]],
    hybrid: Sequence[tuple[str, float]],
    probabilities: dict[str, float | None],
) -> list[Candidate]:
    """The hits of one anchor in either ranking, `(id, score)` best first. `probabilities` by id."""
    vector_ranks = {hit: rank for rank, (hit, _) in enumerate(by_vector, 1)}
    hybrid_ranks = {hit: rank for rank, (hit, _) in enumerate(hybrid, 1)}
    return [
        Candidate(
            anchor=anchor,
            hit=hit,
            score=score,
            probability=probabilities.get(hit),
            vector_rank=vector_ranks.get(hit),
            hybrid_rank=hybrid_ranks.get(hit),
        )
        for hit, score in dict((*hybrid, *by_vector)).items()
    ]


def most_worth_labelling(
    candidates: Iterable[Candidate], *, judged: Container[Pair], depth: int, k: int
) -> list[Suggestion]:
    """The k pairs most worth a verdict, best first; ties by ids. Each unordered pair once.

    `judged` are the pairs, sorted, that somebody has judged; `depth` is how deep the rankings were read.
    """
    best: dict[Pair, Suggestion] = {}
    for candidate in candidates:
        pair = _pair(candidate)
        if candidate.anchor == candidate.hit or pair in judged:
            continue
        suggestion = _suggestion(candidate, depth)
        if pair not in best or _order(suggestion) < _order(best[pair]):
            best[pair] = suggestion
    return sorted(best.values(), key=_order)[:k]


def uncertainty(probability: float) -> float:
    """1 where it is as likely as not, 0 where it is certain."""
    return 1 - abs(2 * probability - 1)


def disagreement(vector_rank: int | None, hybrid_rank: int | None, depth: int) -> float:
    """How far apart two ranks are, 0 to 1; a hit that is missing stands right behind the last."""
    last = depth + 1
    return min(1.0, abs((vector_rank or last) - (hybrid_rank or last)) / depth)


def _suggestion(candidate: Candidate, depth: int) -> Suggestion:
    unsure = 0.0 if candidate.probability is None else uncertainty(candidate.probability)
    apart = disagreement(candidate.vector_rank, candidate.hybrid_rank, depth)
    why = []
    if candidate.probability is not None and unsure >= NOTABLE_UNCERTAINTY:
        why.append(f"uncertain: a competitor with probability {candidate.probability:.2f}")
    if apart >= NOTABLE_DISAGREEMENT:
        by_meaning, with_words = _said(candidate.vector_rank, depth), _said(candidate.hybrid_rank, depth)
        why.append(f"words and meaning disagree: rank {by_meaning} by meaning, {with_words} when shared words count")
    return Suggestion(
        candidate=candidate, worth=(unsure + apart) / 2, why=tuple(why) or ("nobody has judged this pair yet",)
    )


def _said(rank: int | None, depth: int) -> str:
    return f"below {depth}" if rank is None else str(rank)


def _pair(candidate: Candidate) -> Pair:
    first, second = sorted((candidate.anchor, candidate.hit))
    return first, second


def _order(suggestion: Suggestion) -> tuple[float, str, str]:
    return -suggestion.worth, suggestion.candidate.anchor, suggestion.candidate.hit
