"""Label-efficiency on natural language inference, the paper's Table 1: PAUSE at each share of the labels, on STS.

    python -m training.papers.nli --nli FOLDER --sts FOLDER --model pause-base --output runs/nli
    python -m training.papers.nli ... --model minilm-l6 --pairs 20000 --shares 1 .1 .01 --seeds 1 --budget 60

The NLI folder holds train.tsv.gz (labelled) and unlabeled.tsv.gz; of the labels all but a share are hidden, the
pairs stay. Each cell (method, share, seed) is a run; its best step is chosen on STSb-dev, and what is reported is
Spearman's correlation x 100, pooled, on STS12-16, STSb-test and SICK-R-test. PAUSE learns from all pairs, so its
runs are equally long at every share; cross-entropy learns from the labelled ones, in as many steps with
`--step-matched`, in as many epochs without. Three classes, directed pairs, priors of 1/3.

Finished cells are kept in OUTPUT/cells, models in OUTPUT/runs; after `--budget` minutes no cell is started.

    table.md   mean and standard deviation over the seeds, beside the start, its mean state and [CLS] untrained
    nli.png    the average over the share of labels
    nli.json   all figures
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from training.data.texts import Texts
from training.model.encoder import Encoder
from training.model.pair_model import NoHead, PairModel
from training.options import add_settings, settings_of
from training.papers.cells import (
    Cell,
    Result,
    add_share_options,
    add_table_options,
    facts_of,
    measured_cells,
    start_encoder,
    trained,
)
from training.papers.nli_report import UNTRAINED, as_table, conditions
from training.papers.scored_pairs import StsSelection
from training.papers.share_report import write_report
from training.papers.sts import SETS, StsSet, evaluate_sts, read_sts
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
    """The labelled and the unlabelled pairs; with a `limit`, a random sample of both together.

    Raises:
        InvalidInput: a file cannot be used, or has fewer pairs.
    """
    pairs = read_pairs([_file(folder, "train"), _file(folder, "unlabeled")], classes=CLASSES, directed=True)
    if limit is None:
        return pairs
    if not 0 < limit <= len(pairs):
        raise InvalidInput(f"{limit:,} of {len(pairs):,} pairs cannot be drawn; give --pairs 1 to {len(pairs)}")
    some = np.random.default_rng(SUBSET_SEED).choice(len(pairs), limit, replace=False)
    return pairs.subset(np.sort(some)).with_own_texts()


def read_bench(nli: Path, sts: Path, settings: TrainSettings, *, limit: int | None) -> Bench:
    """All data of a table.

    Raises:
        InvalidInput: as `read_nli`, or a set of STS is missing.
    """
    pairs = read_nli(nli, limit=limit)
    dev, sets = read_sts(sts, SELECTION_SET), tuple(read_sts(sts, name) for name in SETS)
    texts = Texts(pairs.texts, settings.source, max_tokens=settings.max_tokens)
    for each in (dev, *sets):
        texts.numbers([*each.left, *each.right])  # known from the start, so that states of frozen layers are kept, too
    return Bench(pairs=pairs, dev=dev, sets=sets, texts=texts)


def step_matched(settings: TrainSettings, pairs: Pairs) -> TrainSettings:
    """The settings with the steps that a run over all pairs takes."""
    return replace(settings, steps=settings.steps or math.ceil(settings.epochs * len(pairs) / settings.batch_pairs))


def run_cell(bench: Bench, settings: TrainSettings, *, output: Path) -> Result:
    """Trains one cell and measures it."""
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


def measured(encoder: Encoder, bench: Bench) -> dict[str, Any]:
    """Spearman x 100 of each set, and their average."""
    report = evaluate_sts(encoder, bench.sets)
    return {"sts": {name: quality.pooled for name, quality in report.sets.items()}, "average": report.average}


class FirstToken(PairModel):
    """The state of [CLS] as a text's vector, for comparison; not trained."""

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Float32 `[r, d]`."""
        return self.states(input_ids, attention_mask)[:, 0].float()

    def encode_from_lower_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """The same from `lower_states`."""
        return self.upper_states(lower_states, attention_mask)[:, 0].float()


def untrained(bench: Bench, settings: TrainSettings, *, first_token: bool) -> Result:
    """The model that all cells start from, by the mean of its tokens' states or by the first token's."""
    encoder = start_encoder(settings, bench.texts)
    if first_token:
        model = FirstToken(encoder.model.transformer, NoHead(), frozen_layers=settings.frozen_layers)
        encoder = Encoder(model, bench.texts, settings, device=encoder.device)
    encoder.cache_lower_states(say)  # all cells use them
    dev = StsSelection(bench.dev)(encoder)["spearman"]
    method = f"{UNTRAINED}, {'[CLS]' if first_token else 'mean'}"
    return {"method": method, "share": 0.0, "seed": 0, "labelled": 0, "dev": dev, **measured(encoder, bench)}


def table_cells(bench: Bench, usual: TrainSettings, options: argparse.Namespace) -> list[Cell]:
    """All cells, a seed at a time, so that a table is complete as early as possible."""

    def untrained_cell(name: str, *, first_token: bool) -> Cell:
        return Cell(name=name, measure=lambda: untrained(bench, usual, first_token=first_token))

    def trained_cell(method: str, share: float, seed: int) -> Cell:
        name = f"{method.replace('+', '_')}-{share:g}-{seed}"
        settings = replace(usual, method=method, label_share=share, seed=seed)
        return Cell(name=name, measure=lambda: run_cell(bench, settings, output=options.output / "runs" / name))

    return [
        untrained_cell("untrained-mean", first_token=False),
        untrained_cell("untrained-cls", first_token=True),
        *(
            trained_cell(method, share, seed)
            for seed in options.seeds
            for share in options.shares
            for method in options.methods
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the cells and writes the report."""
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
        usual = step_matched(usual, bench.pairs) if options.step_matched else usual
        results = measured_cells(
            table_cells(bench, usual, options),
            options,
            {**settings_values(usual), "pairs": len(bench.pairs)},
            line=_line,
        )
    stated = conditions(usual, bench.pairs, reduced=options.pairs is not None)
    say(
        write_report(
            results,
            options.output,
            f"{stated}\n\n{as_table(results)}",
            name="nli",
            values={"conditions": stated, "results": results},
            figure=lambda result: float(result["average"]),
            label="Spearman x 100, average of seven sets",
        )
    )


def _line(result: Result) -> str:
    return (
        f"{result['method']}, {result['share']:.0%} of the labels, seed {result['seed']}: "
        f"average {result['average']:.2f}, {SELECTION_SET} {result['dev']:.2f}"
    )


def _file(folder: Path, name: str) -> Path:
    found = [path for path in (folder / f"{name}.tsv.gz", folder / f"{name}.tsv") if path.is_file()]
    if not found:
        raise InvalidInput(f"there is no {name}.tsv.gz in {folder}; name the folder that holds the NLI pairs")
    return found[0]


if __name__ == "__main__":
    main()
