"""Parts of reports over shares of labels: groups of seeds, their spread, and the plot."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib
import numpy as np
from matplotlib.figure import Figure

matplotlib.use("Agg")

Result: TypeAlias = Mapping[str, Any]

# Okabe and Ito's colours, distinguished by colour-blind readers; the markers serve in print.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vPX"
LINES = (":", "-.")


def grouped(results: Sequence[Result]) -> list[list[Result]]:
    """The results of each share and method, its seeds together; untrained (share 0) first, then from many to few."""
    groups: dict[tuple[float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["share"], result["method"]), []).append(result)
    return sorted(groups.values(), key=lambda group: (group[0]["share"] > 0, -group[0]["share"]))


def spread(values: Sequence[float], *, digits: int = 2) -> str:
    """Mean ± standard deviation (of a sample; of a single value just the value); "-" where one is not defined."""
    if not all(math.isfinite(value) for value in values):
        return "-"
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


def labels_of(group: Sequence[Result]) -> str:
    """The share and the number of labels of a group, for a table."""
    first = group[0]
    return f"{first['share']:.0%} ({first['labelled']:,})" if first["share"] else "none"


def write_report(
    results: Sequence[Result],
    output: Path,
    table: str,
    *,
    name: str,
    values: object,
    figure: Callable[[Result], float],
    label: str,
) -> str:
    """Write table.md, `name`.png with one figure of each result, and `name`.json with `values`; return the table."""
    (output / "table.md").write_text(table, encoding="utf-8")
    (output / f"{name}.json").write_text(json.dumps(values) + "\n", encoding="utf-8")
    plot(results, output / f"{name}.png", value=figure, label=label)
    return table


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plot(results: Sequence[Result], picture: Path, *, value: Callable[[Result], float], label: str) -> None:
    """`value` over the number of labels (logarithmic), a line for each method, bars of one standard deviation.

    Untrained models are level lines.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    trained = [result for result in results if result["share"]]
    for number, method in enumerate(dict.fromkeys(result["method"] for result in trained)):
        groups = grouped([result for result in trained if result["method"] == method])
        values = [[value(result) for result in group] for group in groups]
        axes.errorbar(
            [group[0]["labelled"] for group in groups],
            [float(np.mean(each)) for each in values],
            yerr=[float(np.std(each, ddof=1)) if len(each) > 1 else 0.0 for each in values],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            label=method,
        )
    for number, result in enumerate(result for result in results if not result["share"]):
        axes.axhline(value(result), color="#888888", linestyle=LINES[number % len(LINES)], label=result["method"])
    axes.set_xscale("log")
    axes.set_xlabel("labelled pairs")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(picture, dpi=120)
