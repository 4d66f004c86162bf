"""Drift: how much the neighbours of companies differ between two generations.

The neighbour lists of random companies that both generations hold are compared. The gate decides by relevance
labels; this report is for people, before a promotion or to explain a surprising result.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from similarity.company import EmbeddedCompany, SimilarCompany
from similarity.errors import InvalidInput
from similarity.generations.gate import (
    BATCH_IDS,
    anchor_ndcg,
    generation_named,
    judged_companies,
    stored_documents,
    usable_judgements,
)
from similarity.generations.judgements import Judgements
from similarity.index.protocol import CompanyIndex

PERSISTENCE = 0.9
MOST_CHANGED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Five quantiles of one figure."""

    p05: float
    p25: float
    p50: float
    p75: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnchor:
    """A company whose neighbours changed, with the names of those that left its list and those that joined."""

    id: str
    name: str
    overlap: float
    rank_biased_overlap: float
    left: tuple[str, ...]
    joined: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SameTextCosine:
    """Cosines of the two vectors of one text, over `texts` anchors whose text is the same in both."""

    texts: int
    mean: float
    p05: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuality:
    """Mean nDCG@10 of each generation on the judged anchors that can be used in both."""

    anchors: int
    old_ndcg: float
    new_ndcg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """The result of a comparison; numbers without data are None.

    `overlap`: share of the k neighbours in both lists, mean and 10th percentile over anchors. `rank_biased_overlap`:
    the same with more weight on the top. `same_text`: None for different encoders, whose vectors are not comparable.
    `old_scores`, `new_scores`: scores of each anchor's last neighbour. `approximate`: the index searched
    approximately, which causes some of the differences.
    """

    old: str
    new: str
    k: int
    anchors: int
    approximate: bool
    overlap_mean: float | None
    overlap_p10: float | None
    rank_biased_overlap_mean: float | None
    same_text: SameTextCosine | None
    old_scores: Quantiles | None
    new_scores: Quantiles | None
    only_in_old: int
    only_in_new: int
    most_changed: tuple[ChangedAnchor, ...]
    judged: JudgedQuality | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """One anchor and its neighbours in both generations."""

    anchor: EmbeddedCompany
    old: tuple[SimilarCompany, ...]
    new: tuple[SimilarCompany, ...]
    overlap: float
    rank_biased_overlap: float
    approximate: bool


def compare(
    index: CompanyIndex,
    *,
    old: str,
    new: str,
    anchors: int = 200,
    k: int = 10,
    seed: int = 0,
    judgements: Judgements | None = None,
) -> DriftReport:
    """Compare the neighbours of `anchors` random companies, or of all companies if there are fewer.

    With `judgements`, the report includes the nDCG of both generations. The same `seed` draws the same anchors while
    neither generation changes.

    Raises:
        InvalidInput: `anchors` or `k` is below 1.
        UnknownGeneration: one of the generations does not exist.
    """
    if anchors < 1 or k < 1:
        raise InvalidInput(f"anchors and k must be at least 1, not {anchors} and {k}")
    same_encoder = generation_named(index, old).encoder_id == generation_named(index, new).encoder_id
    corpora = _compare_corpora(index, old=old, new=new, sample=anchors, seed=seed)
    before, after = (stored_documents(index, generation, corpora.sample) for generation in (old, new))
    chosen = [company for company in corpora.sample if company in before and company in after][:anchors]
    comparisons = [_compare_anchor(index, before[company], after[company], old=old, new=new, k=k) for company in chosen]
    overlaps = np.array([one.overlap for one in comparisons])
    return DriftReport(
        old=old,
        new=new,
        k=k,
        anchors=len(comparisons),
        approximate=any(one.approximate for one in comparisons),
        overlap_mean=float(overlaps.mean()) if comparisons else None,
        overlap_p10=float(np.percentile(overlaps, 10)) if comparisons else None,
        rank_biased_overlap_mean=float(np.mean([one.rank_biased_overlap for one in comparisons]))
        if comparisons
        else None,
        same_text=_same_text([(before[company], after[company]) for company in chosen]) if same_encoder else None,
        old_scores=_quantiles([one.old[-1].score for one in comparisons if one.old]),
        new_scores=_quantiles([one.new[-1].score for one in comparisons if one.new]),
        only_in_old=corpora.only_in_old,
        only_in_new=corpora.only_in_new,
        most_changed=_most_changed(comparisons),
        judged=_judged_quality(index, judgements, old=old, new=new) if judgements else None,
    )


def rank_biased_overlap(old: Sequence[str], new: Sequence[str]) -> float:
    """Return the rank-biased overlap of two rankings: 1 if they are equal, 0 if they share no id.

    It is the mean over depths of the shared part of the first `depth` ids, weighted by .9 ** (depth - 1) (Webber,
    Moffat, Zobel, TOIS 2010), cut at the end of the longer list and scaled to a maximum of 1.
    """
    depths = range(1, max(len(old), len(new)) + 1)
    weights = [PERSISTENCE ** (depth - 1) for depth in depths]
    shared = [len({*old[:depth]} & {*new[:depth]}) / depth for depth in depths]
    return sum(w * s for w, s in zip(weights, shared, strict=True)) / sum(weights) if weights else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Corpora:
    """Ids drawn from what both generations hold, in random order, and how many companies only one holds."""

    sample: tuple[str, ...]
    only_in_old: int
    only_in_new: int


