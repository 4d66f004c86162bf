"""The label-efficiency curve: every method at every share of the labels, from one command.

    python -m training.papers.curve --judged FOLDER --companies FILE --output runs/curve
    python -m training.papers.curve ... --methods cross-entropy pause --shares 1 .1 .01 --seeds 1 2 3 --budget 60

FOLDER contains train.tsv.gz and dev.tsv.gz. Every cell (method, share, seed) is a training run of the same number of
steps on the same pairs; all labels but a share are hidden. Its best step and threshold are chosen on anchors held out
from train, and its figures are measured on dev. Finished cells are stored in OUTPUT/cells, and the command continues
where it stopped. All cells of a seed are measured before the next seed; after `--budget` minutes no cell is started.

Changes of a method follow a "/": `pause/half/constant` changes settings (CHANGES), for ablations; `listwise/teacher`
gives unlabelled pairs the gains that a cross-encoder predicts, which is trained on the same labels
(training.papers.cross_encoder). The command writes

    table.md   mean and standard deviation over the seeds, and paired differences to the first method
    curve.png  nDCG@10 by share of labels
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from similarity.generations.relevance_labels import RelevanceLabels, read_relevance_labels
from similarity.text import DEFAULT_SETTINGS
from training.config import TrainSettings, settings_values
from training.console import quiet, refusing, say
from training.data.pairs import Pairs, read_pairs
from training.data.selection import Selection, TrainingData
from training.data.splits import SELECTION_ANCHORS, hide_labels, refuse_leakage, split_by_anchor
from training.data.texts import Texts
from training.evaluate.encoding import Texts as CompanyTexts
from training.evaluate.judged import judged_split, judged_texts
from training.evaluate.pairs import PairQuality, best_threshold, cosine_quality, head_quality
from training.evaluate.ranking import encode_anchors, measure, pooled
from training.losses.methods import PAIR_LOSSES
from training.model.encoder import Encoder
from training.options import add_settings, settings_of
from training.papers.cells import (
    Cells,
    Result,
    add_share_options,
    add_table_options,
    facts_of,
    measured_cells,
    start_encoder,
    this_device,
    trained,
)
from training.papers.cross_encoder import Teacher
from training.papers.reports import UNTRAINED, curve_table, plot
from training.run.task import PairTask

METHODS = (
    "cross-entropy",
    "pause",
    "punce",
    "listwise",
    "in-batch",
    "cross-entropy+supervised-contrastive",
    "cross-entropy+listwise",
    "pause+listwise",
)
SHARES = (1.0, 0.1, 0.05, 0.02, 0.01)
SEEDS = (1, 2, 3)
TEACHER = "teacher"  # gains of unlabelled pairs by a cross-encoder
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "half": {"labelled_share": 0.5},  # half of each batch is labelled, however few labels there are
    "constant": {"alpha": 0.0},  # no annealing
    "quick-head": {"head_learning_rate": 1.5e-3},
    "alpha-2": {"alpha": 2.0},
    "alpha-4": {"alpha": 4.0},
    "clamped": {"correction": "clamped"},
    "uncorrected": {"correction": "none"},
}
TEACHER_PAIRS = 3_000  # pairs that a teacher is trained on, counted once per epoch
SPLIT_SEED = 0  # the selection anchors are the same in all cells

# Settings for a laptop: only the top two layers are trained, on cached lower states; texts of at most 64 tokens.
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
class CellData:
    """The data of all cells: pairs to train on, checkpoint selection, and the judged dev pairs with their texts."""

    train: Pairs
    selection: Selection
    judged: RelevanceLabels
    texts_of: CompanyTexts
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One training run. `method` is the name of a loss, followed by its changes."""

    method: str
    share: float
    seed: int

    @property
    def changes(self) -> list[str]:
        """The changes of the method."""
        return self.method.split("/")[1:]

    @property
    def possible(self) -> bool:
        """Whether the cell can be trained: if all pairs are labelled, no batch can be half labelled."""
        return not ("half" in self.changes and self.share == 1)

    def settings(self, shared_settings: TrainSettings) -> TrainSettings:
        """Return the shared settings with the changes of this cell."""
        changed: dict[str, Any] = {}
        for change in self.changes:
            changed |= CHANGES.get(change, {})
        method = self.method.partition("/")[0]
        return replace(shared_settings, method=method, label_share=self.share, seed=self.seed, **changed)

    @property
    def name(self) -> str:
        """The name of the cell's files."""
        return f"{self.method.replace('+', '_').replace('/', '_by_')}-{self.share:g}-{self.seed}"


def read_cell_data(judged: Path, companies: Path, settings: TrainSettings, *, selection: int) -> CellData:
    """Read the judged pairs, refuse leakage between train and dev, and hold out the selection anchors.

    Raises:
        InvalidInput: a file is invalid, or train and dev share anchors.
    """
    pairs = read_pairs(judged_split(judged, "train"), companies=companies)
    refuse_leakage(pairs, read_pairs(judged_split(judged, "dev"), companies=companies))
    train, kept = split_by_anchor(pairs, selection=selection, seed=SPLIT_SEED)
    dev = read_relevance_labels(judged_split(judged, "dev"))
    texts_of = judged_texts(companies, dev, DEFAULT_SETTINGS)
    # The texts of dev follow those of the pairs, so that the states of frozen layers are cached for both.
    texts = Texts([*pairs.texts, *texts_of.values()], settings.source, max_tokens=settings.max_tokens)
    return CellData(train=train, selection=Selection(kept), judged=dev, texts_of=texts_of, texts=texts)


