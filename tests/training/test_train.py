"""The trainer on a tiny model: exact gradients however a batch is cut, exact resumption, and errors that help."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from similarity.errors import InvalidInput
from tests.training.tiny_model import fit_pairs, killed_after, losses, topic_pairs
from training import calibrate
from training.config import TrainSettings, settings_values
from training.data.selection import Selection, TrainingData, prepare
from training.data.texts import Texts
from training.evaluate import __main__ as evaluate
from training.model.encoder import Encoder
from training.model.pair_model import load_pair_model
from training.run.checkpoint import CheckpointMismatch
from training.run.journal import read_journal
from training.run.task import fingerprint_of
from training.train import TrainingStopped, learning_rate, main

pytestmark = pytest.mark.training

METHODS = [
    *("pause", "cross-entropy", "in-batch", "listwise", "punce"),
    *("cross-entropy+supervised-contrastive", "pause+listwise"),
]


def tiny(model: Path, **changes: Any) -> TrainSettings:
    usual = TrainSettings(
        model=str(model),
        batch_pairs=24,
        steps=12,
        learning_rate=3e-3,
        evaluate_every=4,
        checkpoint_every=4,
        precision="float32",
    )
    return replace(usual, **changes)


def run(settings: TrainSettings, output: Path, *, share: float = 0.3) -> Any:
    data = prepare(topic_pairs(), replace(settings, label_share=share), selection=6)
    return fit_pairs(replace(settings, label_share=share), data, output)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_to_tell_topics_apart(model: Path, tmp_path: Path, method: str) -> None:
    fitted = run(tiny(model, method=method, steps=40), tmp_path, share=1.0)
    assert fitted.best["auc"] > 0.9
    assert (tmp_path / "best" / "model.safetensors").exists()


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_in_pieces_trains_as_the_whole_batch(model: Path, tmp_path: Path, method: str) -> None:
    run(tiny(model, method=method), tmp_path / "whole")
    run(tiny(model, method=method, micro_tokens=20), tmp_path / "pieces")
    assert losses(tmp_path / "pieces") == pytest.approx(losses(tmp_path / "whole"), rel=2e-4)


def test_pieces_are_encoded_again_under_the_same_dropout(dropping_model: Path) -> None:
    """Then the vectors that the loss saw and those that the gradient goes through are the same."""
    settings = tiny(dropping_model)
    data = prepare(topic_pairs(), settings, selection=6)
    pair_model = load_pair_model(settings, classes=2)
    encoder = Encoder(pair_model, data.texts, settings, device=torch.device("cpu"))
    pair_model.train()
    rows = np.arange(5)
    first, again, other = (encoder.rows(rows, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("step", [3, 4, 11])
def test_a_killed_run_continues_with_the_same_losses(dropping_model: Path, tmp_path: Path, step: int) -> None:
    settings = tiny(dropping_model, method="pause+listwise", label_share=0.3, head_learning_rate=1e-2)
    data = prepare(topic_pairs(), settings, selection=6)
    fit_pairs(settings, data, tmp_path / "undisturbed")

    with killed_after(step):
        fit_pairs(settings, data, tmp_path / "killed")
    fit_pairs(settings, data, tmp_path / "killed")
    assert losses(tmp_path / "killed") == losses(tmp_path / "undisturbed")
    steps = [json.loads(line)["step"] for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


def test_another_run_s_checkpoint_is_refused(model: Path, tmp_path: Path) -> None:
    run(tiny(model, steps=4), tmp_path)
    with pytest.raises(CheckpointMismatch, match="learning_rate"):
        run(tiny(model, steps=4, learning_rate=1e-3), tmp_path)
    settings = tiny(model, steps=4, label_share=0.3)
    others = prepare(topic_pairs(seed=5), settings, selection=6)
    with pytest.raises(CheckpointMismatch, match="other pairs"):
        fit_pairs(settings, others, tmp_path)


def test_frozen_layers_stay_and_their_cached_states_change_nothing(model: Path, tmp_path: Path) -> None:
    fitted = run(tiny(model, frozen_layers=1), tmp_path)
    before, after = load_file(model / "model.safetensors"), load_file(tmp_path / "best" / "model.safetensors")
    same = {name for name in after if before[name].equal(after[name])}
    assert {name for name in after if "layer.0." in name or "embeddings." in name} <= same
    assert any("layer.1." in name for name in after.keys() - same)
    assert fitted.best["auc"] > 0.5


def test_frozen_layers_encode_as_without_cached_states(model: Path) -> None:
    whole, split = (load_pair_model(tiny(model, frozen_layers=frozen), classes=2) for frozen in (0, 1))
    ids = torch.tensor([[2, 9, 10, 3], [2, 11, 3, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    assert torch.allclose(whole.encode(ids, mask), split.encode(ids, mask), atol=1e-6)


def test_the_head_may_have_a_learning_rate_of_its_own(model: Path, tmp_path: Path) -> None:
    usual = tiny(model, steps=1, warmup=0, final_learning_rate=3e-3)
    still: dict[str, Any] = {"learning_rate": 1e-12, "final_learning_rate": 1e-12}
    runs: dict[str, dict[str, Any]] = {
        "both": {},
        "same": {"head_learning_rate": 3e-3},
        "head": {**still, "head_learning_rate": 3e-3},
        "none": still,
    }
    for name, changes in runs.items():
        run(replace(usual, **changes), tmp_path / name)

    def weights(name: str, file: str) -> dict[str, Any]:
        found: dict[str, Any] = load_file(tmp_path / name / "best" / file)
        return found

    def close(left: dict[str, Any], right: dict[str, Any]) -> bool:
        return all(np.allclose(left[name], right[name], atol=1e-6) for name in left)

    assert close(weights("head", "head.safetensors"), weights("both", "head.safetensors"))
    assert not close(weights("head", "head.safetensors"), weights("none", "head.safetensors"))
    assert close(weights("head", "model.safetensors"), weights("none", "model.safetensors"))
    assert close(weights("same", "model.safetensors"), weights("both", "model.safetensors"))


def test_a_loss_that_is_not_a_number_stops_with_advice(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingStopped, match="lower the learning rate"):
        run(tiny(model, learning_rate=1e30, clip_norm=0, warmup=0), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "listwise+pause"}, "in this order"),
        ({"priors": (0.5, 0.6)}, "sum to"),
        ({"priors": (0.5,)}, "1 class priors for 2 classes"),
        ({"head_learning_rate": 0.0}, "head_learning_rate is 0.0; it must be above 0"),
        ({"steps": 0}, "steps is 0; it must be 1 or more"),
        ({"epochs": float("inf")}, "epochs is inf; it must be above 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    model: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        run(tiny(model, **changes), tmp_path)


def test_a_rate_below_the_usual_last_one_does_not_rise() -> None:
    settings = TrainSettings(learning_rate=1e-6)
    rates = [learning_rate(step, 100, settings) for step in range(10, 101)]
    assert max(rates) == rates[0] == 1e-6


def test_other_gains_are_other_data() -> None:
    pairs = topic_pairs()
    assert fingerprint_of(replace(pairs, gains=pairs.gains + 1)) != fingerprint_of(pairs)


def test_evaluation_and_training_hold_out_the_same_anchors_by_default() -> None:
    for parser in (calibrate._parser(), evaluate._parser()):
        assert parser.get_default("seed") == TrainSettings().seed


def test_positives_alone_train_by_the_unlabelled_risk_alone(model: Path, tmp_path: Path) -> None:
    pairs = topic_pairs()
    hidden = pairs.with_hidden(pairs.targets[:, 0] == 0)
    positives = replace(hidden, classes=("competitor",), targets=hidden.targets[:, :1], known=hidden.known[:, :1])
    settings = tiny(model, priors=(0.2,), steps=30)
    texts = Texts(pairs.texts, str(model), max_tokens=16)
    data = TrainingData(pairs=positives, texts=texts, select=Selection(pairs))
    fit_pairs(settings, data, tmp_path)
    lines = [line for line in read_journal(tmp_path / "metrics.jsonl") if "loss" in line]
    assert {line["unlabelled_weight"] for line in lines} == {1.0}
    assert {line["cross_entropy"] for line in lines} == {0.0}
    with pytest.raises(InvalidInput, match="--priors"):
        fit_pairs(replace(settings, priors=()), data, tmp_path / "other")


@pytest.mark.parametrize(
    ("scores", "best_step"),
    [
        ([(0.9, 0.7), (1.0, 0.8), (1.0, 0.9)], 30),  # the same order: the second score decides
        ([(0.9, 0.7), (1.0, 0.8), (0.9, 0.9)], 20),
        ([(1.0, 0.9), (1.0, 0.9), (1.0, 0.8)], 10),  # all the same: the first
    ],
)
def test_the_best_step_is_the_one_of_the_first_score_then_of_the_second(
    model: Path, tmp_path: Path, scores: list[tuple[float, float]], best_step: int
) -> None:
    settings = tiny(model, method="cross-entropy", steps=30, evaluate_every=10, checkpoint_every=15)
    reached = iter([{"ndcg10": order, "auc": scale} for order, scale in scores])
    data = replace(prepare(topic_pairs(), settings, selection=6), select=lambda encoder: next(reached))
    fitted = fit_pairs(settings, data, tmp_path)
    assert fitted.best_step == best_step


SEVERAL_PROCESSES = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.training.tiny_model import losses, topic_pairs
from training.config import TrainSettings
from training.data.selection import prepare
from training.console import quiet
from training.run.processes import joined_processes
from training.run.task import PairTask
from training.train import fit
settings = TrainSettings.from_values(json.loads(sys.argv[1]))
with joined_processes() as processes:
    task = PairTask(settings, prepare(topic_pairs(), settings, selection=6))
    fit(settings, task, output=Path(sys.argv[2]), processes=processes, log=quiet)
"""


