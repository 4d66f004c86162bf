"""Plots as PNG files, in Okabe and Ito's colours, which colour-blind readers can distinguish."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from training.evaluate.reliability import ReliabilityBin

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DOTS_PER_INCH = 150


def figure_with_axes(*, width: float = 5.5, height: float = 4.5) -> tuple[Figure, Axes]:
    """Return an empty figure of this size in inches, with a light grid and without upper and right frame."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=DOTS_PER_INCH)


def reliability_plot(tables: Mapping[str, Sequence[ReliabilityBin]], path: Path, *, title: str) -> None:
    """Plot observed against predicted shares, one line for each named table; larger markers are larger shares."""
    figure, axes = figure_with_axes(width=5, height=5)
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1, label="as predicted")
    for (name, table), colour, marker in zip(tables.items(), cycle(COLOURS), cycle(MARKERS), strict=False):
        predicted, observed = [each.predicted for each in table], [each.observed for each in table]
        axes.plot(predicted, observed, color=colour, linewidth=1.2)
        sizes = [20 + 400 * each.share for each in table]
        axes.scatter(predicted, observed, s=sizes, color=colour, marker=marker, label=name, edgecolor="white", zorder=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted share of competitors", ylabel="observed share", title=title)
    axes.set_aspect("equal")
    axes.legend(frameon=False, loc="upper left")
    save(figure, path)
