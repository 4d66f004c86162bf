"""Tables measured cell by cell: finished cells are kept in files, so a command continues where it stopped."""

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
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

DEFAULTS = {**settings_values(TrainSettings()), "selection": SELECTION_ANCHORS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: its name, which is that of its file, and what measures it."""

    name: str
    measure: Callable[[], Result]


def add_table_options(parser: argparse.ArgumentParser, *, seeds: Sequence[int]) -> None:
    """The options that all tables have."""
    add = parser.add_argument
    add("--output", type=Path, required=True, help="folder of the report and of finished cells")
    add("--seeds", nargs="+", type=int, default=list(seeds), help=f"default: {' '.join(map(str, seeds))}")
    add("--budget", type=float, default=math.inf, help="minutes after which no cell is started")


def add_share_options(parser: argparse.ArgumentParser, *, methods: Sequence[str], shares: Sequence[float]) -> None:
    """The options of tables over methods and shares of the labels."""
    add = parser.add_argument
    add(
        "--methods",
        nargs="+",
        default=list(methods),
        help=f"default: {' '.join(methods)}; differences are to the first",
    )
    add("--shares", nargs="+", type=float, default=list(shares), help="of the labels, 0 to 1")


def measured_cells(
    cells: Sequence[Cell], options: argparse.Namespace, settings: Mapping[str, Any], *, line: Callable[[Result], str]
) -> list[Result]:
    """The results of all cells, in order, that are finished or can be started within the budget; one at least.

    `settings` are those of all cells: cells that were kept under others are refused. `line` says a result in words.
    """
    folder, minutes, log = options.output / "cells", options.budget, say
    folder.mkdir(parents=True, exist_ok=True)
    started, seconds = perf_counter(), list[float]()
    results: list[Result] = []
    for number, cell in enumerate(cells, start=1):
        file = folder / f"{cell.name}.json"
        fresh = not file.exists()
        if fresh and results and perf_counter() - started > 60 * minutes:
            log(f"the budget of {minutes:g} minutes is used up after {number - 1} of {len(cells)} cells")
            break
        began = perf_counter()
        results.append(kept_or(file, settings, cell.measure))
        if fresh:
            seconds.append(perf_counter() - began)
        left = f"; about {np.mean(seconds) * (len(cells) - number) / 60:.0f} minutes for the others" if seconds else ""
        log(f"{number}/{len(cells)} {line(results[-1])}{left}")
    return results


def kept_or(file: Path, settings: Mapping[str, Any], measure: Callable[[], Result]) -> Result:
    """The figures in `file`, if it was made with these settings; else those that are measured now.

    A setting that the file does not know yet had its default then.

    Raises:
        InvalidInput: the file was made with other settings.
    """
    if file.exists():
        kept: Result = json.loads(file.read_text(encoding="utf-8"))
        if {**DEFAULTS, **kept["settings"]} != {**DEFAULTS, **settings}:
            raise InvalidInput(f"{file} was made with other settings; choose another --output, or remove it")
        return kept
    result = {**measure(), "settings": dict(settings)}
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def this_device() -> torch.device:
    """The first GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def trained(settings: TrainSettings, task: Task[Any], *, output: Path) -> TrainingResult:
    """A run by this process alone, without a word."""
    return fit(settings, task, output=output, processes=Processes(device=this_device()), log=quiet)


def facts_of(fitted: TrainingResult) -> Result:
    """The length of a run and its best step, for a cell."""
    return {"steps": fitted.steps, "best_step": fitted.best_step, "seconds": round(fitted.seconds, 1)}


def start_encoder(settings: TrainSettings, texts: Texts, *, classes: int = 0) -> Encoder:
    """The encoder that the settings begin with, untrained."""
    return Encoder(load_pair_model(settings, classes=classes), texts, settings, device=this_device())
