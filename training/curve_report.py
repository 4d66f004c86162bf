"""Table, plot and JSON of a label-efficiency curve."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from training.evaluate.bootstrap import paired_difference

matplotlib.use("Agg")

Result: TypeAlias = Mapping[str, Any]
UNTRAINED = "untrained"

# Okabe and Ito's colours, told apart by colour-blind readers; the markers do it in print.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vPX"
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


def write_report(results: Sequence[Result], output: Path, *, reference: str) -> str:
    """Writes table.md, curve.png and curve.json; returns the table. Differences are to `reference`."""
    output.mkdir(parents=True, exist_ok=True)
    table = as_table(results, reference=reference)
    (output / "table.md").write_text(table, encoding="utf-8")
    (output / "curve.json").write_text(json.dumps(list(results)) + "\n", encoding="utf-8")
    plot(results, output / "curve.png")
    return table


def as_table(results: Sequence[Result], *, reference: str) -> str:
    """Markdown: a line for each share of labels and method, mean ± standard deviation over the seeds."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    lines += [_line(group, results, reference) for group in grouped(results)]
    return "\n".join(lines) + "\n"


def grouped(results: Sequence[Result]) -> list[list[Result]]:
    """The results of each share and method, its seeds together; untrained first, then from many labels to few."""
    groups: dict[tuple[float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["share"], result["method"]), []).append(result)
    return sorted(groups.values(), key=lambda group: (group[0]["method"] != UNTRAINED, -group[0]["share"]))


def of_anchors(group: Sequence[Result]) -> NDArray[np.float64]:
    """Each anchor's nDCG@10, its mean over the seeds: `[anchors]`."""
    means: NDArray[np.float64] = np.mean([result["ndcg10_of_anchors"] for result in group], axis=0)
    return means


def _line(group: Sequence[Result], results: Sequence[Result], reference: str) -> str:
    first = group[0]
    share = "none" if first["method"] == UNTRAINED else f"{first['share']:.0%} ({first['labelled']:,})"
    cells = [
        share,
        first["method"],
        _spread([result["dev"]["ndcg10"] for result in group]),
        _spread([result["dev"]["auc"] for result in group]),
        _spread([result["dev"]["p10"] for result in group]),
        *(_spread([result[way]["accuracy"] for result in group if way in result]) for way in ("by_cosine", "by_head")),
        *(_spread([result["by_cosine"][name] for result in group]) for name in ("precision", "recall")),
        _difference(group, results, reference),
        str(len(group)) if first["method"] != UNTRAINED else "",
    ]
    return f"| {' | '.join(cells)} |"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


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


def plot(results: Sequence[Result], picture: Path) -> None:
    """nDCG@10 over the number of labels (logarithmic), a line for each method, bars of one standard deviation."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    trained = [result for result in results if result["method"] != UNTRAINED]
    for number, method in enumerate(dict.fromkeys(result["method"] for result in trained)):
        groups = grouped([result for result in trained if result["method"] == method])
        values = [[result["dev"]["ndcg10"] for result in group] for group in groups]
        axes.errorbar(
            [group[0]["labelled"] for group in groups],
            [np.mean(each) for each in values],
            yerr=[np.std(each, ddof=1) if len(each) > 1 else 0 for each in values],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            label=method,
        )
    for result in results:
        if result["method"] == UNTRAINED:
            axes.axhline(result["dev"]["ndcg10"], color="#888888", linestyle=":", label=UNTRAINED)
    axes.set_xscale("log")
    axes.set_xlabel("labelled pairs")
    axes.set_ylabel("nDCG@10 on dev")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(picture, dpi=120)
