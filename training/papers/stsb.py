"""Fine-tuning on the STS benchmark, the paper's Table 2: regression of the scores, a run for each seed.

    python -m training.papers.stsb --sts FOLDER --model runs/nli/runs/pause-0.1-1/best --output runs/stsb

FOLDER contains STSb-train, STSb-dev and STSb-test. The loss is the squared difference of score / 5 and the cosine
(Reimers and Gurevych 2019) or, with `--target head`, the output of a new head (the code that PAUSE released; its head
has a third layer and a ReLU). Only the cosine is measured; the best step is chosen on dev. The table (table.md) has
Spearman's correlation x 100 on test: that of the model before training, then the mean and standard deviation over the
seeds. The model may be any folder, preset or package. Defaults are those of Reimers and Gurevych (2e-5, 16 pairs, 4
epochs). Finished seeds are stored in OUTPUT/cells.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from training.config import TrainSettings, settings_values
from training.console import refusing, say
from training.data.pairs import Pairs
from training.data.selection import TrainingData
from training.data.texts import Texts
from training.losses.methods import Log, LossInputs, Objective
from training.options import add_settings, settings_of
from training.papers.cells import Result, add_table_options, facts_of, measured_cells, start_encoder, trained
from training.papers.paper_losses import sts_regression
from training.papers.reports import markdown, spread
from training.papers.sts import StsSelection, StsSet, evaluate_sts, read_sts, scored_pairs
from training.run.task import PairTask

SEEDS = (1, 2, 3, 4, 5)
TARGETS = ("cosine", "head")
HIGHEST_SCORE = 5.0
COLUMNS = ("model", "STSb-test", "STSb-dev", "seeds")
RECIPE: Mapping[str, Any] = {
    "method": "sts",
    "learning_rate": 2e-5,
    "final_learning_rate": 0.0,
    "batch_pairs": 16,
    "epochs": 4.0,
    "checkpoint_every": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The three parts of the STS benchmark, and the texts to train on."""

    train: Pairs
    dev: StsSet
    test: StsSet
    texts: Texts


def read_benchmark(folder: Path, settings: TrainSettings) -> Benchmark:
    """Return STSb-train, STSb-dev and STSb-test of a folder.

    Raises:
        InvalidInput: a file is missing or invalid.
    """
    train = scored_pairs(read_sts(folder, "STSb-train"))
    texts = Texts(train.texts, settings.source, max_tokens=settings.max_tokens)
    return Benchmark(train=train, dev=read_sts(folder, "STSb-dev"), test=read_sts(folder, "STSb-test"), texts=texts)


def fine_tuned(bench: Benchmark, settings: TrainSettings, *, target: str, output: Path) -> Result:
    """Train with one seed and measure on test."""
    data = TrainingData(pairs=bench.train, texts=bench.texts, select=StsSelection(bench.dev))
    task = PairTask(settings, data, regression(target))
    if target == "head":
        task.classes = ("score",)
    fitted = trained(settings, task, output=output)
    return {
        "row": "fine-tuned",
        "seed": settings.seed,
        "dev": fitted.best["spearman"],
        "test": evaluate_sts(fitted.encoder, [bench.test]).average,
        **facts_of(fitted),
    }


def regression(target: str) -> Objective:
    """Return the objective for scored pairs (score in `gains`): squared difference of cosine or head and score."""

    def on_pairs(inputs: LossInputs, _progress: float, _log: Log) -> Tensor:
        if target == "head":
            return (inputs.logits[:, 0] - inputs.gains / HIGHEST_SCORE).square().mean()
        return sts_regression(inputs.left, inputs.right, inputs.gains, highest=HIGHEST_SCORE)

    return Objective(
        on_pairs=on_pairs,
        on_anchors=None,
        contrastive_weight=0.0,
        order="composition",
        uses_unlabelled=False,
        selectable_from=0.0,
    )


def start(bench: Benchmark, settings: TrainSettings) -> Result:
    """Return the figures of the model before training."""
    encoder = start_encoder(replace(settings, frozen_layers=0), bench.texts)
    dev = StsSelection(bench.dev)(encoder)["spearman"]
    return {"row": "as it came", "seed": 0, "dev": dev, "test": evaluate_sts(encoder, [bench.test]).average}


def table(results: Sequence[Result], settings: TrainSettings) -> str:
    """Return the conditions and the table in Markdown."""
    rows = []
    for row in dict.fromkeys(result["row"] for result in results):
        group = [result for result in results if result["row"] == row]
        figures = (spread([result[part] for result in group]) for part in ("test", "dev"))
        rows.append([row, *figures, str(len(group)) if group[0]["seed"] else ""])
    return (
        f"Start: {settings.model}. {settings.epochs:g} epochs of STSb-train, {settings.batch_pairs} pairs a batch, "
        f"learning rate {settings.learning_rate:g}"
        + (f", stopped after {settings.steps} steps" if settings.steps else "")
        + f". Spearman x 100, pooled; the best step is chosen on dev.\n\n{markdown(COLUMNS, rows)}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train with each seed and write the report."""
    parser = argparse.ArgumentParser(description="Fine-tune a sentence encoder on the STS benchmark.")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STSb-train, STSb-dev and STSb-test")
    parser.add_argument("--target", choices=TARGETS, default="cosine", help="what learns the scores")
    add_table_options(parser, seeds=SEEDS)
    add_settings(parser, without=("method", "seed"))
    options = parser.parse_args(arguments)
    with refusing():
        shared_settings = settings_of(options, TrainSettings, RECIPE)
        bench = read_benchmark(options.sts, shared_settings)
        cells = {"start": partial(start, bench, shared_settings)}
        for seed in options.seeds:
            name = f"seed-{seed}"
            output = options.output / "runs" / name
            settings = replace(shared_settings, seed=seed)
            cells[name] = partial(fine_tuned, bench, settings, target=options.target, output=output)
        results = measured_cells(
            cells,
            options,
            settings_values(shared_settings) | ({"target": "head"} if options.target == "head" else {}),
            line=lambda result: f"{result['row']}, seed {result['seed']}: STSb-test {result['test']:.2f}",
        )
    report = table(results, shared_settings)
    (options.output / "table.md").write_text(report, encoding="utf-8")
    say(report)


if __name__ == "__main__":
    main()
