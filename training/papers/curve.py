"""The label-efficiency curve: every method at every share of the labels, from one command.

    python -m training.papers.curve --judged FOLDER --companies FILE --output runs/curve
    python -m training.papers.curve ... --methods cross-entropy pause --shares 1 .1 .01 --seeds 1 2 3 --budget 60

FOLDER holds train.tsv.gz and dev.tsv.gz (training.evaluate.judged). Every cell (method, share, seed)
is a training run of the same number of steps on the same pairs, of which the others' labels are
hidden; its best step and threshold are chosen on anchors cut from train, and what is reported is
measured on dev. Finished cells are kept in OUTPUT/cells, so the command continues where it stopped; one
seed is finished for all cells before the next begins, and after `--budget` minutes no further cell is
started. Changes of a method stand behind a "/": `listwise/industry` and `listwise/teacher`
name where the unlabelled pairs' gains come from, that is whether both companies have the same value of
`--weak-field`, or a cross-encoder that learnt from the same labels (training.papers.cross_encoder); the others are
settings (CHANGES), so that ablations such as `pause/half/constant` stand in the same table. It writes

    table.md   mean and standard deviation over the seeds, and paired differences to the first method
    curve.png  nDCG@10 over the share of labels
    curve.json all figures, with the values of each anchor
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from similarity.generations.judgements import Judgements, read_judgements
from similarity.text import DEFAULT_SETTINGS
from training.config import TrainSettings, settings_values
from training.console import quiet, refusing, say
from training.data.pairs import Pairs, read_pairs
from training.data.selection import Selection, TrainingData
from training.data.splits import SELECTION_ANCHORS, hide_labels, refuse_leakage, split_by_anchor
from training.data.texts import Texts
from training.distillation.weak_labels import read_values
from training.evaluate.judged import Texts as CompanyTexts
from training.evaluate.judged import judged_split, judged_texts
from training.evaluate.pairs import PairQuality, best_threshold, cosine_quality, head_quality
from training.evaluate.ranking import encode_anchors, measure, pooled
from training.losses.objectives import PAIR_LOSSES
from training.model.encoder import Encoder
from training.options import add_settings, settings_of
from training.papers import cells
from training.papers.cross_encoder import TeacherSettings, with_expected_gains
from training.papers.curve_report import UNTRAINED, as_table
from training.papers.share_report import write_report
from training.papers.weak_labels import with_shared_values
from training.run.task import PairTask

METHODS = (
    "cross-entropy",
    "pause",
    "listwise",
    "in-batch",
    "cross-entropy+supervised-contrastive",
    "cross-entropy+listwise",
    "pause+listwise",
)
SHARES = (1.0, 0.1, 0.05, 0.02, 0.01)
SEEDS = (1, 2, 3)
SOURCES = ("industry", "teacher")
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "half": {"labelled_share": 0.5},  # half of each batch is labelled, however few labels there are
    "constant": {"alpha": 0.0},  # no annealing
    "quick-head": {"head_learning_rate": 1.5e-3},
    "alpha-2": {"alpha": 2.0},
    "alpha-4": {"alpha": 4.0},
    "clamped": {"correction": "clamped"},
    "uncorrected": {"correction": "none"},
}
TEACHER_PAIRS = 3_000  # that a teacher learns from at least, passes counted
SPLIT_SEED = 0  # the selection anchors are the same in all cells

# Settings for a laptop: the top two layers, their input computed once, texts cut to 64 tokens.
LAPTOP: Mapping[str, Any] = {
    "model": "minilm-l6",
    "frozen_layers": 4,
    "max_tokens": 64,
    "steps": 100,
    "batch_pairs": 160,
    "evaluate_every": 20,
    "checkpoint_every": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The data of all cells: pairs to train on, selection, and the judgements for the measures.

    `industry_of` holds the value of the weak field of each company that has one.
    """

    train: Pairs
    selection: Selection
    judged: Judgements
    texts_of: CompanyTexts
    texts: Texts
    industry_of: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One training run. `method` is a loss, and behind it what changes it: a source of gains, settings."""

    method: str
    share: float
    seed: int

    @property
    def changes(self) -> list[str]:
        """The changes behind the loss."""
        return self.method.split("/")[1:]

    @property
    def source(self) -> str:
        """Where the unlabelled pairs' gains come from; empty where they have none."""
        return next((change for change in self.changes if change in SOURCES), "")

    @property
    def possible(self) -> bool:
        """Without unlabelled pairs no batch can be half labelled."""
        return not ("half" in self.changes and self.share == 1)

    def settings(self, usual: TrainSettings) -> TrainSettings:
        """The usual settings, with what this cell changes."""
        changed: dict[str, Any] = {}
        for change in self.changes:
            changed |= CHANGES.get(change, {})
        return replace(usual, method=self.method.partition("/")[0], label_share=self.share, seed=self.seed, **changed)

    @property
    def name(self) -> str:
        """That of its files."""
        return f"{self.method.replace('+', '_').replace('/', '_by_')}-{self.share:g}-{self.seed}"


