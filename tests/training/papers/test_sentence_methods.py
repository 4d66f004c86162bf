"""Methods on sentences, through the same trainer: exact, resumable, exportable."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from similarity.encoder import padded
from similarity.errors import InvalidInput
from similarity.model.onnxruntime_session import OnnxRuntimeSession
from tests.training.tiny_model import TOPICS, losses
from training.config import TrainSettings, settings_values
from training.export.graph import load_encoder, to_onnx
from training.model.pair_model import load_pair_model
from training.papers.sentence_models import TokenConvolutions, load_sentence_encoder, new_convolutions
from training.papers.sentences import METHODS, RECIPES, NeighbourSelection, SentenceSettings, SentenceTask, main
from training.run.processes import Processes
from training.run.trained_run import read_run
from training.train import fit

pytestmark = pytest.mark.training


def tiny(model: Path, **changes: Any) -> SentenceSettings:
    usual = SentenceSettings(
        model=str(model),
        method="quick-thoughts",
        batch_sentences=16,
        steps=6,
        learning_rate=3e-3,
        evaluate_every=3,
        checkpoint_every=2,
        precision="float32",
    )
    return replace(usual, **changes)


def descriptions(count: int = 30) -> list[str]:
    """Each of one topic, in two to four sentences of different lengths."""
    random = np.random.default_rng(0)
    words = list(TOPICS.values())
    return [
        " ".join(
            f"The company makes {' '.join(random.choice(words[n % 3], random.integers(1, 6)))}."
            for _ in range(2 + n % 3)
        )
        for n in range(count)
    ]


def run(settings: SentenceSettings, output: Path, texts: list[str] | None = None) -> Any:
    task = SentenceTask(settings, texts or descriptions(), selection=6)
    return fit(settings, task, output=output, processes=Processes(), log=lambda line: None)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "is-bert"])
def test_two_encoders_learn_which_sentences_are_neighbours(model: Path, tmp_path: Path, method: str) -> None:
    fitted = run(tiny(model, method=method, steps=30, evaluate_every=10, checkpoint_every=0), tmp_path)
    assert fitted.best["neighbour_auc"] > 0.75


def test_is_bert_learns_which_tokens_are_a_sentence_s_own(model: Path, tmp_path: Path) -> None:
    run(tiny(model, method="is-bert", steps=30, evaluate_every=30, checkpoint_every=0), tmp_path)
    assert losses(tmp_path)[-1] < losses(tmp_path)[0] / 10


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("frozen_layers", [0, 1])
def test_a_batch_in_pieces_trains_as_the_whole_batch(
    model: Path, tmp_path: Path, method: str, frozen_layers: int
) -> None:
    settings = tiny(model, method=method, frozen_layers=frozen_layers, steps=4, checkpoint_every=0)
    run(settings, tmp_path / "whole")
    run(replace(settings, micro_tokens=30), tmp_path / "pieces")
    assert losses(tmp_path / "pieces") == pytest.approx(losses(tmp_path / "whole"), rel=2e-4)


def test_two_encoders_learn_apart_and_the_first_is_kept(model: Path, tmp_path: Path) -> None:
    fitted = run(tiny(model), tmp_path)
    held = load_file(tmp_path / "checkpoint" / "model.safetensors")
    first, second = (
        held[f"{which}encoder.layer.1.output.dense.weight"] for which in ("transformer.", "second.transformer.")
    )
    assert not first.equal(second)
    assert fitted.encoder(["ships"]).shape == (1, 16)
    saved = load_file(tmp_path / "best" / "model.safetensors")
    assert saved["encoder.layer.1.output.dense.weight"].equal(first)
    assert {path.name for path in (tmp_path / "best").glob("*.safetensors")} == {"model.safetensors"}


def test_is_bert_keeps_its_convolutions_and_can_be_trained_on(model: Path, tmp_path: Path) -> None:
    fitted = run(tiny(model, method="is-bert", windows="3,5,7"), tmp_path / "first")
    texts = ["boats sails", "jam tea cheese"]
    vectors = fitted.encoder(texts)
    assert vectors.shape == (2, 768)
    settings = tiny(tmp_path / "first" / "best", method="is-bert")
    again = SentenceTask(settings, descriptions(), selection=6).load_model(settings)
    assert [layer.kernel_size for layer in again.convolutions.layers] == [(3,), (5,), (7,)]
    ids, mask = fitted.encoder.texts.padded(fitted.encoder.texts.numbers(texts))
    unit = again.eval().encode(ids, mask).detach().numpy()
    assert np.allclose(unit / np.linalg.norm(unit, axis=1, keepdims=True), vectors, atol=1e-6)


def test_the_product_refuses_a_model_with_convolutions(model: Path, tmp_path: Path) -> None:
    """It would leave them out, and with them what the run learnt."""
    run(tiny(model, method="is-bert", steps=2, checkpoint_every=0), tmp_path)
    for load in (lambda folder: load_pair_model(TrainSettings(model=folder)), load_encoder):
        with pytest.raises(InvalidInput, match=r"contains cnn\.safetensors, layers after the transformer"):
            load(str(tmp_path / "best"))


def test_the_exported_graph_holds_the_convolutions(model: Path, tmp_path: Path) -> None:
    fitted = run(tiny(model, method="is-bert", steps=2, checkpoint_every=0), tmp_path)
    encoder = load_sentence_encoder(str(tmp_path / "best"))
    assert encoder.dimension == 768
    session = OnnxRuntimeSession(to_onnx(encoder).SerializeToString())
    texts = ["boats", "jam bread cheese olives tea jam bread"]
    input_ids, mask = padded([fitted.encoder.texts.tokens[number] for number in fitted.encoder.texts.numbers(texts)])
    assert np.abs(session.run(input_ids, mask) - fitted.encoder(texts)).max() < 1e-5


def test_padding_changes_no_convolution() -> None:
    convolutions = new_convolutions(4, windows=(1, 3, 5), seed=0)
    states = torch.randn(1, 6, 4)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    alone = convolutions(states[:, :4], mask[:, :4])
    assert alone.shape == (1, 4, 768)
    assert torch.allclose(convolutions(states, mask)[:, :4], alone, atol=1e-6)


def test_a_window_sees_its_neighbours_only() -> None:
    convolutions = TokenConvolutions(1, windows=(1, 3), filters=1)
    with torch.no_grad():
        for layer in convolutions.layers:
            layer.weight.fill_(1)
            layer.bias.zero_()
    found = convolutions(torch.tensor([[[1.0], [2.0], [4.0], [-9.0]]]), torch.ones(1, 4, dtype=torch.int64))
    # Windows of one and of three, zeros beyond the ends, and nothing below zero.
    assert found[0].tolist() == [[1, 3], [2, 7], [4, 0], [0, 0]]


def test_neighbour_selection_compares_adjacent_sentences_with_those_of_others() -> None:
    selection = NeighbourSelection(["One a. Two a. Three a.", "One b. Two b."])
    assert int(selection.adjacent.sum()) == 3
    assert int(selection.compared.sum()) == 3 + 6

    def by_letter(texts: Any) -> Any:
        return np.array([[1, 0] if "a." in text else [0, 1] for text in texts], dtype=np.float32)

    assert selection(by_letter) == {"neighbour_auc": 1.0}


def test_too_few_descriptions_are_refused(model: Path) -> None:
    with pytest.raises(InvalidInput, match="6 of 4 descriptions with two sentences"):
        SentenceTask(tiny(model), descriptions(4), selection=6)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_without_three_descriptions_no_selection_is_advised(model: Path, count: int) -> None:
    texts = [*descriptions(count), "One sentence."]
    with pytest.raises(
        InvalidInput, match=f"^{count} of {count + 1} descriptions have two or more sentences; at least 3"
    ) as raised:
        SentenceTask(tiny(model), texts, selection=2)
    assert "--selection" not in str(raised.value)
    assert SentenceTask(tiny(model), [*descriptions(3), "One sentence."], selection=2).unit == "sentences"


def command(model: Path, folder: Path, *extra: str) -> list[str]:
    fixed = f"--output {folder / 'run'} --model {model} --steps 2 --precision float32"
    return [*fixed.split(), "--checkpoint-every", "0", *extra]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    companies = [
        {"id": f"c{number}", "name": f"Firm{number}", "description": text}
        for number, text in enumerate(descriptions(12))
    ]
    (tmp_path / "companies.jsonl").write_text("\n".join(map(json.dumps, companies)))
    (tmp_path / "lines.txt").write_text("\n".join(descriptions(12)) + "\n")
    rows = [f"c{a},c{b},{'positive' if a % 3 == b % 3 else 'negative'}" for a in range(6) for b in range(6) if a != b]
    (tmp_path / "pairs.csv").write_text("\n".join(["company_a,company_b,label", *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize("source", ["companies.jsonl", "lines.txt"])
def test_the_command_needs_descriptions_alone(model: Path, files: Path, source: str) -> None:
    main(command(model, files, "--method", "is-bert", "--selection", "4", "--companies", str(files / source)))
    stored = json.loads((files / "run" / "best" / "training.json").read_text())
    assert list(stored["scores"]) == ["neighbour_auc"]
    assert {name: stored["settings"][name] for name in RECIPES["is-bert"]} == RECIPES["is-bert"]
    assert stored["classes"] == []


def test_labelled_pairs_may_choose_the_best_step(model: Path, files: Path) -> None:
    both = ["--companies", str(files / "companies.jsonl"), "--pairs", str(files / "pairs.csv")]
    main(command(model, files, "--method", "quick-thoughts", "--batch-sentences", "8", *both))
    stored = json.loads((files / "run" / "best" / "training.json").read_text())
    assert set(stored["scores"]) == {"ndcg10", "auc"}


def test_selection_anchors_are_refused_beside_pairs(
    model: Path, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--companies", str(files / "companies.jsonl"), "--pairs", str(files / "pairs.csv")]
    with pytest.raises(SystemExit):
        main(command(model, files, "--selection", "4", *both))
    assert "--selection is not used with --pairs" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "quick-thoughts-altered, is-bert" in " ".join(capsys.readouterr().out.replace("-\n", "-").split())


def test_other_methods_and_settings_are_refused(model: Path) -> None:
    for changes, message in (
        ({"method": "pause"}, "choose one of quick-thoughts"),
        ({"context": 0}, "context is 0; it must be 1 or more"),
    ):
        with pytest.raises(InvalidInput, match=message):
            tiny(model, **changes)


def test_a_run_stores_its_settings_and_the_product_reads_it(model: Path, tmp_path: Path) -> None:
    settings = tiny(model, context=3)
    assert "context" not in settings_values(TrainSettings())
    assert SentenceSettings.from_values(settings_values(settings)) == settings
    run(settings, tmp_path)
    found = read_run(tmp_path / "best")
    assert found is not None
    assert "without labels, 6 steps of batches of 16 sentences" in found.method
