"""nDCG is arithmetic: expected values here are worked out by hand."""

import gzip
import json
import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import ndcg, read_relevance_labels


def test_the_best_order_has_ndcg_one() -> None:
    assert ndcg(np.array([0.9, 0.5, 0.1]), np.array([2, 1, 0])) == pytest.approx(1)


def test_gains_are_three_one_nothing_discounted_by_rank() -> None:
    reached = 1 / math.log2(2) + 0 / math.log2(3) + 3 / math.log2(4)
    best = 3 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(np.array([0.9, 0.5, 0.1]), np.array([1, 0, 2])) == pytest.approx(reached / best)


def test_only_the_first_ten_count() -> None:
    grades = np.array([0] * 10 + [2])
    assert ndcg(np.linspace(1, 0, 11), grades) == 0


def test_an_anchor_without_relatives_scores_nothing() -> None:
    assert ndcg(np.array([0.5, 0.4]), np.array([0, 0])) == 0
    assert ndcg(np.array([]), np.array([], dtype=int)) == 0


def test_equal_scores_count_as_the_mean_over_all_orders_of_them() -> None:
    grades = np.array([2, 1, 0, 2])
    places = [np.array([0.9, *order]) for order in permutations([0.5, 0.4, 0.3])]
    untied = [ndcg(scores, grades) for scores in places]
    assert ndcg(np.array([0.9, 0.4, 0.4, 0.4]), grades) == pytest.approx(np.mean(untied))


def test_the_order_of_the_file_decides_nothing() -> None:
    equal = np.array([0.5, 0.5, 0.5])
    assert ndcg(equal, np.array([2, 1, 0])) == ndcg(equal, np.array([0, 1, 2])) < 1


def test_ties_at_the_cut_share_the_last_places() -> None:
    scores = np.array([1.0] * 9 + [0.5, 0.5])
    grades = np.array([0] * 9 + [2, 0])
    assert ndcg(scores, grades) == pytest.approx((3 / 2) / math.log2(11) / 3)


def test_verdicts_of_users_are_labels(tmp_path: Path) -> None:
    labels = ("positive", "negative", "")
    rows = [{"anchor_id": "a", "hit_id": each or "x", "label": each, "users": 1} for each in labels]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_relevance_labels(path) == {"a": {"positive": 2, "negative": 0}}
    path.write_text(json.dumps(rows[0] | {"label": "yes"}))
    with pytest.raises(InvalidInput, match="row 1: label 'yes' is none of positive, negative, unlabelled"):
        read_relevance_labels(path)


def test_the_pairs_of_training_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("company_a,company_b,label\na,b,positive\na,c,not_competitor\na,d,\na,e,unsure\nb,a,1\n")
    assert read_relevance_labels(path) == {"a": {"b": 2, "c": 0}, "b": {"a": 2}}
    path.write_text("Anchor,Candidate,Grade\na,b,2.0\na,c,\n")
    assert read_relevance_labels(path) == {"a": {"b": 2}}


@pytest.mark.parametrize("name", ["dev.tsv", "dev.tsv.gz"])
def test_labels_are_read_by_anchor(tmp_path: Path, name: str) -> None:
    content = b"anchor\tcandidate\tgrade\na\tb\t2\na\tc\t0\nb\ta\t1\na\tb\t2\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read_relevance_labels(tmp_path / name) == {"a": {"b": 2, "c": 0}, "b": {"a": 1}}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("", "first line must name the columns"),
        (
            "anchor\tcandidate\na\tb\n",
            "no column of grades or labels, only anchor, candidate; a file of labels has the columns anchor, candidat",
        ),
        ("anchor\tgrade\na\t2\n", "no two columns with the ids of a pair, only anchor, grade; a file of labels has"),
        ("anchor\tcandidate\tgrade\n", "has no labels"),
        ("anchor\tcandidate\tgrade\na\tb\t\n", "has no labels"),
        ("anchor\tcandidate\tgrade\na\tb\t1\na\tc\t3\n", "row 2: grade '3' is not 0, 1 or 2"),
        ("anchor\tcandidate\tgrade\na\tb\t1\na\tb\t2\n", "row 2: b has grade 2 for a, but an earlier row has grade 1"),
        ("anchor\tcandidate\tgrade\na\t\t1\n", "row 1: a label needs both"),
        ("anchor\tcandidate\tgrade\na\ta\t2\n", "row 1: a is labelled with itself"),
        ("anchor\tcandidate\tgrade\na\tb\n", "row 1: has 2 values for 3 columns"),
    ],
)
def test_a_wrong_file_is_refused_with_the_row(tmp_path: Path, rows: str, reason: str) -> None:
    (tmp_path / "dev.tsv").write_text(rows)
    with pytest.raises(InvalidInput, match=reason):
        read_relevance_labels(tmp_path / "dev.tsv")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no file"):
        read_relevance_labels(tmp_path / "dev.tsv.gz")