def load_bench(judged: Path, companies: Path, settings: TrainSettings, *, selection: int, weak_field: str) -> Bench:
    """Reads the judged pairs, refuses leakage between train and dev, cuts off the selection anchors.

    Raises:
        InvalidInput: a file cannot be used, or train and dev share anchors.
    """
    pairs = read_pairs(judged_split(judged, "train"), companies=companies)
    refuse_leakage(pairs, read_pairs(judged_split(judged, "dev"), companies=companies))
    train, kept = split_by_anchor(pairs, selection=selection, seed=SPLIT_SEED)
    dev = read_judgements(judged_split(judged, "dev"))
    texts_of = judged_texts(companies, dev, DEFAULT_SETTINGS)
    # Dev's texts stand behind those of the pairs, so that frozen layers see them once too.
    texts = Texts([*pairs.texts, *texts_of.values()], settings.source, max_tokens=settings.max_tokens)
    industry_of = read_values(companies, weak_field) if weak_field else {}
    return Bench(
        train=train,
        selection=Selection(kept),
        judged=dev,
        texts_of=texts_of,
        texts=texts,
        industry_of=industry_of,
    )


def run_cell(cell: Cell, bench: Bench, usual: TrainSettings, *, output: Path) -> dict[str, Any]:
    """Trains one cell and measures it on dev."""
    settings = cell.settings(usual)
    hidden = hide_labels(bench.train, share=cell.share, seed=cell.seed)
    data = TrainingData(pairs=with_gains(hidden, cell, bench, settings), texts=bench.texts, select=bench.selection)
    fitted = cells.trained(settings, PairTask(settings, data), output=output)
    figures = measured(fitted.encoder, bench, head=any(name in cell.method for name in PAIR_LOSSES))
    return {
        **asdict(cell),
        "labelled": int(hidden.labelled.sum()),
        **cells.facts_of(fitted),
        "selection": dict(fitted.best),
        **figures,
    }


def with_gains(pairs: Pairs, cell: Cell, bench: Bench, settings: TrainSettings) -> Pairs:
    """The pairs, their unlabelled ones with gains from the cell's source, if it names one."""
    if cell.source == "industry":
        return with_shared_values(pairs, bench.industry_of)
    if cell.source == "teacher":
        teacher = TeacherSettings(
            model=settings.source,
            max_tokens=settings.max_tokens,
            precision=settings.precision,
            seed=cell.seed,
            # As many steps at every share, at least four passes.
            epochs=max(4, round(TEACHER_PAIRS / int(pairs.labelled.sum()))),
        )
        return with_expected_gains(pairs, teacher, device=cells.this_device(), log=quiet)
    return pairs


def measured(encoder: Encoder, bench: Bench, *, head: bool) -> dict[str, Any]:
    """Dev figures: ranking by cosine with each anchor's nDCG@10, and pair decisions by cosine and by a trained head."""
    ranked = encode_anchors(encoder, bench.judged, bench.texts_of)
    ranking = measure(ranked)
    cosines, positive = pooled(ranked)
    threshold = best_threshold(bench.selection.cosines(encoder), bench.selection.positive)
    figures = {
        "dev": ranking.means(),
        "ndcg10_of_anchors": [round(value, 6) for value in ranking.ndcg.tolist()],
        "by_cosine": _shares(cosine_quality(cosines, positive, threshold)),
    }
    if head:
        figures["by_head"] = _shares(head_decisions(encoder, bench, positive))
    return figures


