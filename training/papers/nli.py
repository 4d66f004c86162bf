"""Label-efficiency on natural language inference, the paper's Table 1: PAUSE at each share of the labels, on STS.

    python -m training.papers.nli --nli FOLDER --sts FOLDER --model pause-base --output runs/nli
    python -m training.papers.nli ... --model minilm-l6 --pairs 20000 --shares 1 .1 .01 --seeds 1 --budget 60

The NLI folder contains train.tsv.gz (labelled) and unlabeled.tsv.gz. All labels but a share are hidden; the pairs stay
as unlabelled pairs. Each cell (method, share, seed) is a training run. Its best step is chosen on the pairs of STSb-dev
that are in no reported set. The reported figure is Spearman's correlation x 100, pooled, on STS12-16, STSb-test and
SICK-R-test. PAUSE is trained on all pairs, so its runs have the same length at every share. Cross-entropy is trained on
the labelled pairs: for the same number of steps with `--step-matched`, otherwise for the same number of epochs. The
data have three classes and directed pairs; the priors are 1/3.

Finished cells are stored in OUTPUT/cells, models in OUTPUT/runs; after `--budget` minutes no cell is started.

    table.md   mean and standard deviation over the seeds, and the untrained model: mean of token states, and [CLS]
    nli.png    the average by share of labels
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from similarity.errors import InvalidInput
from training.config import TrainSettings, settings_values
from training.console import refusing, say
from training.data.pairs import Pairs, read_pairs
from training.data.selection import TrainingData
from training.data.splits import hide_labels
from training.data.tab_separated import benchmark_file
from training.data.texts import Texts
from training.model.encoder import Encoder
from training.model.pair_model import NoHead, PairModel
from training.options import add_settings, settings_of
from training.papers.cells import (
    Cells,
    Result,
    add_share_options,
    add_table_options,
    facts_of,
    measured_cells,
    start_encoder,
    trained,
)
from training.papers.reports import UNTRAINED, nli_conditions, nli_table, plot
from training.papers.sts import SETS, StsSelection, StsSet, evaluate_sts, read_sts, without_pairs_of
from training.run.task import PairTask

CLASSES = ("entailment", "neutral", "contradiction")
METHODS = ("pause",)
SHARES = (1.0, 0.7, 0.5, 0.3, 0.1, 0.05, 0.01)
SEEDS = (1, 2, 3)
SUBSET_SEED = 0  # the same pairs in all cells
SELECTION_SET = "STSb-dev"
RECIPE: Mapping[str, Any] = {"symmetric": False, "priors": (1 / 3, 1 / 3, 1 / 3), "checkpoint_every": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The data of all cells: pairs to train on, the set for checkpoint selection, and the reported sets."""

    pairs: Pairs
    dev: StsSet
    sets: tuple[StsSet, ...]
    texts: Texts


def read_nli(folder: Path, *, limit: int | None) -> Pairs:
    """Return the labelled and the unlabelled pairs; with a `limit`, a random sample of that size.

    Raises:
        InvalidInput: a file is missing or invalid, or there are fewer pairs than `limit`.
    """
    pairs = read_pairs([benchmark_file(folder, name) for name in ("train", "unlabeled")], classes=CLASSES)
    if limit is None:
        return pairs
    if not 0 < limit <= len(pairs):
        raise InvalidInput(f"{limit:,} of {len(pairs):,} pairs cannot be drawn; pass --pairs 1 to {len(pairs)}")
    some = np.random.default_rng(SUBSET_SEED).choice(len(pairs), limit, replace=False)
    return pairs.subset(np.sort(some)).with_own_texts()


def read_bench(nli: Path, sts: Path, settings: TrainSettings, *, limit: int | None) -> Bench:
    """Return the data of all cells.

    Raises:
        InvalidInput: see `read_nli`, an STS set is missing, or every pair for the selection is in a reported set.
    """
    pairs = read_nli(nli, limit=limit)
    dev, sets = read_sts(sts, SELECTION_SET), tuple(read_sts(sts, name) for name in SETS)
    dev = without_pairs_of(dev, sets)
    texts = Texts(pairs.texts, settings.source, max_tokens=settings.max_tokens)
    for each in (dev, *sets):
        texts.numbers([*each.left, *each.right])  # added before the states of frozen layers are cached
    return Bench(pairs=pairs, dev=dev, sets=sets, texts=texts)


