"""Reports: plain JSON, and tables."""

import json
from pathlib import Path

import numpy as np

from training.evaluate.bootstrap import Interval
from training.evaluate.report import interval_text, plain, table, write_report


def test_everything_becomes_plain_json(tmp_path: Path) -> None:
    found = {
        "interval": Interval(mean=0.5, lower=float("nan"), upper=1.0, anchors=3),
        "values": np.array([0.25, np.inf]),
        "count": np.int64(7),
        "names": ("a", "b"),
    }
    expected = {
        "interval": {"mean": 0.5, "lower": None, "upper": 1.0, "anchors": 3},
        "values": [0.25, None],
        "count": 7,
        "names": ["a", "b"],
    }
    assert plain(found) == expected
    write_report(found, tmp_path / "new" / "report.json")
    assert json.loads((tmp_path / "new" / "report.json").read_text()) == expected


def test_a_table_is_aligned_and_rounds() -> None:
    assert table(["set", "value", "pairs"], [["dev", 0.12345, 2979], ["train", float("nan"), 7]]) == (
        "set     value  pairs\ndev    0.1235  2,979\ntrain       -      7\n"
    )


def test_an_interval_reads_mean_and_bounds() -> None:
    assert interval_text(Interval(mean=0.5, lower=0.25, upper=0.75, anchors=3)) == "0.5000 [0.2500, 0.7500]"
