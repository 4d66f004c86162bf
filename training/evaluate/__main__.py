"""Evaluates a bundle: prints tables and writes a report.

    python -m training.evaluate --bundle models/<id> --judged FOLDER --companies FILE --output report.json
    python -m training.evaluate ... --index similarity.db       (takes the corpus's vectors from an index)

The judged folder contains dev.tsv.gz, the judgements to evaluate on, and train.tsv.gz. The task `pairs` chooses its
threshold on the selection anchors: those that `python -m training.train` holds out of train.tsv.gz with the same
`--seed`, `--grade-one` and number of anchors. The task `corpus` encodes all companies, or reads their vectors from
`--index`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.generations.gate import labelled_companies
from similarity.generations.relevance_labels import RelevanceLabels, read_relevance_labels
from training.config import SEED
from training.console import refusing, say
from training.data.labels import GradeOne
from training.data.splits import SELECTION_ANCHORS
from training.evaluate import tasks
from training.evaluate.corpus import read_corpus
from training.evaluate.judged import judged_split, judged_texts
from training.evaluate.report import write_report

TASKS = ("ranking", "pairs", "corpus")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the tasks, print each table, and write the report."""
    options = _parser().parse_args(arguments)
    with refusing():
        _run(options)


def _run(options: argparse.Namespace) -> None:
    encoder = TextEncoder(ModelBundle.load(options.bundle))
    found = _judged_figures(options, encoder, options.tasks)
    report: dict[str, object] = {
        "encoder_id": encoder.encoder_id,
        "bundle_id": encoder.bundle.bundle_id,
        "seed": options.seed,
        **{name: figures.values for name, figures in found.items()},
    }
    write_report(report, options.output)
    say(f"report: {options.output}")


def _judged_figures(
    options: argparse.Namespace, encoder: TextEncoder, chosen: Sequence[str]
) -> dict[str, tasks.Figures]:
    """Run the `chosen` tasks, print their tables, and return their figures by task."""
    dev = read_relevance_labels(judged_split(options.judged, "dev"))
    selection, seen = _selection(options, dev, needed="pairs" in chosen)
    found: dict[str, tasks.Figures] = {}
    if "ranking" in chosen or "pairs" in chosen:
        prepared = judged_texts(options.companies, {**dev, **selection}, encoder.text_settings)
    if "ranking" in chosen:
        plain = judged_texts(options.companies, dev, None)
        figures = tasks.ranking_figures(
            encoder.encode, dev, prepared=prepared, plain=plain, seen=seen, seed=options.seed
        )
        found["ranking"] = shown("ranking", figures)
    if "pairs" in chosen:
        figures = tasks.pair_figures(encoder.encode, dev, selection=selection, texts=prepared)
        found["pairs"] = shown("pairs", figures)
    if "corpus" in chosen:
        corpus = read_corpus(encoder, companies=options.companies, index=options.index)
        found["corpus"] = shown("corpus", tasks.corpus_figures(corpus, dev, seed=options.seed))
    return found


def _selection(
    options: argparse.Namespace, dev: RelevanceLabels, *, needed: bool
) -> tuple[RelevanceLabels, frozenset[str]]:
    """Return the judgements of the selection anchors, and the companies that training may have seen."""
    path = judged_split(options.judged, "train")
    seen = frozenset(labelled_companies(read_relevance_labels(path)) if path.exists() else ())
    if not needed:
        return {}, seen
    selection = tasks.held_out_judgements(
        path, seed=options.seed, anchors=options.selection_anchors, grade_one=options.grade_one
    )
    shared = sorted(set(selection) & set(dev))
    if shared:
        raise InvalidInput(
            f"{len(shared)} selection anchors of {path} are also in dev, such as {shared[0]}; remove them from one"
        )
    return selection, seen


def shown(name: str, figures: tasks.Figures) -> tasks.Figures:
    """Print the table of a task and return its figures."""
    say(f"\n{name}\n{figures.table.rstrip()}")
    return figures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description="Evaluate a bundle.")
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle")
    add("--output", type=Path, required=True, help="JSON file to write the report to")
    add("--judged", type=Path, required=True, help="folder with dev.tsv.gz and train.tsv.gz")
    add("--companies", type=Path, required=True, help="JSONL file of all companies")
    add("--index", help="index that already contains this bundle's vectors of the companies (a file or a URL)")
    add("--selection-anchors", type=int, default=SELECTION_ANCHORS, help="number of held-out anchors (default: 100)")
    add("--grade-one", choices=get_args(GradeOne), default="negative", help="as in the training run")
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    add("--seed", type=int, default=SEED, help="seed of the training run, and of resamples (default: 1)")
    return parser


if __name__ == "__main__":
    main()
