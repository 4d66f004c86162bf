"""How far two generations are apart: what a re-embed changes for those who look at neighbours.

Random companies that both hold are looked up in each, and their neighbour lists compared. The gate
decides by judgements; this report is for a person to look at, before a promote or after a surprise.
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
    """What a comparison found; figures are None where there was nothing to take them from.

    `overlap` is the share of the k neighbours that both lists hold, mean and 10th percentile over
    anchors; `rank_biased_overlap` weighs the top more. `same_text` is None for different encoders,
    whose vectors do not compare. `old_scores` and `new_scores` are of each anchor's last neighbour.
    Where `approximate`, the index searched approximately, and some of the change is the search's.
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
class _Look:
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
    """Compares the neighbours of `anchors` random companies, or of all where there are fewer.

    With `judgements`, how well each generation ranks them is reported too. The same `seed` draws the
    same anchors while neither generation changes.

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
    looks = [_look(index, before[company], after[company], old=old, new=new, k=k) for company in chosen]
    overlaps = np.array([one.overlap for one in looks])
    return DriftReport(
        old=old,
        new=new,
        k=k,
        anchors=len(looks),
        approximate=any(one.approximate for one in looks),
        overlap_mean=float(overlaps.mean()) if looks else None,
        overlap_p10=float(np.percentile(overlaps, 10)) if looks else None,
        rank_biased_overlap_mean=float(np.mean([one.rank_biased_overlap for one in looks])) if looks else None,
        same_text=_same_text([(before[company], after[company]) for company in chosen]) if same_encoder else None,
        old_scores=_quantiles([one.old[-1].score for one in looks if one.old]),
        new_scores=_quantiles([one.new[-1].score for one in looks if one.new]),
        only_in_old=corpora.only_in_old,
        only_in_new=corpora.only_in_new,
        most_changed=_most_changed(looks),
        judged=_judged_quality(index, judgements, old=old, new=new) if judgements else None,
    )


def rank_biased_overlap(old: Sequence[str], new: Sequence[str]) -> float:
    """How alike two rankings are, the top counting most: 1 for equal ones, 0 where they share nothing.

    The mean over depths of the shared part of both heads, weighted by .9 ** (depth - 1): rank-biased
    overlap (Webber, Moffat, Zobel, TOIS 2010), cut at the longer list's end and scaled to reach 1.
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
    """How many documents to draw for `sample` companies: versions do not tell which ones are tombstones."""
    stats = index.stats(generation)
    return math.ceil(1.5 * sample * (1 + stats.deleted / max(stats.companies, 1))) + 20


def _joined_versions(index: CompanyIndex, old: str, new: str) -> Iterator[tuple[str, int | None, int | None]]:
    """Every id with the version that each generation stores, None where it stores none, by ascending id."""
    stored = heapq.merge(_versions(index, old), _versions(index, new))
    for company, entries in groupby(stored, key=itemgetter(0)):
        versions = {generation: version for _, generation, version in entries}
        yield company, versions.get(old), versions.get(new)


def _versions(index: CompanyIndex, generation: str) -> Iterator[tuple[str, str, int]]:
    return ((stored.id, generation, stored.version) for batch in index.versions(generation) for stored in batch)


def _look(index: CompanyIndex, before: EmbeddedCompany, after: EmbeddedCompany, *, old: str, new: str, k: int) -> _Look:
    there = index.similar(old, before.vector, k=k, exclude={before.id})
    here = index.similar(new, after.vector, k=k, exclude={after.id})
    old_ids = [hit.company.id for hit in there.hits]
    new_ids = [hit.company.id for hit in here.hits]
    longer = max(len(old_ids), len(new_ids))
    return _Look(
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


def _most_changed(looks: Sequence[_Look]) -> tuple[ChangedAnchor, ...]:
    changed = [look for look in looks if look.rank_biased_overlap < 1]
    changed.sort(key=lambda look: (look.overlap, look.rank_biased_overlap, look.anchor.id))
    return tuple(
        ChangedAnchor(
            id=look.anchor.id,
            name=look.anchor.company.name,
            overlap=look.overlap,
            rank_biased_overlap=look.rank_biased_overlap,
            left=_names_only_in(look.old, look.new),
            joined=_names_only_in(look.new, look.old),
        )
        for look in changed[:MOST_CHANGED]
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
