"""The model card says how good the model is, or that nobody measured it."""

from dataclasses import replace

from tests.tiny_bundle import TINY_MANIFEST
from training.card import model_card

METRICS = {
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
    card = model_card(replace(TINY_MANIFEST, metrics=METRICS), licence="Apache-2.0")
    assert "| dev | plain | 0.493 | 0.611 | 0.494 |" in card
    assert "| dev | prepared | 0.776 | 0.810 | 0.777 |" in card or "| dev | prepared | 0.776 | 0.810 | 0.776 |" in card
    assert "mean 0.9978, lowest 0.9961" in card


def test_the_card_names_model_licence_and_data() -> None:
    card = model_card(TINY_MANIFEST, licence="Apache-2.0")
    assert "| base model | tiny, licence Apache-2.0 |" in card
    assert "| training data | set by hand |" in card


def test_a_card_without_measurements_says_so() -> None:
    assert "Not measured" in model_card(TINY_MANIFEST, licence="Apache-2.0")
