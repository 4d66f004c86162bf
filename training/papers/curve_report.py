"""The table of a label-efficiency curve."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.evaluate.bootstrap import paired_difference
from training.papers.share_report import Result, grouped, labels_of, markdown, spread

UNTRAINED = "untrained"

COLUMNS = (
    "labels",
    "method",
    "nDCG@10",
    "AUC",
    "P@10",
    "accuracy by cosine",
    "by head",
    "precision",
    "recall",
    "difference in nDCG@10 (95 %)",
    "seeds",
)


def as_table(results: Sequence[Result], *, reference: str) -> str:
    """Markdown: a line for each share of labels and method, mean ± standard deviation over the seeds."""
    return markdown(COLUMNS, [_row(group, results, reference) for group in grouped(results)])


def of_anchors(group: Sequence[Result]) -> NDArray[np.float64]:
    """Each anchor's nDCG@10, its mean over the seeds: `[anchors]`."""
    means: NDArray[np.float64] = np.mean([result["ndcg10_of_anchors"] for result in group], axis=0)
    return means


def _row(group: Sequence[Result], results: Sequence[Result], reference: str) -> list[str]:
    first = group[0]
    return [
        labels_of(group),
        first["method"],
        _figure([result["dev"]["ndcg10"] for result in group]),
        _figure([result["dev"]["auc"] for result in group]),
        _figure([result["dev"]["p10"] for result in group]),
        *(_figure([result[way]["accuracy"] for result in group if way in result]) for way in ("by_cosine", "by_head")),
        *(_figure([result["by_cosine"][name] for result in group]) for name in ("precision", "recall")),
        _difference(group, results, reference),
        str(len(group)) if first["method"] != UNTRAINED else "",
    ]


def _figure(values: Sequence[float]) -> str:
    return spread(values, digits=3) if values else ""


def _difference(group: Sequence[Result], results: Sequence[Result], reference: str) -> str:
    first = group[0]
    seeds = {result["seed"] for result in group}
    compared = [
        result
        for result in results
        if result["method"] == reference and result["share"] == first["share"] and result["seed"] in seeds
    ]
    if first["method"] in (reference, UNTRAINED) or len(compared) != len(group):
        return ""
    found = paired_difference(of_anchors(group), of_anchors(compared))
    return f"{found.mean:+.3f} ({found.lower:+.3f} to {found.upper:+.3f})"