def run_cell(cell: Cell, cell_data: CellData, shared_settings: TrainSettings, *, output: Path) -> Result:
    """Train one cell and measure it on dev."""
    settings = cell.settings(shared_settings)
    hidden = hide_labels(cell_data.train, share=cell.share, seed=cell.seed)
    pairs = with_teacher_gains(hidden, settings) if TEACHER in cell.changes else hidden
    data = TrainingData(pairs=pairs, texts=cell_data.texts, select=cell_data.selection)
    fitted = trained(settings, PairTask(settings, data), output=output / cell.name)
    return {
        **asdict(cell),
        "labelled": int(hidden.labelled.sum()),
        **facts_of(fitted),
        "selection": dict(fitted.best),
        **measured(fitted.encoder, cell_data, head=any(name in cell.method for name in PAIR_LOSSES)),
    }


def with_teacher_gains(pairs: Pairs, settings: TrainSettings) -> Pairs:
    """Return the pairs; unlabelled ones have the gains that a cross-encoder trained on the others predicts."""
    teacher = Teacher(pairs, settings, device=this_device())
    # The same number of steps at every share, but at least four epochs.
    teacher.learn(epochs=max(4, round(TEACHER_PAIRS / int(pairs.labelled.sum()))), log=quiet)
    rows = np.flatnonzero(~pairs.labelled)
    return pairs.with_gains(rows, teacher.gains(rows))


def measured(encoder: Encoder, cell_data: CellData, *, head: bool) -> Result:
    """Return the figures on dev: ranking by cosine, nDCG@10 by anchor, decisions by cosine and by a trained head."""
    ranked = encode_anchors(encoder, cell_data.judged, cell_data.texts_of)
    ranking = measure(ranked)
    cosines, positive = pooled(ranked)
    threshold = best_threshold(cell_data.selection.cosines(encoder), cell_data.selection.positive)
    figures = {
        "dev": ranking.means(),
        "ndcg10_of_anchors": [round(value, 6) for value in ranking.ndcg.tolist()],
        "by_cosine": _shares(cosine_quality(cosines, positive, threshold)),
    }
    if head:
        figures["by_head"] = _shares(head_decisions(encoder, cell_data, positive))
    return figures


def head_decisions(encoder: Encoder, cell_data: CellData, positive: NDArray[np.bool_]) -> PairQuality:
    """Return the quality of the pair head's decisions on the pairs of dev, averaged over both orders."""
    anchors = [anchor for anchor, grades in cell_data.judged.items() for _ in grades]
    candidates = [candidate for grades in cell_data.judged.values() for candidate in grades]
    left, right = (encoder.vectors([cell_data.texts_of[company] for company in side]) for side in (anchors, candidates))
    head = encoder.model.head
    with torch.no_grad():
        logits, swapped = (head(*sides).float().cpu().numpy() for sides in ((left, right), (right, left)))
    return head_quality(logits, swapped, positive)


def untrained(cell_data: CellData, shared_settings: TrainSettings) -> Result:
    """Return the figures of the model that all cells start from."""
    encoder = start_encoder(shared_settings, cell_data.texts, classes=2)
    encoder.cache_lower_states(quiet)
    return {"method": UNTRAINED, "share": 0.0, "seed": 0, **measured(encoder, cell_data, head=False)}


def cells_of(methods: Sequence[str], shares: Sequence[float], seeds: Sequence[int]) -> list[Cell]:
    """Return all cells, seed by seed, so that a table without gaps exists as early as possible."""
    chosen = [Cell(method=method, share=share, seed=seed) for seed in seeds for share in shares for method in methods]
    return [cell for cell in chosen if cell.possible]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the cells and write the report."""
    parser = argparse.ArgumentParser(description="The label-efficiency curve of training methods.")
    parser.add_argument("--judged", type=Path, required=True, help="folder with train.tsv.gz and dev.tsv.gz")
    parser.add_argument("--companies", type=Path, required=True, help="JSONL file of the judged companies")
    add_table_options(parser, seeds=SEEDS)
    add_share_options(parser, methods=METHODS, shares=SHARES)
    parser.add_argument("--selection", type=int, default=SELECTION_ANCHORS, help="held-out anchors of train")
    # No --epochs: all cells take the same number of steps.
    add_settings(parser, without=("method", "label_share", "seed", "epochs"))
    options = parser.parse_args(arguments)
    chosen = cells_of(options.methods, options.shares, options.seeds)
    known = (TEACHER, *CHANGES)
    unknown = {change for cell in chosen for change in cell.changes} - set(known)
    if unknown:
        parser.error(f"unknown change {unknown.pop()!r} of a method; choose from {', '.join(known)}")
    with refusing():
        shared_settings = settings_of(options, TrainSettings, LAPTOP)
        cell_data = read_cell_data(options.judged, options.companies, shared_settings, selection=options.selection)
        runs = options.output / "runs"
        cells: Cells = {
            UNTRAINED: partial(untrained, cell_data, shared_settings),
            **{each.name: partial(run_cell, each, cell_data, shared_settings, output=runs) for each in chosen},
        }
        results = measured_cells(
            cells,
            options,
            {**settings_values(shared_settings), "selection": options.selection},
            line=_line,
        )
    table = curve_table(results, reference=options.methods[0])
    (options.output / "table.md").write_text(table, encoding="utf-8")
    plot(results, options.output / "curve.png", value=lambda each: float(each["dev"]["ndcg10"]), label="nDCG@10 on dev")
    say(table)


def _line(result: Result) -> str:
    return (
        f"{result['method']}, {result['share']:.0%} of the labels, seed {result['seed']}: "
        f"nDCG@10 {result['dev']['ndcg10']:.4f}, AUC {result['dev']['auc']:.4f}"
    )


def _shares(quality: PairQuality) -> dict[str, float]:
    return {name: getattr(quality, name) for name in ("accuracy", "precision", "recall", "f1", "auc")}


if __name__ == "__main__":
    main()
