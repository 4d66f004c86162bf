"""The estimated prior against pools whose prior is known."""

from pathlib import Path

import numpy as np
import pytest

from similarity.bundle import seed_folder
from similarity.errors import InvalidInput
from tests.training.data.pair_data import made_pairs, numbered_pairs, written
from tests.training.prior_data import PAIRS, pool, write_pairs_of_sentences
from training.losses.pause import check_priors
from training.prior import (
    CELLS,
    PriorEstimate,
    estimate_prior,
    label_masks,
    likelihood_loss,
    main,
    pool_prior,
    priors_option,
    score_cells,
)

pytestmark = pytest.mark.training


@pytest.mark.parametrize("prior_at_mean", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("labelled", [0.1, 0.5])
def test_a_known_prior_is_found_from_labelled_competitors_alone(prior_at_mean: float, labelled: float) -> None:
    scores, positive, anchors, truth = pool(prior_at_mean=prior_at_mean, labelled=labelled, seed=0)
    found = estimate_prior(scores, positive, anchors=anchors, seed=0, resamples=40)
    assert found.prior == pytest.approx(truth, abs=0.06)
    assert found.lower - 0.02 <= truth <= found.upper + 0.02


def test_more_labels_narrow_the_interval() -> None:
    widths = []
    for labelled in (0.03, 0.5):
        scores, positive, anchors, _ = pool(prior_at_mean=0.2, labelled=labelled, seed=1)
        found = estimate_prior(scores, positive, anchors=anchors, seed=0, resamples=40)
        widths.append(found.upper - found.lower)
    assert widths[1] < widths[0] / 2


def test_the_unit_of_the_scores_does_not_matter() -> None:
    scores, positive, anchors, _ = pool(prior_at_mean=0.2, labelled=0.2, seed=2)
    one = estimate_prior(scores, positive, anchors=anchors, seed=0, resamples=0).prior
    other = estimate_prior(1000 * scores - 7, positive, anchors=anchors, seed=0, resamples=0).prior
    assert other == pytest.approx(one, abs=1e-3)


def test_competitors_picked_for_their_likeness_make_the_prior_too_small() -> None:
    """The assumption that no interval covers, and which the guide warns of."""
    scores, _, anchors, _ = pool(prior_at_mean=0.2, labelled=0.5, seed=3)
    random = np.random.default_rng(3)
    competitor = random.random(PAIRS) < 1 / (1 + np.exp(-(np.log(0.25) + 20 * (scores - 0.5))))
    easy = competitor & (random.random(PAIRS) < 0.3) & (scores > np.median(scores[competitor]))
    found = estimate_prior(scores, easy, anchors=anchors, seed=0, resamples=0)
    assert found.prior < 0.6 * competitor[~easy].mean()


def test_the_gradient_of_the_likelihood_is_right() -> None:
    scores, positive, _, _ = pool(prior_at_mean=0.2, labelled=0.2, seed=4)
    cell, centres = score_cells(scores)
    counts = [np.bincount(cell[kind], minlength=CELLS).astype(np.float64) for kind in (positive, ~positive)]
    at = np.array([-1.0, -0.5, 1.5])
    _, gradient = likelihood_loss(at, centres, *counts)
    for number in range(3):
        step = np.eye(3)[number] * 1e-5
        slope = (
            likelihood_loss(at + step, centres, *counts)[0] - likelihood_loss(at - step, centres, *counts)[0]
        ) / 2e-5
        assert gradient[number] == pytest.approx(slope, rel=1e-5)


def test_too_few_competitors_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"29 labelled competitors .* too few.*drawn at random"):
        estimate_prior(np.arange(100.0), np.arange(100) >= 71, anchors=np.arange(100), seed=0)


def test_competitors_that_score_no_higher_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no higher cosines"):
        estimate_prior(np.arange(100.0), np.arange(100) < 40, anchors=np.arange(100), seed=0)


