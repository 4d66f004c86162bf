"""The facts beside a run's weights decide the manifest of the export."""

import json
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from training.run.trained_run import read_run

pytestmark = pytest.mark.training


def written(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"model": "minilm-l6", "method": "pause", "label_share": 0.02, "seed": 3, "steps": 200}
    stored = {
        "settings": settings,
        "classes": ["competitor", "other"],
        "step": 150,
        "scores": {"ndcg10": 0.5},
    } | changes
    (folder / "training.json").write_text(json.dumps(stored))
    return folder


def test_a_run_is_described_in_one_sentence(tmp_path: Path) -> None:
    run = read_run(written(tmp_path))
    assert run is not None
    assert run.start.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert run.method == (
        "pause on 2% of the labels, 200 steps of batches of 128 pairs, learning rate 7.5e-05, at most 128 tokens, "
        "seed 3, step 150 chosen by the selection score"
    )
    assert run.metrics() == {"selection_step": 150, "selection_ndcg10": 0.5}
    assert run.selection_anchors is None


def test_a_run_from_an_earlier_run_describes_both_and_names_the_first_model(tmp_path: Path) -> None:
    first = written(tmp_path / "first")
    second = written(tmp_path / "second", settings={"model": str(first), "method": "listwise", "epochs": 3})
    run = read_run(second)
    assert run is not None
    assert run.start.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert run.method.startswith("pause on 2% of the labels")
    assert "; then listwise on 100% of the labels, 3 epochs" in run.method


def test_a_base_model_in_a_folder_is_named_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "our-model").mkdir()
    run = read_run(written(tmp_path / "run", settings={"model": str(tmp_path / "our-model")}))
    assert run is not None
    assert run.start.base_model == "our-model"


def test_weights_without_a_run_have_none(tmp_path: Path) -> None:
    assert read_run(tmp_path) is None


@pytest.mark.parametrize("changes", [{"settings": {"methd": "pause"}}, {"scores": None}, {"step": "soon"}])
def test_a_damaged_training_json_is_an_error(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"is not the training\.json of a run"):
        read_run(written(tmp_path, **changes))


def test_a_score_that_is_no_number_does_not_enter_the_manifest(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, scores={"auc": float("nan"), "ndcg10": 0.25}))
    assert run is not None
    assert run.metrics() == {"selection_step": 150, "selection_ndcg10": 0.25}


def test_the_description_of_a_run_on_sentences_mentions_no_labels(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, settings={"method": "quick-thoughts", "batch_sentences": 40}))
    assert run is not None
    assert run.method.startswith("quick-thoughts on sentences of descriptions, without labels")
    assert "batches of 40 sentences" in run.method
