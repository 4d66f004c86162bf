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

from similarity.company import Company, EmbeddedCompany, SimilarCompany
from similarity.errors import InvalidInput
from similarity.generations.gate import (
    IDS_PER_READ,
    anchor_ndcg,
    generation_named,
    labelled_companies,
    stored_documents,
    usable_labels,
)
from similarity.generations.relevance_labels import RelevanceLabels
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
    """A company whose neighbours changed, with the names of the neighbours that left its list and that joined it."""

    id: str
    name: str
    overlap: float
    rank_biased_overlap: float
    left: tuple[str, ...]
    joined: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SameTextCosine:
    """Cosines of the two vectors of one text, over `texts` anchors with the same text in both generations."""

    texts: int
    mean: float
    p05: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuality:
    """Mean nDCG@10 of each generation on the labelled anchors that are usable in both."""

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


def compare(
    index: CompanyIndex,
    *,
    old: str,
    new: str,
    anchors: int = 200,
    k: int = 10,
    labels: RelevanceLabels | None = None,
) -> DriftReport:
    """Compare the neighbours of `anchors` random companies, or of all companies if there are fewer.

    With `labels`, the report includes the nDCG of both generations. The anchors are the same while neither
    generation changes.

    Raises:
        InvalidInput: `anchors` or `k` is below 1.
        UnknownGeneration: one of the generations does not exist.
    """
    if anchors < 1 or k < 1:
        raise InvalidInput(f"anchors and k must be at least 1, not {anchors} and {k}")
    same_encoder = generation_named(index, old).encoder_id == generation_named(index, new).encoder_id
    corpora = _compare_corpora(index, old=old, new=new, sample=anchors)
    before, after = (stored_documents(index, generation, corpora.sample) for generation in (old, new))
    ranked = [{each for each in documents if documents[each].has_vector} for documents in (before, after)]
    chosen = [company for company in corpora.sample if all(company in ids for ids in ranked)][:anchors]
    old_found = [index.similar(old, before[company].vector, k=k, exclude={company}) for company in chosen]
    new_found = [index.similar(new, after[company].vector, k=k, exclude={company}) for company in chosen]
    changes = [
        _change(after[company].company, there.hits, here.hits)
        for company, there, here in zip(chosen, old_found, new_found, strict=True)
    ]
    changed = [change for change in changes if change.rank_biased_overlap < 1]
    changed.sort(key=lambda change: (change.overlap, change.rank_biased_overlap, change.id))
    overlaps = [change.overlap for change in changes]
    return DriftReport(
        old=old,
        new=new,
        k=k,
        anchors=len(changes),
        approximate=any(found.approximate for found in (*old_found, *new_found)),
        overlap_mean=float(np.mean(overlaps)) if changes else None,
        overlap_p10=float(np.percentile(overlaps, 10)) if changes else None,
        rank_biased_overlap_mean=float(np.mean([each.rank_biased_overlap for each in changes])) if changes else None,
        same_text=_same_text([(before[company], after[company]) for company in chosen]) if same_encoder else None,
        old_scores=_quantiles([found.hits[-1].score for found in old_found if found.hits]),
        new_scores=_quantiles([found.hits[-1].score for found in new_found if found.hits]),
        only_in_old=corpora.only_in_old,
        only_in_new=corpora.only_in_new,
        most_changed=tuple(changed[:MOST_CHANGED]),
        judged=_judged_quality(index, labels, old=old, new=new) if labels else None,
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
    """Ids of documents in both generations, drawn in random order; how many companies only one generation has."""

    sample: tuple[str, ...]
    only_in_old: int
    only_in_new: int


def _compare_corpora(index: CompanyIndex, *, old: str, new: str, sample: int) -> _Corpora:
    random = np.random.default_rng(0)
    stats = index.stats(old)
    # Versions do not show which documents are tombstones, so more ids are drawn than needed.
    draws = math.ceil(1.5 * sample * (1 + stats.deleted / max(stats.companies, 1))) + 20
    drawn: list[tuple[float, str]] = []
    differing: list[str] = []
    stored = heapq.merge(_versions(index, old), _versions(index, new))
    for company, entries in groupby(stored, key=itemgetter(0)):
        versions = {generation: version for _, generation, version in entries}
        if versions.get(old) != versions.get(new):
            differing.append(company)
        if old in versions and new in versions:
            heapq.heappush(drawn, (random.random(), company))
            if len(drawn) > draws:
                heapq.heappop(drawn)
    only_in_old = only_in_new = 0
    for start in range(0, len(differing), IDS_PER_READ):
        ids = differing[start : start + IDS_PER_READ]
        before, after = (index.get(generation, ids).keys() for generation in (old, new))
        only_in_old += len(before - after)
        only_in_new += len(after - before)
    return _Corpora(
        sample=tuple(company for _, company in sorted(drawn)), only_in_old=only_in_old, only_in_new=only_in_new
    )


def _versions(index: CompanyIndex, generation: str) -> Iterator[tuple[str, str, int]]:
    return ((stored.id, generation, stored.version) for batch in index.versions(generation) for stored in batch)


def _change(company: Company, old: Sequence[SimilarCompany], new: Sequence[SimilarCompany]) -> ChangedAnchor:
    """Return how far the neighbours of a company differ."""
    names_before = {hit.company.id: hit.company.name for hit in old}
    names_after = {hit.company.id: hit.company.name for hit in new}
    longer = max(len(old), len(new))
    return ChangedAnchor(
        id=company.id,
        name=company.name,
        overlap=len(names_before.keys() & names_after.keys()) / longer if longer else 1.0,
        rank_biased_overlap=rank_biased_overlap([*names_before], [*names_after]),
        left=tuple(name for hit, name in names_before.items() if hit not in names_after),
        joined=tuple(name for hit, name in names_after.items() if hit not in names_before),
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


def _judged_quality(index: CompanyIndex, labels: RelevanceLabels, *, old: str, new: str) -> JudgedQuality | None:
    ids = labelled_companies(labels)
    before, after = (
        {
            company: document.vector
            for company, document in stored_documents(index, generation, ids).items()
            if document.has_vector
        }
        for generation in (old, new)
    )
    usable = usable_labels(labels, before.keys() & after.keys())
    if not usable:
        return None
    return JudgedQuality(
        anchors=len(usable),
        old_ndcg=float(anchor_ndcg(usable, before).mean()),
        new_ndcg=float(anchor_ndcg(usable, after).mean()),
    )
