"""Finished cells are read under the same settings, also those from before a setting existed."""

import json
from pathlib import Path
from typing import Any

import pytest

from similarity.errors import InvalidInput
from training.papers.cells import DEFAULTS, kept_or

pytestmark = pytest.mark.training


def kept(folder: Path, settings: dict[str, Any]) -> Path:
    file = folder / "cell.json"
    file.write_text(json.dumps({"ndcg10": 0.8, "settings": settings}), encoding="utf-8")
    return file


def test_a_setting_that_came_later_had_its_default(tmp_path: Path) -> None:
    older = {name: value for name, value in DEFAULTS.items() if name not in ("head_learning_rate", "selection")}
    file = kept(tmp_path, older)
    assert kept_or(file, DEFAULTS, lambda: pytest.fail("measured again"))["ndcg10"] == 0.8
    with pytest.raises(InvalidInput, match="other settings"):
        kept_or(file, {**DEFAULTS, "head_learning_rate": 1e-3}, dict)
    with pytest.raises(InvalidInput, match="other settings"):
        kept_or(file, {**DEFAULTS, "selection": 25}, dict)


def test_figures_of_other_settings_are_refused(tmp_path: Path) -> None:
    file = kept(tmp_path, {**DEFAULTS, "pairs": 20})
    with pytest.raises(InvalidInput, match="other settings"):
        kept_or(file, {**DEFAULTS, "pairs": 30}, dict)
    with pytest.raises(InvalidInput, match="other settings"):
        kept_or(file, DEFAULTS, dict)
