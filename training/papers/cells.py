"""Tables that are measured cell by cell. Finished cells are stored, so that a command continues where it stopped."""

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import torch

from similarity.errors import InvalidInput
from training.config import TrainSettings, settings_values
from training.console import quiet, say
from training.data.splits import SELECTION_ANCHORS
from training.data.texts import Texts
from training.model.encoder import Encoder
from training.model.pair_model import load_pair_model
from training.run.processes import Processes
from training.run.task import Task
from training.train import TrainingResult, fit

Result: TypeAlias = dict[str, Any]
Cells: TypeAlias = Mapping[str, Callable[[], Result]]
"""Name of the cell's file -> function that measures the cell."""

DEFAULTS = {**settings_values(TrainSettings()), "selection": SELECTION_ANCHORS}


def add_table_options(parser: argparse.ArgumentParser, *, seeds: Sequence[int]) -> None:
    """Add the options of all tables."""
    add = parser.add_argument
    add("--output", type=Path, required=True, help="folder of the report and of finished cells")
    add("--seeds", nargs="+", type=int, default=list(seeds), help=f"default: {' '.join(map(str, seeds))}")
    add("--budget", type=float, default=math.inf, help="minutes after which no cell is started")


def add_share_options(parser: argparse.ArgumentParser, *, methods: Sequence[str], shares: Sequence[float]) -> None:
    """Add the options of tables over methods and shares of the labels."""
    add = parser.add_argument
    add("--methods", nargs="+", default=list(methods), help=f"default: {' '.join(methods)}")
    add("--shares", nargs="+", type=float, default=list(shares), help="shares of the labels, above 0, up to 1")


def measured_cells(
    cells: Cells, options: argparse.Namespace, settings: Mapping[str, Any], *, line: Callable[[Result], str]
) -> list[Result]:
    """Return the results of the cells, in order, that are finished or can be started within the budget; at least one.

    `settings` are those of all cells: stored cells with other settings are refused. `line` describes a result for the
    log.
    """
    folder = options.output / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    started = perf_counter()
    results: list[Result] = []
    for number, (name, measure) in enumerate(cells.items(), start=1):
        file = folder / f"{name}.json"
        if not file.exists() and results and perf_counter() - started > 60 * options.budget:
            say(f"the budget of {options.budget:g} minutes is used up after {number - 1} of {len(cells)} cells")
            break
        results.append(kept_or(file, settings, measure))
        say(f"{number}/{len(cells)} {line(results[-1])}; {(perf_counter() - started) / 60:.0f} minutes so far")
    return results


def kept_or(file: Path, settings: Mapping[str, Any], measure: Callable[[], Result]) -> Result:
    """Return the stored figures in `file`; if there are none, measure and store them.

    A setting that is missing in the file did not exist yet and had its default.

    Raises:
        InvalidInput: the stored figures were measured with other settings.
    """
    if file.exists():
        kept: Result = json.loads(file.read_text(encoding="utf-8"))
        if {**DEFAULTS, **kept["settings"]} != {**DEFAULTS, **settings}:
            raise InvalidInput(f"{file} was made with other settings; choose another --output, or remove it")
        return kept
    result = {**measure(), "commit": commit(), "settings": dict(settings)}
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def commit() -> str:
    """Return the abbreviated commit of this checkout, with "+" if files differ from it; empty outside of one."""
    command = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--exclude=*", "--dirty=+")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:  # there is no git
        return ""


def this_device() -> torch.device:
    """Return the first GPU or, if there is none, the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def trained(settings: TrainSettings, task: Task, *, output: Path) -> TrainingResult:
    """Train in this process alone, without a log."""
    return fit(settings, task, output=output, processes=Processes(device=this_device()), log=quiet)


def facts_of(fitted: TrainingResult) -> Result:
    """Return the number of steps of a run, its best step and its duration, for a cell."""
    return {"steps": fitted.steps, "best_step": fitted.best_step, "seconds": round(fitted.seconds, 1)}


def start_encoder(settings: TrainSettings, texts: Texts, *, classes: int = 0) -> Encoder:
    """Return the untrained encoder that the settings name."""
    return Encoder(load_pair_model(settings, classes=classes), texts, settings, device=this_device())
