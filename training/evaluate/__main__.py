"""Evaluates a bundle: prints tables and writes a report.

    python -m training.evaluate --bundle models/<id> --judged FOLDER --companies FILE --output report.json
    python -m training.evaluate ... --index similarity.db       (takes the corpus's vectors from an index)
    python -m training.evaluate ... --against other.json        (differences to another report, anchor by anchor)

The judged folder contains dev.tsv.gz, the judgements to evaluate on, and train.tsv.gz. The threshold and the
calibration are fitted on the selection anchors: the anchors that `python -m training.train` holds out of train.tsv.gz
with the same `--seed`. For an encoder that was trained otherwise, pass them as a file (`--selection`). Tasks on the
whole corpus encode every company, or read the vectors from `--index`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.judgements import Judgements, read_judgements
from training.config import SEED
from training.console import refusing
from training.data.splits import SELECTION_ANCHORS
from training.evaluate import tasks
from training.evaluate.calibration import HITS_PER_ANCHOR
from training.evaluate.corpus import read_corpus
from training.evaluate.judged import judged_split, judged_texts
from training.evaluate.report import compare, interval_text, read_report, table, write_report

CORPUS_TASKS = ("corpus", "calibration")
TASKS = ("ranking", "pairs", *CORPUS_TASKS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the tasks, print each table, and write the report."""
    options = _parser().parse_args(arguments)
    with refusing():
        _run(options)


def _run(options: argparse.Namespace) -> None:
    against = read_report(options.against) if options.against else None
    encoder = TextEncoder(ModelBundle.load(options.bundle))
    found = _judged_figures(options, encoder, options.tasks)
    report: dict[str, object] = {
        "encoder_id": encoder.encoder_id,
        "bundle_id": encoder.bundle.bundle_id,
        "seed": options.seed,
        **{name: figures.values for name, figures in found.items()},
        "anchor_values": {name: values for figures in found.values() for name, values in figures.anchors.items()},
    }
    if against is not None:
        differences = compare(report, against, seed=options.seed)
        report["differences"] = differences
        rows = [[name, interval_text(each), each.above, each.anchors] for name, each in differences.items()]
        _heading(f"differences to {options.against}")
        sys.stdout.write(table(["figure", "new - old", "share above 0", "anchors"], rows))
    write_report(report, options.output)
    sys.stdout.write(f"\nreport: {options.output}\n")


def _judged_figures(
    options: argparse.Namespace, encoder: TextEncoder, chosen: Sequence[str]
) -> dict[str, tasks.Figures]:
    """Run the `chosen` tasks, print their tables, and return their figures by task."""
    dev = read_judgements(judged_split(options.judged, "dev"))
    selection, seen = _selection(options, dev, needed="pairs" in chosen or "calibration" in chosen)
    both = {**dev, **selection}
    found: dict[str, tasks.Figures] = {}
    if "ranking" in chosen or "pairs" in chosen:
        prepared = judged_texts(options.companies, both, encoder.text_settings)
        if "ranking" in chosen:
            plain = judged_texts(options.companies, dev, None)
            figures = tasks.ranking_figures(
                encoder.encode, dev, prepared=prepared, plain=plain, seen=seen, seed=options.seed
            )
            found["ranking"] = shown("ranking", figures)
        if "pairs" in chosen:
            found["pairs"] = shown(
                "pairs", tasks.pair_figures(encoder.encode, dev, selection=selection, texts=prepared)
            )
    if any(task in chosen for task in CORPUS_TASKS):
        progress = encoding_progress("companies")
        corpus = read_corpus(encoder, companies=options.companies, index=options.index, progress=progress)
        if "corpus" in chosen:
            found["corpus"] = shown("corpus", tasks.corpus_figures(corpus, dev, seed=options.seed))
        if "calibration" in chosen:
            figures, qualities = tasks.calibration_figures(
                corpus, dev, selection=selection, k=options.served, seed=options.seed
            )
            found["calibration"] = shown("calibration", figures)
            if options.plots:
                from training.evaluate.plots import reliability_plot

                tables = {name: quality.table for name, quality in qualities.items()}
                reliability_plot(tables, options.plots / "reliability.png", title="Judged hits")
    return found


def _selection(options: argparse.Namespace, dev: Judgements, *, needed: bool) -> tuple[Judgements, frozenset[str]]:
    """Return the judgements of the selection anchors, and the companies that training may have seen."""
    path = judged_split(options.judged, "train")
    train = read_judgements(path) if path.exists() else {}
    seen = frozenset(company for anchor, grades in train.items() for company in (anchor, *grades))
    if options.selection:
        selection: Judgements = read_judgements(options.selection)
    elif not needed:
        selection = {}
    elif train:
        selection = tasks.held_out_judgements(path, seed=options.seed, anchors=options.selection_anchors)
    else:
        raise InvalidInput(f"{path}, which selection anchors are taken from, does not exist; pass them as --selection")
    shared = sorted(set(selection) & set(dev))
    if shared:
        raise InvalidInput(
            f"{len(shared)} selection anchors are among those evaluated, such as {shared[0]}; remove them"
        )
    return selection, seen


def shown(name: str, figures: tasks.Figures) -> tasks.Figures:
    """Print the figures and return them."""
    _heading(name)
    sys.stdout.write(figures.table)
    sys.stdout.flush()
    return figures


def _heading(title: str) -> None:
    sys.stdout.write(f"\n{title}\n")


def encoding_progress(what: str) -> Callable[[int, int], None]:
    """Return a Progress that writes to standard error."""
    return lambda done, total: note(f"{done:,} of {total:,} {what} encoded")


def note(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description="Evaluate a bundle.")
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle")
    add("--output", type=Path, required=True, help="JSON file to write the report to")
    add("--judged", type=Path, required=True, help="folder with dev.tsv.gz and train.tsv.gz")
    add("--companies", type=Path, required=True, help="JSONL file of all companies")
    add("--index", help="index that already contains this bundle's vectors of the companies (a file or a URL)")
    add("--selection", type=Path, help="judgements of the anchors held out of training (default: taken from train)")
    add("--selection-anchors", type=int, default=SELECTION_ANCHORS, help="number of held-out anchors (default: 100)")
    add("--served", type=int, default=HITS_PER_ANCHOR, help=f"hits per anchor (default: {HITS_PER_ANCHOR})")
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    add("--against", type=Path, help="report of another bundle to compare with, anchor by anchor")
    add("--plots", type=Path, help="folder for figures")
    add(
        "--seed", type=int, default=SEED, help=f"seed of the training run, and of folds and resamples (default: {SEED})"
    )
    return parser


if __name__ == "__main__":
    main()
