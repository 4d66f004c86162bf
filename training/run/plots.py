"""Plots of a training run."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from training.run.journal import read_journal

matplotlib.use("Agg")

INK, ACCENT = "#333333", "#0072b2"  # distinguished by colour-blind readers (Okabe and Ito)
SMOOTHED_OVER = 20  # steps


def plot_run(journal: Path, picture: Path) -> None:
    """Plot the loss by step with its running mean, and below it the first selection score."""
    lines = read_journal(journal)
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    scored = [line for line in lines if "loss" not in line]
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    if losses:
        steps, values = zip(*losses, strict=True)
        above.plot(steps, values, color=INK, alpha=0.25, linewidth=0.8)
        above.plot(steps, _running_mean(values, SMOOTHED_OVER), color=ACCENT)
    above.set_ylabel("loss")
    if scored:
        name = next(key for key in scored[0] if key != "step")
        below.plot([line["step"] for line in scored], [line[name] for line in scored], color=ACCENT, marker="o")
        below.set_ylabel(f"selection {name}")
    below.set_xlabel("step")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


def _running_mean(values: tuple[float, ...], width: int) -> list[float]:
    return [sum(some := values[max(0, end - width) : end]) / len(some) for end in range(1, len(values) + 1)]
