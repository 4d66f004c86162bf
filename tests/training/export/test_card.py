"""The model card says how good the model is, or that nobody measured it."""

from dataclasses import replace

from similarity.model.calibration import Calibration
from tests.tiny_bundle import TINY_MANIFEST
from training.export.card import model_card, with_search_section

METRICS = {
    "dev_ndcg10_plain_lower": 0.45,
    "dev_ndcg10_plain_upper": 0.53,
    "dev_ndcg10_prepared_lower": 0.75,
    "dev_ndcg10_prepared_upper": 0.8125,
    "dev_ndcg10_plain": 0.4931,
    "dev_auc_plain": 0.611,
    "dev_ndcg10_plain_float32": 0.4938,
    "dev_ndcg10_prepared": 0.776,
    "dev_auc_prepared": 0.81,
    "dev_ndcg10_prepared_float32": 0.7765,
    "cosine_to_float32_mean": 0.9978,
    "cosine_to_float32_lowest": 0.9961,
}


def test_the_card_shows_plain_and_prepared_figures() -> None:
    card = model_card(replace(TINY_MANIFEST, metrics=METRICS))
    assert "| plain | 0.493 [0.450, 0.530] | 0.611 | 0.494 |" in card
    assert "| prepared | 0.776 [0.750, 0.812] | 0.810 | 0.776 |" in card
    assert "mean 0.9978, lowest 0.9961" in card


def test_the_card_names_model_licence_and_data() -> None:
    card = model_card(replace(TINY_MANIFEST, licence="Apache-2.0"))
    assert "| base model | tiny, licence Apache-2.0 |" in card
    assert "| training data | set by hand |" in card


def test_a_card_without_measurements_says_so() -> None:
    assert "Not measured" in model_card(TINY_MANIFEST)


def test_a_reference_stands_beside_with_the_difference() -> None:
    beside = {
        "dev_ndcg10_strict": 0.7,
        "dev_ndcg10_strict_lower": 0.6,
        "dev_ndcg10_strict_upper": 0.8,
        "dev_auc_strict": 0.8,
        "reference_dev_ndcg10_prepared": 0.625,
        "reference_dev_auc_prepared": 0.5625,
        "dev_ndcg10_over_reference": 0.125,
        "dev_ndcg10_over_reference_lower": 0.1,
        "dev_ndcg10_over_reference_upper": 0.15,
    }
    card = model_card(replace(TINY_MANIFEST, metrics=METRICS | beside), reference="the old one (1234)")
    assert "| prepared | 0.776 [0.750, 0.812] | 0.810 | 0.776 | 0.625 | 0.562 |" in card
    assert "| prepared, unseen candidates | 0.700 [0.600, 0.800] | 0.800 |  |  |  |" in card
    assert "Reference: the old one (1234). Difference in nDCG@10 on prepared text: +0.125 [+0.100, +0.150]." in card


def test_the_card_says_how_the_step_was_chosen() -> None:
    metrics = {"selection_step": 1200, "selection_ndcg10": 0.875}
    card = model_card(replace(TINY_MANIFEST, metrics=metrics))
    assert "| chosen | step 1,200 by its scores on selection anchors, which were not trained on: ndcg10 0.875 |" in card
    assert "| chosen |" not in model_card(TINY_MANIFEST)


CALIBRATED = replace(
    TINY_MANIFEST,
    calibration=Calibration(slope=8.25, intercept=-5.75),
    metrics={
        "corpus_companies": 46616,
        "calibration_anchors": 765,
        "calibration_pairs": 4517,
        "calibration_served": 40000,
        "calibration_ece": 0.022,
        "calibration_ece_lower": 0.017,
        "calibration_ece_upper": 0.041,
        "calibration_ece_chance": 0.018,
        "calibration_brier": 0.206,
        "calibration_brier_lower": 0.2,
        "calibration_brier_upper": 0.21,
        "calibration_log_loss": 0.599,
        "calibration_log_loss_lower": 0.59,
        "calibration_log_loss_upper": 0.61,
        "dev_recall50": 0.603,
        "dev_recall50_lower": 0.55,
        "dev_recall50_upper": 0.65,
    },
)


def test_the_card_shows_the_calibration_and_its_error() -> None:
    card = with_search_section(model_card(TINY_MANIFEST), CALIBRATED)
    assert "P(competitor) = sigmoid(8.250 · cosine − 5.750)" in card
    assert "Fitted on 765 anchors" in card
    assert "4,517 of the 40,000 pairs" in card
    assert "| anchors left out of the fit | 0.022 | 0.018 | 0.206 [0.200, 0.210] | 0.599 [0.590, 0.610] |" in card
    assert "all 46,616 competing" in card
    assert "| R@50 |\n|---|\n| 0.603 [0.550, 0.650] |" in card


def test_a_new_calibration_changes_its_section_only() -> None:
    first = model_card(TINY_MANIFEST)
    second = with_search_section(first, CALIBRATED)
    third = with_search_section(second, replace(CALIBRATED, calibration=Calibration(slope=1.0, intercept=2.0)))
    assert second.count("## Search of the whole corpus") == third.count("## Search of the whole corpus") == 1
    assert "sigmoid(1.000 · cosine + 2.000)" in third
    assert "8.250" not in third
    assert with_search_section(third, TINY_MANIFEST) == first


def test_a_custom_card_gets_the_section_at_its_end() -> None:
    assert with_search_section("# Ours\n", CALIBRATED).startswith("# Ours\n\n## Search of the whole corpus\n\nShare")
