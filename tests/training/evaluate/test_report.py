"""Reports: plain JSON, tables, and differences between two."""

import json
from pathlib import Path

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.evaluate.bootstrap import Interval
from training.evaluate.report import compare, interval_text, plain, read_report, table, write_report


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
    assert read_report(tmp_path / "new" / "report.json") == expected


@pytest.mark.parametrize("content", [None, "not json", "[1]"])
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInput, match="is not a report"):
        read_report(path)


def test_a_table_is_aligned_and_rounds() -> None:
    assert table(["set", "value", "pairs"], [["dev", 0.12345, 2979], ["train", float("nan"), 7]]) == (
        "set     value  pairs\ndev    0.1235  2,979\ntrain       -      7\n"
    )


def test_an_interval_reads_mean_and_bounds() -> None:
    assert interval_text(Interval(mean=0.5, lower=0.25, upper=0.75, anchors=3)) == "0.5000 [0.2500, 0.7500]"


def report(**values: dict[str, float | None]) -> dict[str, object]:
    return {"anchor_values": values}


def test_reports_are_compared_anchor_by_anchor() -> None:
    new = report(ndcg10={"a": 0.5, "b": 0.75, "c": None}, recall50={"a": 1.0})
    old = json.loads(json.dumps(report(ndcg10={"a": 0.25, "b": 0.5, "c": 0.5})))
    found = compare(new, old)
    assert list(found) == ["ndcg10"]
    assert (found["ndcg10"].mean, found["ndcg10"].above, found["ndcg10"].anchors) == (0.25, 1, 2)


def test_reports_of_other_anchors_are_not_compared() -> None:
    with pytest.raises(InvalidInput, match="different anchors"):
        compare(report(ndcg10={"a": 0.5}), report(ndcg10={"b": 0.5}))
    with pytest.raises(InvalidInput, match="share no figure"):
        compare(report(ndcg10={"a": 0.5}), {})
