"""Stopped runs and models that commit 6b0b8ad wrote are continued and read; their archive is never changed."""

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.tiny_model import TOPICS, losses, topic_pairs
from training.config import TrainSettings
from training.data.selection import prepare
from training.papers.sentences import SentenceSettings, SentenceTask
from training.run.processes import Processes
from training.run.task import PairTask
from training.run.trained_run import read_run
from training.train import fit

pytestmark = pytest.mark.training

ARCHIVE = Path(__file__).parent / "written_by_6b0b8ad.tar.gz"
USUAL: dict[str, Any] = {
    "model": "model",
    "steps": 6,
    "learning_rate": 3e-3,
    "evaluate_every": 2,
    "precision": "float32",
    "max_tokens": 24,
    "checkpoint_every": 3,
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder that the commit wrote: its model, a run on pairs and a run on sentences."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2, of Debian 12, has none
        archive.extractall(tmp_path)
    return tmp_path


def pair_task() -> Any:
    settings = TrainSettings(method="pause+listwise", batch_pairs=24, label_share=0.3, **USUAL)
    return settings, PairTask(settings, prepare(topic_pairs(), settings, selection=6))


def sentence_task() -> Any:
    random, words = np.random.default_rng(0), list(TOPICS.values())
    descriptions = [
        " ".join(
            f"The company makes {' '.join(random.choice(words[n % 3], random.integers(1, 6)))}."
            for _ in range(2 + n % 3)
        )
        for n in range(30)
    ]
    settings = SentenceSettings(method="quick-thoughts-block", batch_sentences=16, **USUAL)
    return settings, SentenceTask(settings, descriptions, selection=6)


@pytest.mark.parametrize(("name", "made"), [("pairs", pair_task), ("sentences", sentence_task)])
def test_a_stopped_run_continues_with_the_losses_it_would_have_had(
    name: str, made: Any, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written)
    settings, task = made()
    said: list[str] = []
    fitted = fit(settings, task, output=Path(name), processes=Processes(), log=said.append)
    assert "continuing after step 3" in said[0]
    whole = json.loads(Path(name, "losses.json").read_text())
    assert losses(Path(name)) == pytest.approx(whole, rel=1e-3)
    assert fitted.steps == 6


def test_a_run_on_sentences_is_read(written: Path) -> None:
    run = read_run(written / "sentences" / "best")
    assert run is not None
    assert run.method.startswith(
        "quick-thoughts-block on sentences of descriptions, without labels, 6 steps of batches of 16 sentences"
    )
