"""How the choice of the prior matters: misfit, a classifier for each prior, and the plot."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.training.data.pair_data import made_pairs, written
from tests.training.prior_data import pool, write_pairs_of_sentences
from training.papers.prior_sensitivity import Sensitivity, linear_classifier, main, misfit, score_counts, sensitivity
from training.prior import PriorEstimate, fit

pytestmark = pytest.mark.training


@pytest.fixture(scope="module")
def company_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs_of_sentences(tmp_path_factory.mktemp("pairs"))


def test_the_estimate_has_the_smallest_misfit() -> None:
    scores, positive, _, _ = pool(prior_at_mean=0.2, labelled=0.2, seed=5)
    counts = score_counts(scores, positive)
    best = fit(counts)
    others = [misfit(counts, prior) for prior in (best / 2, best - 0.02, best + 0.02, 2 * best)]
    assert misfit(counts, best) < min(others)


def test_the_plot_shows_each_prior_and_the_accuracy_on_other_anchors(
    company_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = written(
        tmp_path,
        "check.csv",
        "text_a,text_b,label\nThe firm bakes bread.,The company sells fresh bread.,positive\n"
        "The firm bakes bread.,The company repairs dental tools.,negative\n",
    )
    picture = tmp_path / "sensitivity.png"
    main(["--pairs", str(company_file), "--plot", str(picture), "--labelled", str(check)])
    assert "plot:" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_linear_classifier_of_least_risk_tells_separable_pairs_apart() -> None:
    random = np.random.default_rng(0)
    competitor = random.random(1_000) < 0.3
    features = (random.normal(size=(1_000, 3)) + 3 * competitor[:, None]).astype(np.float32)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    labelled = competitor & (random.random(1_000) < 0.3)
    weights, bias = linear_classifier(features, labelled, prior=float(competitor[~labelled].mean()))
    assert ((features @ weights + bias >= 0) == competitor).mean() > 0.95


@pytest.fixture
def curve() -> Callable[..., object]:
    def made(**changes: object) -> object:
        sides = [(f"a{row % 20}", f"b{row}") for row in range(600)]
        random = np.random.default_rng(0)
        competitor = random.random(600) < 0.3
        labels = ["competitor" if one and random.random() < 0.5 else "" for one in competitor]
        pairs = made_pairs(sides, labels, classes=("competitor",))
        angles = np.zeros(len(pairs.ids))
        for row, one in enumerate(competitor):
            angles[pairs.right[row]] = abs(random.normal(0.6 if one else 1.2, 0.3))
        vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        estimate = PriorEstimate(prior=0.17, lower=0.1, upper=0.3, positives=90, unlabelled=510)
        return sensitivity(pairs, vectors, estimate, check=None, seed=0, priors=(0.05, 0.17, 0.6))

    return made


def test_a_wrong_prior_fits_worse_and_accuracy_needs_labels(curve: Callable[..., object]) -> None:
    found = curve()
    assert isinstance(found, Sensitivity)
    assert found.misfit[1] < found.misfit[2]
    assert found.accuracy == ()
    assert all(value >= 0 or np.isnan(value) for value in found.lee_liu)
