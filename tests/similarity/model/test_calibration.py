import pytest

from similarity.model.calibration import Calibration, probability_of


@pytest.mark.parametrize(
    ("slope", "intercept", "score", "expected"),
    [
        (0.0, 0.0, 0.5, 0.5),
        (10.0, -5.0, 0.5, 0.5),
        (10.0, -5.0, 0.9, 0.982),
        (1e6, 0.0, -1.0, 0.0),
        (1e6, 0.0, 1.0, 1.0),
    ],
)
def test_probability_is_the_sigmoid_of_the_calibrated_cosine(
    slope: float, intercept: float, score: float, expected: float
) -> None:
    assert probability_of(score, Calibration(slope=slope, intercept=intercept)) == pytest.approx(expected, abs=1e-3)


def test_without_a_calibration_there_is_no_probability() -> None:
    assert probability_of(0.9, None) is None
