"""Ranking quality is arithmetic: expected values here are worked out by hand (nDCG itself: test_judgements)."""

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.generations.judgements import read_judgements
from similarity.text import TextSettings
from tests.tiny_bundle import write_tiny_bundle
from training.evaluate.judged import auc, evaluate, judged_split, judged_texts, main


@pytest.mark.parametrize(
    ("scores", "positive", "expected"),
    [
        ([0.9, 0.8, 0.1], [True, True, False], 1.0),
        ([0.1, 0.8, 0.9], [True, False, False], 0.0),
        ([0.5, 0.5], [True, False], 0.5),
        ([0.9, 0.5, 0.5, 0.1], [False, True, False, True], 0.5 / 4),
    ],
)
def test_auc_is_the_share_of_pairs_in_order(scores: list[float], positive: list[bool], expected: float) -> None:
    assert auc(np.array(scores), np.array(positive)) == pytest.approx(expected)


def test_auc_needs_both_kinds() -> None:
    assert math.isnan(auc(np.array([0.5]), np.array([True])))


def angles(texts: Sequence[str]) -> NDArray[np.float32]:
    """Each text is its own angle in degrees."""
    radians = np.radians([float(text) for text in texts])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_each_anchor_ranks_its_own_candidates_by_cosine() -> None:
    judgements = {"a": {"near": 2, "far": 0}, "b": {"near": 0, "far": 2}}
    quality = evaluate(angles, judgements, {"a": "0", "b": "10", "near": "20", "far": "80"})
    second = (3 / math.log2(3)) / (3 / math.log2(2))
    assert quality.ndcg == pytest.approx((1 + second) / 2)
    assert (quality.anchors, quality.pairs) == (2, 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "dev.tsv.gz", "wt") as file:
        file.write("anchor\tcandidate\tgrade\na\tb\t2\na\tc\t0\n")
    companies = [
        {"id": "a", "name": "Able Inc.", "description": "Able Inc. makes anvils."},
        {"id": "b", "name": "Bold", "description": "Bold makes anvils.", "aliases": ["Brave"]},
        {"id": "c", "name": "Calm", "description": "Calm makes boats."},
        {"id": "d", "name": "Dull", "description": "Dull is not judged."},
    ]
    (tmp_path / "companies.jsonl").write_text("\n".join(json.dumps(company) for company in companies))
    return tmp_path


def test_texts_are_those_of_judged_companies_plain_or_prepared(folder: Path) -> None:
    judgements = read_judgements(judged_split(folder, "dev"))
    plain = judged_texts(folder / "companies.jsonl", judgements, None)
    assert plain == {"a": "Able Inc. makes anvils.", "b": "Bold makes anvils.", "c": "Calm makes boats."}
    prepared = judged_texts(folder / "companies.jsonl", judgements, TextSettings())
    assert prepared["a"] == prepared["b"] == "The company makes anvils."


def test_the_command_prints_a_row_for_each_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = write_tiny_bundle(folder / "bundle").folder
    arguments = ["--bundle", str(bundle), "--judged", str(folder), "--companies", str(folder / "companies.jsonl")]
    main([*arguments, "--splits", "dev"])
    header, plain, prepared = capsys.readouterr().out.splitlines()
    assert header.split() == ["split", "text", "nDCG@10", "AUC", "anchors", "pairs"]
    assert plain.split()[:2] == ["dev", "plain"]
    assert prepared.split() == ["dev", "prepared", "1.0000", "1.0000", "1", "2"]
