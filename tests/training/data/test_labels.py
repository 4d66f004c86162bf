"""Labels of a file, and messages for labels that cannot be used."""

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.data.labels import LabelCell, Labels, read_labels


def cells(*labels: str) -> list[LabelCell]:
    return [LabelCell(place=f"pairs.csv, row {row}", label=label) for row, label in enumerate(labels, 1)]


def grades(*given: str) -> list[LabelCell]:
    return [LabelCell(place=f"pairs.csv, row {row}", grade=grade) for row, grade in enumerate(given, 1)]


def names(labels: Labels) -> list[str]:
    """The class of each row, "-" where none is known."""
    return [
        "+".join(np.array(labels.classes)[target > 0]) if known.any() else "-"
        for target, known in zip(labels.targets, labels.known, strict=True)
    ]


@pytest.mark.parametrize(
    ("positive", "negative", "unlabelled"),
    [
        ("positive", "negative", "unlabelled"),
        ("1", "0", ""),
        ("Positive", "NEGATIVE", "-"),
        ("true", "false", "nan"),
        ("competitor", "not_competitor", "unsure"),
    ],
)
def test_competitors_are_labelled_in_several_words(positive: str, negative: str, unlabelled: str) -> None:
    labels = read_labels(cells(positive, negative, unlabelled))
    assert labels.classes == ("competitor", "other")
    assert names(labels) == ["competitor", "other", "-"]
    np.testing.assert_array_equal(labels.gains, np.array([3, 0, np.nan], dtype=np.float32))
    assert labels.labelled.tolist() == [True, True, False]


def test_data_without_negatives_have_one_class() -> None:
    labels = read_labels(cells("positive", "unlabelled"))
    assert labels.classes == ("competitor",)
    assert labels.targets[0].tolist() == [1]
    assert labels.known.tolist() == [[True], [False]]


def test_positive_and_negative_are_two_classes_or_one_as_set() -> None:
    labels = read_labels(cells("positive", "negative", ""), classes=["competitor"])
    assert labels.targets[:2].tolist() == [[1], [0]]
    assert labels.known.tolist() == [[True], [True], [False]]


def test_grade_one_is_a_negative_with_a_gain() -> None:
    labels = read_labels(grades("2", "1", "0", ""))
    assert names(labels) == ["competitor", "other", "other", "-"]
    np.testing.assert_array_equal(labels.gains, np.array([3, 1, 0, np.nan], dtype=np.float32))


def test_grade_one_can_be_left_unlabelled() -> None:
    labels = read_labels(grades("2", "1", "0"), grade_one="unlabelled")
    assert names(labels) == ["competitor", "-", "other"]
    np.testing.assert_array_equal(labels.gains, np.array([3, np.nan, 0], dtype=np.float32))


def test_classes_are_those_found_in_order_of_name() -> None:
    labels = read_labels(cells("neutral", "entailment", "-", "contradiction"))
    assert labels.classes == ("contradiction", "entailment", "neutral")
    assert names(labels) == ["neutral", "entailment", "-", "contradiction"]
    assert np.isnan(labels.gains).all()


def test_the_order_of_classes_can_be_set() -> None:
    labels = read_labels(cells("neutral", "entailment"), classes=["entailment", "neutral", "contradiction"])
    assert labels.targets.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (cells("positive", "positve"), "row 2: label 'positve' is none of positive, negative, unlabelled"),
        (grades("2", "3"), "row 2: grade '3' is not 2, 1 or 0"),
        (cells("0", "1", "2"), "call it 'grade'"),
        (cells(*(f"reason {number}" for number in range(101))), "101 different labels"),
        ([*cells("neutral", "entailment"), *grades("2")], "row 1: has a grade, but other rows have classes"),
    ],
)
def test_a_label_that_does_not_fit_is_refused_with_its_row(given: list[LabelCell], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_labels(given)


def test_a_label_outside_the_named_classes_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"row 2: label 'neutral' is none of entailment, contradiction"):
        read_labels(cells("entailment", "neutral"), classes=["entailment", "contradiction"])


def test_a_class_is_named_once() -> None:
    with pytest.raises(InvalidInput, match="named twice among a, a; name each class once"):
        read_labels(cells("a"), classes=["a", "a"])