def run_cell(bench: Bench, settings: TrainSettings, *, output: Path) -> Result:
    """Train one cell and measure it."""
    pairs = hide_labels(bench.pairs, share=settings.label_share, seed=settings.seed)
    data = TrainingData(pairs=pairs, texts=bench.texts, select=StsSelection(bench.dev))
    fitted = trained(settings, PairTask(settings, data), output=output)
    return {
        "method": settings.method,
        "share": settings.label_share,
        "seed": settings.seed,
        "labelled": int(pairs.labelled.sum()),
        **facts_of(fitted),
        "dev": fitted.best["spearman"],
        **measured(fitted.encoder, bench),
    }


def measured(encoder: Encoder, bench: Bench) -> Result:
    """Return Spearman x 100 of each set, and their average."""
    report = evaluate_sts(encoder, bench.sets)
    return {"sts": {name: quality.pooled for name, quality in report.sets.items()}, "average": report.average}


class FirstToken(PairModel):
    """Model whose vector of a text is the state of [CLS]; it is not trained, only compared with."""

    def pooled(self, states: Tensor, _attention_mask: Tensor) -> Tensor:
        """Return the states of the first tokens, float32 `[r, d]`."""
        return states[:, 0].float()


def untrained(bench: Bench, settings: TrainSettings, *, first_token: bool) -> Result:
    """Return the figures of the model that all cells start from, with the mean of token states or the first token's."""
    encoder = start_encoder(settings, bench.texts)
    if first_token:
        model = FirstToken(encoder.model.transformer, NoHead(), frozen_layers=settings.frozen_layers)
        encoder = Encoder(model, bench.texts, settings, device=encoder.device)
    encoder.cache_lower_states(say)  # all cells use them
    dev = StsSelection(bench.dev)(encoder)["spearman"]
    method = f"{UNTRAINED}, {'[CLS]' if first_token else 'mean'}"
    return {"method": method, "share": 0.0, "seed": 0, "labelled": 0, "dev": dev, **measured(encoder, bench)}


def table_cells(bench: Bench, usual: TrainSettings, options: argparse.Namespace) -> Cells:
    """Return all cells, seed by seed, so that a table without gaps exists as early as possible."""
    cells = {
        "untrained-mean": partial(untrained, bench, usual, first_token=False),
        "untrained-cls": partial(untrained, bench, usual, first_token=True),
    }
    for seed in options.seeds:
        for share in options.shares:
            for method in options.methods:
                name = f"{method.replace('+', '_')}-{share:g}-{seed}"
                settings = replace(usual, method=method, label_share=share, seed=seed)
                cells[name] = partial(run_cell, bench, settings, output=options.output / "runs" / name)
    return cells


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the cells and write the report."""
    parser = argparse.ArgumentParser(description="PAUSE on natural language inference at each share of the labels.")
    parser.add_argument("--nli", type=Path, required=True, help="folder with train.tsv.gz and unlabeled.tsv.gz")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STS12 to STS16, STSb and SICK-R")
    add_table_options(parser, seeds=SEEDS)
    add_share_options(parser, methods=METHODS, shares=SHARES)
    parser.add_argument("--pairs", type=int, help="sample size of pairs, labelled and unlabelled (default: all)")
    parser.add_argument("--step-matched", action="store_true", help="all cells take the steps of a run over all pairs")
    add_settings(parser, without=("method", "label_share", "seed"))
    options = parser.parse_args(arguments)
    with refusing():
        usual = settings_of(options, TrainSettings, RECIPE)
        bench = read_bench(options.nli, options.sts, usual, limit=options.pairs)
        if options.step_matched and not usual.steps:
            usual = replace(usual, steps=math.ceil(usual.epochs * len(bench.pairs) / usual.batch_pairs))
        results = measured_cells(
            table_cells(bench, usual, options),
            options,
            {**settings_values(usual), "pairs": len(bench.pairs), "selection_pairs": len(bench.dev.scores)},
            line=_line,
        )
    conditions = nli_conditions(usual, bench.pairs, reduced=options.pairs is not None)
    report = f"{conditions}\n\n{nli_table(results)}"
    (options.output / "table.md").write_text(report, encoding="utf-8")
    picture, label = options.output / "nli.png", "Spearman x 100, average of seven sets"
    plot(results, picture, value=lambda result: float(result["average"]), label=label)
    say(report)


def _line(result: Result) -> str:
    return (
        f"{result['method']}, {result['share']:.0%} of the labels, seed {result['seed']}: "
        f"average {result['average']:.2f}, {SELECTION_SET} {result['dev']:.2f}"
    )


if __name__ == "__main__":
    main()