def head_decisions(encoder: Encoder, bench: Bench, positive: NDArray[np.bool_]) -> PairQuality:
    """The pair head's decisions on dev's pairs, in both orders. Its first class is the competitor."""
    anchors = [anchor for anchor, grades in bench.judged.items() for _ in grades]
    candidates = [candidate for grades in bench.judged.values() for candidate in grades]
    left, right = (encoder.vectors([bench.texts_of[company] for company in side]) for side in (anchors, candidates))
    head = encoder.model.head
    with torch.no_grad():
        logits, swapped = (head(*sides).float().cpu().numpy() for sides in ((left, right), (right, left)))
    return head_quality(logits, swapped, positive, positive_class=0)


def untrained(bench: Bench, usual: TrainSettings) -> dict[str, Any]:
    """The figures of the model that all cells start from."""
    encoder = cells.start_encoder(usual, bench.texts, classes=2)
    encoder.cache_lower_states(quiet)
    return {"method": UNTRAINED, "share": 0.0, "seed": 0, **measured(encoder, bench, head=False)}


def table_cells(chosen: Sequence[Cell], bench: Bench, usual: TrainSettings, *, runs: Path) -> list[cells.Cell]:
    """The cell of the untrained model, then the others."""

    def measuring(cell: Cell) -> cells.Cell:
        return cells.Cell(name=cell.name, measure=lambda: run_cell(cell, bench, usual, output=runs / cell.name))

    return [cells.Cell(name=UNTRAINED, measure=lambda: untrained(bench, usual)), *map(measuring, chosen)]


def cells_of(methods: Sequence[str], shares: Sequence[float], seeds: Sequence[int]) -> list[Cell]:
    """All cells, a seed at a time, so that a table is whole as early as can be."""
    chosen = [Cell(method=method, share=share, seed=seed) for seed in seeds for share in shares for method in methods]
    return [cell for cell in chosen if cell.possible]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the cells and writes the report."""
    parser = argparse.ArgumentParser(description="The label-efficiency curve of training methods.")
    parser.add_argument("--judged", type=Path, required=True, help="folder with train.tsv.gz and dev.tsv.gz")
    parser.add_argument("--companies", type=Path, required=True, help="JSONL file of the judged companies")
    cells.add_table_options(parser, seeds=SEEDS)
    cells.add_share_options(parser, methods=METHODS, shares=SHARES)
    parser.add_argument("--weak-field", default="industry_fine", help="of the companies, for METHOD/industry")
    parser.add_argument("--selection", type=int, default=SELECTION_ANCHORS, help="anchors of train held out")
    add_settings(parser, without=("method", "label_share", "seed"))
    options = parser.parse_args(arguments)
    chosen = cells_of(options.methods, options.shares, options.seeds)
    known = (*SOURCES, *CHANGES)
    unknown = {change for cell in chosen for change in cell.changes} - set(known)
    if unknown:
        parser.error(f"nothing is called {unknown.pop()!r} behind a '/'; choose of {', '.join(known)}")
    weak_field = options.weak_field if any(cell.source == "industry" for cell in chosen) else ""
    with refusing():
        usual = settings_of(options, TrainSettings, LAPTOP)
        bench = load_bench(options.judged, options.companies, usual, selection=options.selection, weak_field=weak_field)
        results = cells.measured_cells(
            table_cells(chosen, bench, usual, runs=options.output / "runs"),
            options,
            {**settings_values(usual), "selection": options.selection},
            line=_line,
        )
    say(
        write_report(
            results,
            options.output,
            as_table(results, reference=options.methods[0]),
            name="curve",
            values=results,
            figure=lambda result: float(result["dev"]["ndcg10"]),
            label="nDCG@10 on dev",
        )
    )


def _line(result: cells.Result) -> str:
    return (
        f"{result['method']}, {result['share']:.0%} of the labels, seed {result['seed']}: "
        f"nDCG@10 {result['dev']['ndcg10']:.4f}, AUC {result['dev']['auc']:.4f}"
    )


def _shares(quality: PairQuality) -> dict[str, float]:
    return {name: getattr(quality, name) for name in ("accuracy", "precision", "recall", "f1", "auc")}


if __name__ == "__main__":
    main()