def trained_by(count: int, settings: TrainSettings, folder: Path) -> list[float]:
    """The losses of a run by this many processes."""
    script = folder / f"{count}.py"
    script.write_text(SEVERAL_PROCESSES)
    arguments = [json.dumps(settings_values(settings)), str(folder / str(count))]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", str(script)]
    subprocess.run(
        [*command, *arguments], check=True, env={**os.environ, "PYTHONPATH": ".", "OMP_NUM_THREADS": "1"}, timeout=120
    )
    return losses(folder / str(count))


@pytest.mark.parametrize("method", ["pause", "pause+listwise"])
def test_two_processes_train_as_one(model: Path, tmp_path: Path, method: str) -> None:
    settings = tiny(model, method=method, label_share=0.3)
    run(settings, tmp_path / "one")
    assert trained_by(2, settings, tmp_path) == pytest.approx(losses(tmp_path / "one"), rel=2e-4)


def test_a_process_may_be_left_without_a_text(model: Path, tmp_path: Path) -> None:
    usual = tiny(model, method="cross-entropy")
    pairs = len(prepare(topic_pairs(), usual, selection=6).pairs)
    settings = replace(usual, batch_pairs=pairs - 1, steps=2)  # the second batch has one pair: two texts
    run(settings, tmp_path / "one", share=1.0)
    assert trained_by(3, settings, tmp_path) == pytest.approx(losses(tmp_path / "one"), rel=2e-4)


