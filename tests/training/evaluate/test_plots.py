"""Figures are drawn without a screen; their artists are checked."""

from pathlib import Path

import numpy as np
import pytest

from training.evaluate.plots import COLOURS, reliability_plot
from training.evaluate.reliability import reliability

pytestmark = pytest.mark.training


def test_a_reliability_plot_is_a_png(tmp_path: Path) -> None:
    predicted = np.linspace(0.05, 0.95, 40)
    table = reliability(predicted, predicted > 0.5, np.ones(40))
    path = tmp_path / "figures" / "reliability.png"
    reliability_plot({"one": table, "two": table[:3]}, path, title="Served companies")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_more_lines_than_colours_are_drawn(tmp_path: Path) -> None:
    table = reliability(np.array([0.5]), np.array([True]), np.ones(1))
    tables = {f"method {number}": table for number in range(len(COLOURS) + 2)}
    reliability_plot(tables, tmp_path / "many.png", title="")
    assert (tmp_path / "many.png").stat().st_size > 1_000
