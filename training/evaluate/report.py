"""Results of evaluations: tables for people, JSON for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from training.evaluate.bootstrap import Interval


def plain(value: Any) -> Any:
    """Return records, arrays and numbers as JSON values; NaN and infinite values are null."""
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
    """Write a report as JSON, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plain(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return lines of columns, the first left-aligned, the others right-aligned; floats have four decimals."""
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


def interval_text(interval: Interval) -> str:
    """Return "mean [lower, upper]"."""
    return f"{interval.mean:.4f} [{interval.lower:.4f}, {interval.upper:.4f}]"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
