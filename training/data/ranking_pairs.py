"""Pairs to fit the second stage of a search on: judged candidates and listed peers, with their features.

The features are computed as in a search, from the same candidates that a search reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company, DeletedCompany
from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import COMPETITOR, RelevanceLabels
from similarity.index.protocol import CompanyIndex
from similarity.ingest.files import read_rows
from similarity.search.reranking.pair_features import (
    SPARSITY_RANKS,
    CompanyFeatures,
    PairFeatures,
    company_features,
    pair_features,
)
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.stage import HEAD, SAME_INDUSTRY_CANDIDATES

Floats: TypeAlias = NDArray[np.float64]
MIN_VOTES = 2
"""The least number of lists of peers that name two companies together."""


@dataclass(frozen=True, slots=True)
class FactCorpus:
    """The companies of an index, their features, and their vectors `[companies, dimension]`."""

    companies: Sequence[Company]
    features: Sequence[CompanyFeatures]
    vectors: NDArray[np.float32]
    row_of: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnchor:
    """One anchor in one corpus: the features and grades of its judged candidates."""

    features: PairFeatures
    grades: NDArray[np.int64]


def read_fact_corpus(index: CompanyIndex, *, encoder_id: str) -> FactCorpus:
    """Return the companies of the live generation.

    Raises:
        InvalidInput: its vectors are of another encoder.
    """
    live = index.live()
    if live.encoder_id != encoder_id:
        raise InvalidInput(
            f"the index has vectors of encoder {live.encoder_id}, not of the bundle's encoder {encoder_id}; pass the "
            "bundle that made the index, or re-embed the index with this one"
        )
    schema = index.attributes()
    documents = [each for page in index.scan(live.name) for each in page if not isinstance(each, DeletedCompany)]
    return FactCorpus(
        companies=[each.company for each in documents],
        vectors=np.stack([each.vector for each in documents]),
        features=[company_features(each.company, schema, each.language) for each in documents],
        row_of={each.id: row for row, each in enumerate(documents)},
    )


def judged_anchor(
    corpus: FactCorpus, anchor: str, grades: Mapping[str, int], *, kept: NDArray[np.bool_] | None = None
) -> JudgedAnchor | None:
    """Return the judged candidates of an anchor, with the features they have in a search of the `kept` companies.

    None if no judged candidate is kept.
    """
    row = corpus.row_of[anchor]
    present = np.ones(len(corpus.companies), dtype=bool) if kept is None else kept.copy()
    present[row] = False
    judged = np.array([corpus.row_of[each] for each in grades if present[corpus.row_of[each]]], dtype=np.int64)
    if not len(judged):
        return None
    cosines = (corpus.vectors @ corpus.vectors[row]).astype(np.float64)
    nearest = _nearest(np.where(present, cosines, -2.0), max(HEAD[Rank.BUSINESS], SPARSITY_RANKS.stop))
    candidates = np.array(list(dict.fromkeys([*judged.tolist(), *nearest.tolist()])))
    features = _features(corpus, row, candidates, cosines, nearest)
    chosen = {name: getattr(features, name)[: len(judged)] for name in PairFeatures.__slots__}
    of_row = {corpus.row_of[each]: grade for each, grade in grades.items()}
    return JudgedAnchor(features=PairFeatures(**chosen), grades=np.array([of_row[each] for each in judged.tolist()]))


def judged_anchors(
    corpus: FactCorpus, judgements: RelevanceLabels, *, shares: Sequence[float] = (1.0,), seed: int = 0
) -> list[JudgedAnchor]:
    """Return each anchor once per share, in a random sample of that share of the companies and all its competitors."""
    random = np.random.default_rng(seed)
    found = []
    for anchor, all_grades in judgements.items():
        grades = {each: grade for each, grade in all_grades.items() if each in corpus.row_of}
        if anchor not in corpus.row_of or not grades:
            continue
        competitors = [corpus.row_of[each] for each, grade in grades.items() if grade == COMPETITOR]
        for share in shares:
            kept = random.random(len(corpus.companies)) < share
            kept[competitors] = True
            found.append(judged_anchor(corpus, anchor, grades, kept=kept))
    return [each for each in found if each is not None]


def unlabelled_candidates(corpus: FactCorpus, judgements: RelevanceLabels) -> list[PairFeatures]:
    """Return, for each judged anchor, the features of the candidates of a search that nobody judged."""
    found = []
    for anchor, grades in judgements.items():
        if anchor in corpus.row_of:
            row = corpus.row_of[anchor]
            cosines = (corpus.vectors @ corpus.vectors[row]).astype(np.float64)
            cosines[row] = -2.0
            nearest = _nearest(cosines, HEAD[Rank.BUSINESS])
            features = _features(corpus, row, nearest, cosines, nearest)
            unknown = np.array([corpus.companies[each].id not in grades for each in nearest], dtype=bool)
            found.append(PairFeatures(**{name: getattr(features, name)[unknown] for name in PairFeatures.__slots__}))
    return found


def peer_candidates(corpus: FactCorpus, anchor: str) -> tuple[list[str], PairFeatures]:
    """Return the ids and features of the candidates that a search for comparable companies reads."""
    row = corpus.row_of[anchor]
    cosines = (corpus.vectors @ corpus.vectors[row]).astype(np.float64)
    cosines[row] = -2.0
    nearest = _nearest(cosines, HEAD[Rank.COMPARABLE])
    own = corpus.features[row]
    level = "fine_industry" if own.fine_industry else "industry"
    industry = getattr(own, level)
    same = [bool(industry) and getattr(each, level) == industry for each in corpus.features]
    of_industry = _nearest(np.where(same, cosines, -2.0), SAME_INDUSTRY_CANDIDATES)
    candidates = np.array(list(dict.fromkeys([*nearest.tolist(), *of_industry.tolist()])))
    return [corpus.companies[each].id for each in candidates], _features(corpus, row, candidates, cosines, nearest)


def read_peers(path: Path) -> dict[str, frozenset[str]]:
    """Return the peers of each company, from rows of anchor, candidate and votes; a row counts for both companies.

    Rows with fewer than MIN_VOTES votes are left out.

    Raises:
        InvalidInput: the file is missing or a row is invalid.
    """
    peers: dict[str, set[str]] = {}
    for row in read_rows(path):
        try:
            anchor, candidate, votes = (str(row.record[name]) for name in ("anchor", "candidate", "votes"))
            enough = int(votes) >= MIN_VOTES
        except (KeyError, ValueError):
            raise InvalidInput(
                f"{path}, row {row.number}: anchor, candidate or votes is missing, or votes is no number; give all"
            ) from None
        if enough:
            peers.setdefault(anchor, set()).add(candidate)
            peers.setdefault(candidate, set()).add(anchor)
    return {anchor: frozenset(found) for anchor, found in peers.items()}


def components(peers: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return for each company the first of all companies that peers connect with it, directly or not."""
    component: dict[str, str] = {}
    for start in sorted(peers):
        waiting = [] if start in component else [start]
        while waiting:
            each = waiting.pop()
            if each not in component:
                component[each] = start
                waiting += peers[each]
    return component


def _nearest(cosines: Floats, count: int) -> NDArray[np.int64]:
    count = min(count, int((cosines > -2.0).sum()))
    found = np.argpartition(-cosines, count - 1)[:count] if count else np.zeros(0, dtype=np.int64)
    return found[np.argsort(-cosines[found], kind="stable")].astype(np.int64)


def _features(
    corpus: FactCorpus, row: int, candidates: NDArray[np.int64], cosines: Floats, nearest: NDArray[np.int64]
) -> PairFeatures:
    return pair_features(
        corpus.features[row],
        [corpus.features[each] for each in candidates],
        cosines[candidates],
        neighbour_cosines=cosines[nearest].tolist(),
    )