def _compare_corpora(index: CompanyIndex, *, old: str, new: str, sample: int, seed: int) -> _Corpora:
    random = np.random.default_rng(seed)
    size = _draws(index, old, sample=sample)
    drawn: list[tuple[float, str]] = []
    differing: list[str] = []
    for company, old_version, new_version in _joined_versions(index, old, new):
        if old_version != new_version:
            differing.append(company)
        if old_version is None or new_version is None:
            continue
        if len(drawn) < size:
            heapq.heappush(drawn, (random.random(), company))
        else:
            heapq.heappushpop(drawn, (random.random(), company))
    only_in_old = only_in_new = 0
    for start in range(0, len(differing), BATCH_IDS):
        ids = differing[start : start + BATCH_IDS]
        before, after = (index.get(generation, ids).keys() for generation in (old, new))
        only_in_old += len(before - after)
        only_in_new += len(after - before)
    return _Corpora(
        sample=tuple(company for _, company in sorted(drawn)), only_in_old=only_in_old, only_in_new=only_in_new
    )


def _draws(index: CompanyIndex, generation: str, *, sample: int) -> int:
    """Return how many documents to draw for `sample` companies; versions do not show which ones are tombstones."""
    stats = index.stats(generation)
    return math.ceil(1.5 * sample * (1 + stats.deleted / max(stats.companies, 1))) + 20


def _joined_versions(index: CompanyIndex, old: str, new: str) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield every id with its version in each generation (None if it is missing there), by ascending id."""
    stored = heapq.merge(_versions(index, old), _versions(index, new))
    for company, entries in groupby(stored, key=itemgetter(0)):
        versions = {generation: version for _, generation, version in entries}
        yield company, versions.get(old), versions.get(new)


def _versions(index: CompanyIndex, generation: str) -> Iterator[tuple[str, str, int]]:
    return ((stored.id, generation, stored.version) for batch in index.versions(generation) for stored in batch)


def _compare_anchor(
    index: CompanyIndex, before: EmbeddedCompany, after: EmbeddedCompany, *, old: str, new: str, k: int
) -> _Comparison:
    there = index.similar(old, before.vector, k=k, exclude={before.id})
    here = index.similar(new, after.vector, k=k, exclude={after.id})
    old_ids = [hit.company.id for hit in there.hits]
    new_ids = [hit.company.id for hit in here.hits]
    longer = max(len(old_ids), len(new_ids))
    return _Comparison(
        anchor=after,
        old=there.hits,
        new=here.hits,
        overlap=len({*old_ids} & {*new_ids}) / longer if longer else 1.0,
        rank_biased_overlap=rank_biased_overlap(old_ids, new_ids),
        approximate=there.approximate or here.approximate,
    )


def _same_text(pairs: Sequence[tuple[EmbeddedCompany, EmbeddedCompany]]) -> SameTextCosine | None:
    cosines = [float(before.vector @ after.vector) for before, after in pairs if before.text_hash == after.text_hash]
    if not cosines:
        return None
    return SameTextCosine(texts=len(cosines), mean=float(np.mean(cosines)), p05=float(np.percentile(cosines, 5)))


def _quantiles(scores: Sequence[float]) -> Quantiles | None:
    if not scores:
        return None
    p05, p25, p50, p75, p95 = (float(value) for value in np.percentile(scores, (5, 25, 50, 75, 95)))
    return Quantiles(p05=p05, p25=p25, p50=p50, p75=p75, p95=p95)


def _most_changed(comparisons: Sequence[_Comparison]) -> tuple[ChangedAnchor, ...]:
    changed = [comparison for comparison in comparisons if comparison.rank_biased_overlap < 1]
    changed.sort(key=lambda comparison: (comparison.overlap, comparison.rank_biased_overlap, comparison.anchor.id))
    return tuple(
        ChangedAnchor(
            id=comparison.anchor.id,
            name=comparison.anchor.company.name,
            overlap=comparison.overlap,
            rank_biased_overlap=comparison.rank_biased_overlap,
            left=_names_only_in(comparison.old, comparison.new),
            joined=_names_only_in(comparison.new, comparison.old),
        )
        for comparison in changed[:MOST_CHANGED]
    )


def _names_only_in(hits: Sequence[SimilarCompany], others: Sequence[SimilarCompany]) -> tuple[str, ...]:
    known = {hit.company.id for hit in others}
    return tuple(hit.company.name for hit in hits if hit.company.id not in known)


def _judged_quality(index: CompanyIndex, judgements: Judgements, *, old: str, new: str) -> JudgedQuality | None:
    ids = judged_companies(judgements)
    before, after = (
        {company: document.vector for company, document in stored_documents(index, generation, ids).items()}
        for generation in (old, new)
    )
    usable = usable_judgements(judgements, before.keys() & after.keys())
    if not usable:
        return None
    return JudgedQuality(
        anchors=len(usable),
        old_ndcg=float(anchor_ndcg(usable, before).mean()),
        new_ndcg=float(anchor_ndcg(usable, after).mean()),
    )
