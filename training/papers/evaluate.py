"""Evaluates a bundle on the benchmarks of papers: STS and SentEval. Prints tables and writes a report.

python -m training.papers.evaluate --bundle models/<id> --sts FOLDER --senteval FOLDER --output report.json
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from training.config import SEED
from training.console import note, refusing, say
from training.evaluate.__main__ import shown
from training.evaluate.encoding import Encode
from training.evaluate.report import table, write_report
from training.evaluate.tasks import Figures
from training.papers.senteval import TASKS, evaluate_task, read_task
from training.papers.sts import SETS, evaluate_sts, read_sts


def sts_figures(encode: Encode, folder: Path) -> Figures:
    """Return the correlations on STS 2012-16, STS benchmark and SICK-R."""
    report = evaluate_sts(encode, [read_sts(folder, name) for name in SETS])
    rows: list[list[object]] = [
        [name, f"{each.pooled:.2f}", f"{each.subset_mean:.2f}", each.pairs] for name, each in report.sets.items()
    ]
    rows.append(["average", f"{report.average:.2f}", f"{report.subset_average:.2f}", ""])
    return Figures(
        values={"sets": report.sets, "average": report.average, "subset_average": report.subset_average},
        table=table(["set", "pooled", "mean of subsets", "pairs"], rows),
    )


def senteval_figures(encode: Encode, folder: Path, *, tasks: Sequence[str], seed: int) -> Figures:
    """Return the accuracy on the transfer tasks of these names."""
    data = [read_task(folder, name) for name in tasks]
    found = {task.name: evaluate_task(encode, task, seed=seed, log=note) for task in data}
    average = float(np.mean([each.accuracy for each in found.values()]))
    rows: list[list[object]] = [
        [name, f"{each.accuracy:.2f}", "" if each.f1 is None else f"{each.f1:.2f}"] for name, each in found.items()
    ]
    rows.append(["average", f"{average:.2f}", ""])
    return Figures(values={"tasks": found, "average": average}, table=table(["task", "accuracy", "F1"], rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, evaluate, print each table as it is done, and write the report."""
    parser = argparse.ArgumentParser(description="Evaluate a bundle on STS and SentEval.")
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle")
    add("--output", type=Path, required=True, help="JSON file to write the report to")
    add("--sts", type=Path, help="folder with STS12.tsv.gz and so on")
    add("--senteval", type=Path, help="folder with MR.tsv.gz and so on")
    add("--transfer-tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all seven")
    add("--seed", type=int, default=SEED, help=f"of the folds (default: {SEED})")
    options = parser.parse_args(arguments)
    with refusing():
        if not (options.sts or options.senteval):
            raise InvalidInput("there is nothing to evaluate on; pass --sts or --senteval")
        encoder = TextEncoder(ModelBundle.load(options.bundle))
        found: dict[str, Figures] = {}
        if options.sts:
            found["sts"] = shown("sts", sts_figures(encoder.encode, options.sts))
        if options.senteval:
            figures = senteval_figures(
                encoder.encode, options.senteval, tasks=options.transfer_tasks, seed=options.seed
            )
            found["senteval"] = shown("senteval", figures)
        report: dict[str, object] = {
            "encoder_id": encoder.encoder_id,
            "bundle_id": encoder.bundle.bundle_id,
            "seed": options.seed,
            **{name: figures.values for name, figures in found.items()},
        }
        write_report(report, options.output)
        say(f"report: {options.output}")


if __name__ == "__main__":
    main()
