"""Finished cells are read under the same settings, also those from before a setting existed."""

import json
from pathlib import Path
from typing import Any

import pytest

from similarity.errors import InvalidInput
from tests.training.papers.sentence_pairs import write_sts
from training.papers import all as tables
from training.papers import stsb
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


def test_tables_are_made_once_and_their_cells_are_rows(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sts(tmp_path / "sts")
    options = f"--sts {{data}}/sts --output {{runs}}/{{name}} --model {model} --seeds 1 --steps 2 --evaluate-every 2"
    monkeypatch.setattr(tables, "TABLES", {"made": [(stsb.main, options)], "later": [(stsb.main, options)]})
    rows = tmp_path / "rows.csv"
    rows.write_text("table,cell,settings,figures\nother,cell,0,a=1\nmade,seed-1,old,a=2\n")
    given = ["--data", str(tmp_path), "--output", str(tmp_path / "runs"), "--rows", str(rows)]
    for _ in range(2):
        tables.main([*given, "--tables", "made"])
    header, other, seed, start = rows.read_text().splitlines()
    assert (header, other) == ("table,cell,settings,figures", "other,cell,0,a=1")
    assert seed.startswith("made,seed-1,")
    assert start.startswith("made,start,")
    result = json.loads((tmp_path / "runs" / "made" / "cells" / "seed-1.json").read_text())
    assert f" test={round(result['test'], 5)} " in seed
    assert f"commit={result['commit']}" in seed
    tables.main([*given, "--tables", "later", "--budget", "0"])
    assert "is used up before later" in capsys.readouterr().out
