"""Results of evaluations: tables for people, JSON for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from similarity.errors import InvalidInput
from training.evaluate.bootstrap import Difference, Interval, paired_difference


def plain(value: Any) -> Any:
    """Records, arrays and numbers as JSON values; a figure that is not defined (NaN) is null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_report(report: Mapping[str, object], path: Path) -> None:
    """Writes a report as JSON, with the folder if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plain(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_report(path: Path) -> dict[str, Any]:
    """A report that `write_report` wrote.

    Raises:
        InvalidInput: no such file, or it holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} is not a report ({error}); write one with: python -m training.evaluate") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} is not a report; write one with: python -m training.evaluate")
    return found


def compare(new: Mapping[str, object], old: Mapping[str, object], *, seed: int = 0) -> dict[str, Difference]:
    """New - old of every figure that both reports hold for each anchor (`anchor_values`), by name; paired.

    Raises:
        InvalidInput: they have no such figure in common, or one of other anchors.
    """
    found = {}
    before = _anchor_values(old)
    for name, values in _anchor_values(new).items():
        if name not in before:
            continue
        if list(values) != list(before[name]):
            raise InvalidInput(f"the reports have {name} of different anchors; evaluate both on the same judgements")
        found[name] = paired_difference(_floats(values), _floats(before[name]), seed=seed)
    if not found:
        raise InvalidInput("the reports share no figure of single anchors; run the tasks ranking or corpus for both")
    return found


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lines of columns: the first to the left, the others to the right; numbers with four digits after the point."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def interval_text(interval: Interval | Difference) -> str:
    """Mean [lower, upper]."""
    return f"{interval.mean:.4f} [{interval.lower:.4f}, {interval.upper:.4f}]"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _anchor_values(report: Mapping[str, object]) -> dict[str, dict[str, float | None]]:
    found = plain(report.get("anchor_values", {}))
    return found if isinstance(found, dict) else {}


def _floats(values: Mapping[str, float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([float("nan") if value is None else value for value in values.values()])