@pytest.fixture
def command(model: Path, tmp_path: Path) -> list[str]:
    rows = [f"boats {a},jam {b},{'positive' if a % 3 == b % 3 else 'negative'}" for a in range(8) for b in range(8)]
    (tmp_path / "pairs.csv").write_text("\n".join(["text_a,text_b,label", *rows]) + "\n")
    given = f"--pairs {tmp_path / 'pairs.csv'} --output {tmp_path / 'run'} --model {model} --selection 2 --steps 2"
    return [*given.split(), "--batch-pairs", "16"]


BUG = """
import sys
from training.losses import methods
from training.train import main

def bug(*_arguments, **_settings):
    raise ValueError("planted")

methods.pause = bug
main(sys.argv[1:])
"""


def test_a_bug_in_a_loss_is_not_called_refused(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", BUG, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().endswith("ValueError: planted")
    assert "refused" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learning-rate", "0"], "learning_rate is 0.0; it must be above 0"),
        (["--method", "paws"], "unknown method 'paws'"),
        (["--selection", "20"], "20 selection anchors cannot be cut"),
        (["--frozen-layers", "2"], "leave at least one to train"),
        (["--model", "nowhere"], "the model 'nowhere' cannot be read"),
    ],
)
def test_input_that_cannot_be_used_is_refused_in_one_line(
    command: list[str], options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(SystemExit) as stopped:
        main([*command, *options])
    assert str(stopped.value).startswith("refused: ")
    assert message in str(stopped.value)


def test_a_finished_model_is_not_replaced_by_another_run(command: list[str], tmp_path: Path) -> None:
    for _ in range(2):  # also without a checkpoint: a killed run is made again
        main(command)
    before = (tmp_path / "run" / "best" / "model.safetensors").read_bytes()
    with pytest.raises(SystemExit, match="is the model of a run with other settings or pairs"):
        main([*command, "--seed", "7"])
    assert (tmp_path / "run" / "best" / "model.safetensors").read_bytes() == before
    (tmp_path / "run" / "best" / "training.json").write_text("")
    with pytest.raises(SystemExit, match="is damaged"):
        main(command)


def test_classes_other_than_competitors_need_their_order(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("text_a,text_b,label\na,b,entailment\nc,d,contradiction\n")
    with pytest.raises(SystemExit, match="the positive class among contradiction, entailment is unknown"):
        main(command)
