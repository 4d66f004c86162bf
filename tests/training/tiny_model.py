"""A BERT of random weights and a few words, and pairs of texts for it: trains in milliseconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.config import TrainSettings
from training.data.pairs import Pairs

TOPICS = {
    "ships": "boats ferries docks sails harbours".split(),
    "tools": "hammers drills nails saws glue".split(),
    "food": "jam bread cheese olives tea".split(),
}
WORDS = [word for words in TOPICS.values() for word in words]


def write_tiny_model(folder: Path, *, layers: int = 2, dropout: float = 0.0) -> Path:
    """A model folder as Hugging Face writes it."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "company", "makes", *WORDS]))
    BertTokenizerFast(vocab_file=str(vocabulary), vocab=str(vocabulary)).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=8 + len(WORDS),
            hidden_size=16,
            num_hidden_layers=layers,
            num_attention_heads=2,
            intermediate_size=32,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        BertModel(config).save_pretrained(folder)
    return folder


def topic_pairs(*, companies: int = 24, candidates: int = 6, seed: int = 0) -> Pairs:
    """Every company with some others: a competitor if it is of the same topic. All labelled."""
    random = np.random.default_rng(seed)
    topics = [list(TOPICS)[number % len(TOPICS)] for number in range(companies)]
    texts = [
        "the company makes " + " ".join(random.choice(TOPICS[topic], size=random.integers(1, 6))) + f" {WORDS[n % 15]}"
        for n, topic in enumerate(topics)
    ]
    left = np.repeat(np.arange(companies), candidates)
    right = np.concatenate(
        [random.permutation([other for other in range(companies) if other != n])[:candidates] for n in range(companies)]
    )
    same = np.array([topics[a] == topics[b] for a, b in zip(left, right, strict=True)])
    return Pairs(
        texts=tuple(texts),
        ids=tuple(f"c{number}" for number in range(companies)),
        left=left.astype(np.int64),
        right=right.astype(np.int64),
        classes=("competitor", "other"),
        targets=np.stack([same, ~same], axis=1).astype(np.float32),
        known=np.ones((len(left), 2), dtype=bool),
        gains=np.where(same, 3, 0).astype(np.float32),
        directed=False,
    )


def losses(output: Path) -> list[float]:
    """The losses of a run, step by step."""
    from training.run.journal import read_journal

    return [line["loss"] for line in read_journal(output / "metrics.jsonl") if "loss" in line]


def fit_pairs(settings: TrainSettings, data: Any, output: Path) -> Any:
    """Trains on pairs (TrainingData), by one process and without a word."""
    from training.console import quiet
    from training.run.processes import Processes
    from training.run.task import PairTask
    from training.train import fit

    return fit(settings, PairTask(settings, data), output=output, processes=Processes(), log=quiet)


@contextmanager
def killed_after(step: int) -> Iterator[None]:
    """Kills the run inside after this step."""
    from training import train

    class Killed(Exception):
        pass

    whole = train.backward

    def killing(*arguments: Any, step: int, **others: Any) -> dict[str, float]:
        if step > last:
            raise Killed
        return whole(*arguments, step=step, **others)

    last = step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "backward", killing)
        with pytest.raises(Killed):
            yield
