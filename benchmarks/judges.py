"""Measures the agreement of judges, and the ceiling that it sets for any ranking.

    python -m benchmarks.judges --judged dev.tsv

Compares the grades of `--judged` (called "first") and of two further judges (data/judged_again), pair by pair: the
share of equal grades, Cohen's kappa with quadratic weights, kappa of "competitor or not", and the number of pairs with
grades 2 and 0. *Ceiling*: one judge's grades, taken as scores and measured by another judge's grades: nDCG@10 (the mean
of 50 random orders of ties) and AUC. No ranking can be expected to agree better with one judge than another judge does.
"""

import argparse
from collections.abc import Mapping
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.generations.relevance_labels import COMPETITOR, ndcg, read_relevance_labels
from similarity.ingest.files import read_rows
from training.evaluate.ranks import auc

AGAIN = Path(__file__).parents[1] / "data" / "judged_again" / "dev.tsv"
RESAMPLES = 50
Pair = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judged", type=Path, help="judged pairs: anchor, candidate, grade")
    judges = read_judges()
    if judged := parser.parse_args().judged:
        labels = read_relevance_labels(judged)
        first = {pair: labels.get(pair[0], {}).get(pair[1]) for pair in judges["one"]}
        judges["first"] = {pair: grade for pair, grade in first.items() if grade is not None}
    print(f"{'judges':14} {'pairs':>5} {'equal':>6} {'kappa':>6} {'competitor':>10} {'2 and 0':>8}")
    for one, other in combinations(judges, 2):
        a, b = _both(judges[one], judges[other])
        competitor = kappa(a == COMPETITOR, b == COMPETITOR)
        opposite = int((abs(a - b) == COMPETITOR).sum())
        equal = np.mean(a == b)
        print(f"{one + ', ' + other:14} {len(a):5} {equal:6.3f} {kappa(a, b):6.3f} {competitor:10.3f} {opposite:8}")
    print(f"\n{'ceiling':22} nDCG@10    AUC")
    for scored, by in permutations(judges, 2):
        scores, grades = _both(judges[scored], judges[by])
        order, area = mean_ndcg(judges[scored], judges[by]), auc(scores.astype(float), grades == COMPETITOR)
        print(f"{scored + ' by grades of ' + by:22}   {order:.3f}  {area:.3f}")


def read_judges() -> dict[str, dict[Pair, int]]:
    """Return the grades of the two further judges, by pair."""
    judges: dict[str, dict[Pair, int]] = {"one": {}, "two": {}}
    for row in read_rows(AGAIN):
        for name, grades in judges.items():
            grades[str(row.record["anchor"]), str(row.record["candidate"])] = int(str(row.record[name]))
    return judges


def kappa(one: NDArray[np.generic], other: NDArray[np.generic]) -> float:
    """Return Cohen's kappa with quadratic weights; for two values it equals the kappa without weights.

    Source: Cohen, Psychological Bulletin 70 (1968).
    """
    a, b = one.astype(float), other.astype(float)
    return float(1 - np.mean((a - b) ** 2) / np.mean((a[:, None] - b[None, :]) ** 2))


def mean_ndcg(scored: Mapping[Pair, int], by: Mapping[Pair, int]) -> float:
    """Return the mean nDCG@10 over anchors and random orders of equal scores."""
    random = np.random.default_rng(0)
    found = []
    for anchor in sorted({anchor for anchor, _ in scored}):
        of_anchor = {pair: grade for pair, grade in scored.items() if pair[0] == anchor}
        scores, grades = _both(of_anchor, by)
        found += [ndcg(scores + random.random(len(scores)) / 2, grades) for _ in range(RESAMPLES)]
    return float(np.nanmean(found))


def _both(one: Mapping[Pair, int], other: Mapping[Pair, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = sorted(one.keys() & other.keys())
    return np.array([one[pair] for pair in pairs]), np.array([other[pair] for pair in pairs])


if __name__ == "__main__":
    main()
