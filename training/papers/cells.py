"""Cells of a table, each measured once: kept in files, gone on with after a stop, within a budget of minutes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import torch

from similarity.errors import InvalidInput
from training.config import TrainSettings, settings_values
from training.data.splits import SELECTION_ANCHORS

Result: TypeAlias = dict[str, Any]

DEFAULTS = {**settings_values(TrainSettings()), "selection": SELECTION_ANCHORS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: its name, which is that of its file, and what measures it."""

    name: str
    measure: Callable[[], Result]


def measured_cells(
    cells: Sequence[Cell],
    *,
    folder: Path,
    settings: Mapping[str, Any],
    minutes: float,
    line: Callable[[Result], str],
    log: Callable[[str], None],
) -> list[Result]:
    """The results of all cells, in order, that are kept in `folder` or can be started within the minutes; one at least.

    `settings` are those of all cells: what was kept under others is refused. `line` says a result in words.
    """
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