def test_labelled_competitors_are_subtracted_from_the_prior() -> None:
    share, rate = 0.2, 0.1
    left = pool_prior(share, positives=20, negatives=0, unlabelled=980)
    assert left == pytest.approx((share - share * rate) / (1 - share * rate))
    assert pool_prior(0.2, positives=20, negatives=80, unlabelled=900) == pytest.approx(0.2)


def test_a_share_below_what_is_labelled_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"it must be between 0\.0200 and 1\.0000 \(--known\)"):
        pool_prior(0.01, positives=20, negatives=0, unlabelled=980)


def test_other_classes_than_competitors_are_refused() -> None:
    pairs = made_pairs([("a", "b"), ("a", "c")], ["entailment", ""], classes=("entailment", "neutral"))
    with pytest.raises(InvalidInput, match="entailment, neutral"):
        label_masks(pairs)


def test_data_without_unlabelled_pairs_have_no_prior() -> None:
    with pytest.raises(InvalidInput, match=r"no pair is unlabelled.*training\.generate"):
        label_masks(numbered_pairs(["competitor", "other"]))


@pytest.fixture(scope="module")
def company_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs_of_sentences(tmp_path_factory.mktemp("pairs"))


def test_the_command_prints_the_option_for_training(company_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--pairs", str(company_file), "--bundle", str(seed_folder())])
    printed = capsys.readouterr().out
    assert "435 pairs:" in printed
    assert float(printed.split("--priors ")[1].split()[0]) < 0.3
    assert len(printed.split("--priors ")[1].split()) == 1  # one class: nobody labelled a negative


def test_a_known_share_needs_no_estimate(company_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--pairs", str(company_file), "--known", "0.14"])
    printed = capsys.readouterr().out
    positives = int(printed.split("pairs: ")[1].split()[0])
    left = float(printed.split("--priors ")[1])
    assert left == pytest.approx((0.14 * 435 - positives) / (435 - positives), abs=1e-3)


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        ((0.0045, 0.002, 0.01), "--priors 0.0045"),
        ((0.9955, 0.99, 0.999), "--priors 0.9955"),
        ((0.86, 0.83, 0.88), "The estimate is unusually high"),
        ((0.3, 0.1, 0.5), "The interval is wide"),
    ],
)
def test_an_estimate_is_printed_with_its_warning(
    company_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    estimate: tuple[float, float, float],
    said: str,
) -> None:
    prior, lower, upper = estimate
    found = PriorEstimate(prior=prior, lower=lower, upper=upper)
    monkeypatch.setattr("training.prior.estimate_prior", lambda *scores, **options: found)
    main(["--pairs", str(company_file)])
    printed = capsys.readouterr().out
    assert said in printed
    assert ("The interval is wide" in printed) == (upper - lower > 0.2)


def test_less_than_one_competitor_in_the_pool_is_undetermined(
    company_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = PriorEstimate(prior=0.002, lower=0.0, upper=0.01)
    monkeypatch.setattr("training.prior.estimate_prior", lambda *scores, **options: found)
    with pytest.raises(SystemExit, match="do not determine the prior"):
        main(["--pairs", str(company_file)])


def test_one_anchor_gives_no_interval() -> None:
    scores, positive, _, _ = pool(prior_at_mean=0.2, labelled=0.2, seed=5)
    found = estimate_prior(scores, positive, anchors=np.zeros(PAIRS, dtype=np.int64), seed=0, resamples=2)
    assert (found.lower, found.upper) == (0, 1)


@pytest.mark.parametrize("known", [0.0005, 0.9995])
def test_an_extreme_prior_is_accepted_by_training(known: float) -> None:
    option = priors_option(known, numbered_pairs(["competitor", "other"]))
    priors = [float(prior) for prior in option.split()[1:]]
    check_priors(priors, classes=2)
    assert priors[0] == pytest.approx(known)


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    pairs = written(tmp_path, "pairs.csv", "text_a,text_b,label\na,b,positive\na,c,negative\n")
    with pytest.raises(SystemExit, match=r"^refused: no pair is unlabelled"):
        main(["--pairs", str(pairs)])
