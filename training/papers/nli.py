"""PAUSE trained on natural language inference (NLI) with each share of the labels, and measured on STS.

It is Table 1 of Cao et al., PAUSE: Positive and Annealed Unlabeled Sentence Embedding, EMNLP 2021.

    python -m training.papers.nli --nli FOLDER --sts FOLDER --model pause-base --output runs/nli
    python -m training.papers.nli ... --model minilm-l6 --pairs 20000 --shares 1 .1 .01 --seeds 1 --budget 60

The NLI folder contains train.tsv.gz (labelled) and unlabeled.tsv.gz. All labels but a share are hidden; the pairs stay
as unlabelled pairs. Each cell (method, share, seed) is a training run; two more cells are the untrained model, with
the mean of its token states and with [CLS] as the vector. The best step of a run is chosen on the pairs of STSb-dev
that are in no reported set. The reported figure is Spearman's correlation x 100, pooled, on STS12-16, STSb-test and
SICK-R-test. PAUSE is trained on all pairs, so its runs have the same length at every share. Cross-entropy is trained on
the labelled pairs: for the same number of steps with `--step-matched`, otherwise for the same number of epochs. The
data have three classes and directed pairs; the priors are 1/3.

Finished cells are stored in OUTPUT/cells, models in OUTPUT/runs; after `--budget` minutes no cell is started.

    table.md   average and standard deviation over the seeds; the untrained model
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
class CellData:
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


def read_cell_data(nli: Path, sts: Path, settings: TrainSettings, *, limit: int | None) -> CellData:
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
    return CellData(pairs=pairs, dev=dev, sets=sets, texts=texts)


def run_cell(cell_data: CellData, settings: TrainSettings, *, output: Path) -> Result:
    """Train one cell and measure it."""
    pairs = hide_labels(cell_data.pairs, share=settings.label_share, seed=settings.seed)
    data = TrainingData(pairs=pairs, texts=cell_data.texts, select=StsSelection(cell_data.dev))
    fitted = trained(settings, PairTask(settings, data), output=output)
    return {
        "method": settings.method,
        "share": settings.label_share,
        "seed": settings.seed,
        "labelled": int(pairs.labelled.sum()),
        **facts_of(fitted),
        "dev": fitted.best["spearman"],
        **measured(fitted.encoder, cell_data),
    }


def measured(encoder: Encoder, cell_data: CellData) -> Result:
    """Return Spearman x 100 of each set, and their average."""
    report = evaluate_sts(encoder, cell_data.sets)
    return {"sts": {name: quality.pooled for name, quality in report.sets.items()}, "average": report.average}


class FirstToken(PairModel):
    """Model whose vector of a text is the state of [CLS]; it is not trained, only compared with."""

    def pooled(self, states: Tensor, _attention_mask: Tensor) -> Tensor:
        """Return the states of the first tokens, float32 `[r, d]`."""
        return states[:, 0].float()


def untrained(cell_data: CellData, settings: TrainSettings, *, first_token: bool) -> Result:
    """Return the figures of the model that all cells start from, with the mean of token states or the first token's."""
    encoder = start_encoder(settings, cell_data.texts)
    if first_token:
        model = FirstToken(encoder.model.transformer, NoHead(), frozen_layers=settings.frozen_layers)
        encoder = Encoder(model, cell_data.texts, settings, device=encoder.device)
    encoder.cache_lower_states(say)  # all cells use them
    dev = StsSelection(cell_data.dev)(encoder)["spearman"]
    method = f"{UNTRAINED}, {'[CLS]' if first_token else 'mean'}"
    return {"method": method, "share": 0.0, "seed": 0, "labelled": 0, "dev": dev, **measured(encoder, cell_data)}


def table_cells(cell_data: CellData, shared_settings: TrainSettings, options: argparse.Namespace) -> Cells:
    """Return all cells, seed by seed, so that a table without gaps exists as early as possible."""
    cells = {
        "untrained-mean": partial(untrained, cell_data, shared_settings, first_token=False),
        "untrained-cls": partial(untrained, cell_data, shared_settings, first_token=True),
    }
    for seed in options.seeds:
        for share in options.shares:
            for method in options.methods:
                name = f"{method.replace('+', '_')}-{share:g}-{seed}"
                settings = replace(shared_settings, method=method, label_share=share, seed=seed)
                cells[name] = partial(run_cell, cell_data, settings, output=options.output / "runs" / name)
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
        shared_settings = settings_of(options, TrainSettings, RECIPE)
        cell_data = read_cell_data(options.nli, options.sts, shared_settings, limit=options.pairs)
        if options.step_matched and not shared_settings.steps:
            steps = math.ceil(shared_settings.epochs * len(cell_data.pairs) / shared_settings.batch_pairs)
            shared_settings = replace(shared_settings, steps=steps)
        results = measured_cells(
            table_cells(cell_data, shared_settings, options),
            options,
            {
                **settings_values(shared_settings),
                "pairs": len(cell_data.pairs),
                "selection_pairs": len(cell_data.dev.scores),
            },
            line=_line,
        )
    conditions = nli_conditions(shared_settings, cell_data.pairs, reduced=options.pairs is not None)
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
