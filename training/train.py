"""The training loop.

    python -m training.train --pairs data/sample/pairs.csv --companies data/sample/companies.jsonl --output runs/first
    torchrun --nproc-per-node 4 -m training.train --pairs ... --output ...

The loop minimises the loss of one global batch; the loss does not depend on the number of micro-batches or processes.
First all texts are encoded. Then the loss is computed on all vectors and logits, and its gradients are propagated
through the encoder one micro-batch at a time, with the dropout mask of the forward pass (gradient caching: Gao et al.
2021, https://arxiv.org/abs/2101.06983). A run writes to its output folder

    best/           the model with the best selection score: `python -m training.export --model .../best`
    checkpoint/     the state to continue from; a killed run continues with the same losses as without the kill
    metrics.jsonl   loss, its parts, learning rate and speed of each step; the selection scores
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from similarity.bundle import is_bundle
from similarity.errors import InvalidInput, SimilarityError
from training.config import TrainSettings, settings_values
from training.console import Log, quiet, refusing, say
from training.data.labels import COMPETITOR_CLASSES
from training.data.pairs import read_pairs
from training.data.selection import prepare
from training.data.splits import SELECTION_ANCHORS
from training.data.texts import micro_batches_of
from training.model.encoder import Encoder
from training.model.pair_model import PairModel
from training.options import add_settings, settings_of
from training.run import checkpoint
from training.run.journal import Clock, Journal, read_journal
from training.run.processes import Processes, joined_processes
from training.run.task import Batches, PairTask, Task
from training.run.trained_run import SETTINGS_FILE, start_of

METRICS_FILE, BEST_FOLDER = "metrics.jsonl", "best"


class TrainingStopped(SimilarityError):
    """The loss is NaN or infinite; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """The trained model with the weights of its best step, and that step's selection scores."""

    model: PairModel
    encoder: Encoder
    best: Mapping[str, float]
    best_step: int
    steps: int
    seconds: float


def fit(settings: TrainSettings, task: Task, *, output: Path, processes: Processes, log: Log) -> TrainingResult:
    """Train, or continue from `output/checkpoint` if there is one, and leave the best model in `output/best`.

    Raises:
        TrainingStopped: the loss is NaN or infinite.
        checkpoint.CheckpointMismatch: `output` contains the checkpoint of another run.
        InvalidInput: the settings do not fit the model.
    """
    # Model and optimiser.
    device = processes.device
    encoder = Encoder(task.load_model(settings), task.texts, settings, device=device)
    model = encoder.model
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(
        parameter_groups(model, settings), weight_decay=settings.weight_decay, fused=device.type in ("cuda", "cpu")
    )

    # The checkpoint of this run, if there is one.
    steps = settings.steps or math.ceil(settings.epochs * task.batches.batches_per_epoch)
    start = start_of(settings.source).as_json()
    identity: dict[str, Any] = {"settings": settings_values(settings), "data": task.fingerprint, "start": start}
    state = checkpoint.resume(output, model, optimiser, **identity)
    done, best, best_step = (state.step, state.best, state.best_step) if state else (0, None, None)
    journal = Journal(output / METRICS_FILE if processes.is_first else None, keep_until=done if state else -1)
    log(
        f"{settings.method}: {task.data}; {steps:,} steps of {task.batch} on {processes.count} x {device.type}, "
        f"{encoder.precision}" + (f"; continuing after step {done}" if done else "")
    )
    encoder.cache_lower_states(log)
    if not done and is_bundle(settings.source):
        selection_scores(encoder, task, step=0, journal=journal, log=log)  # the baseline: the bundle as it is

    # The loop.
    clock = Clock(steps=steps, done=done, unit=task.unit)
    for step, batch in zip(range(done + 1, steps + 1), endless_batches(task.batches, skip=done), strict=False):
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = group["lr_scale"] * learning_rate(step, steps, settings)
        optimiser.zero_grad(set_to_none=True)
        parts = backward(encoder, task, batch, step=step, steps=steps, processes=processes)
        if not math.isfinite(parts["loss"]):
            raise TrainingStopped(
                f"the loss is {parts['loss']} at step {step} ({', '.join(f'{k} {v:.3g}' for k, v in parts.items())}); "
                "lower the learning rate, or train with precision float32"
            )
        if settings.clip_norm:
            parts["gradient_norm"] = float(nn.utils.clip_grad_norm_(trained, settings.clip_norm))
        optimiser.step()
        clock.count(len(batch))
        journal.write({"step": step, "learning_rate": optimiser.param_groups[0]["lr"], **parts, **clock.speed()})
        if clock.due():
            log(f"step {step:,}/{steps:,}: loss {parts['loss']:.4f}, {clock}")

        # Checkpoint selection: compare the scores in order; the second one only breaks ties of the first.
        if step == steps or (step % settings.evaluate_every == 0 and step >= task.selectable_from * steps):
            scores = selection_scores(encoder, task, step=step, journal=journal, log=log)
            score_values = list(scores.values())
            if best is None or score_values > best:
                best, best_step = score_values, step
                if processes.is_first:
                    facts = {"classes": task.classes, "step": step, "scores": scores, "start": start, **task.facts}
                    save_best(output / BEST_FOLDER, encoder, {"settings": identity["settings"], **facts})
        if settings.checkpoint_every and step % settings.checkpoint_every == 0 and processes.is_first:
            state = checkpoint.State(step=step, best=best, best_step=best_step, **identity)
            checkpoint.save(output, model, optimiser, state)
    processes.wait()

    # The weights of the best step.
    model.load(output / BEST_FOLDER)
    model.eval()
    saved = json.loads((output / BEST_FOLDER / SETTINGS_FILE).read_text(encoding="utf-8"))
    return TrainingResult(
        model=model, encoder=encoder, best=saved["scores"], best_step=saved["step"], steps=steps, seconds=clock.seconds
    )


def backward(
    encoder: Encoder, task: Task, batch: Any, *, step: int, steps: int, processes: Processes
) -> dict[str, float]:
    """Add the gradients of the global batch's loss to the parameters; return the loss and its parts."""
    texts, lengths = batch.texts, encoder.texts.lengths
    local = processes.local_share(np.argsort(lengths[texts], kind="stable"))  # the rows that this process encodes
    micro_batches = [local[rows] for rows in micro_batches_of(texts[local], lengths, tokens=encoder.micro_batch_tokens)]
    seeds = [dropout_seed(encoder.seed, step, processes.rank, number) for number in range(len(micro_batches))]
    tokens = sum(len(rows) * int(lengths[texts[rows]].max()) for rows in micro_batches)
    keep_graphs = tokens <= encoder.micro_tokens

    # Encode all texts. If their autograd graphs need too much memory, the forward pass is repeated below.
    with torch.set_grad_enabled(keep_graphs):
        encoded = [encoder.rows(texts[rows], seed=seed) for rows, seed in zip(micro_batches, seeds, strict=True)]
    local_outputs = torch.cat([each.detach() for each in encoded] or [no_outputs(encoder, texts)])
    encoded_rows = np.concatenate([np.empty(0, dtype=np.int64), *micro_batches])
    outputs = processes.gather(local_outputs, encoded_rows, count=len(texts)).requires_grad_()

    # Each process computes the same loss, and therefore the same gradients of the head.
    loss, parts = task.loss(encoder.model, outputs, batch, step=step, steps=steps)
    loss.backward()

    # Propagate the gradients of the outputs through the encoder, one micro-batch at a time.
    for rows, seed, kept_graph in zip(micro_batches, seeds, encoded, strict=True):
        graph = kept_graph if keep_graphs else encoder.rows(texts[rows], seed=seed)
        graph.backward(outputs.grad[torch.from_numpy(rows).to(outputs.device)])
    processes.sum_gradients(encoder.model.trained_encoder_parameters())
    return {"loss": float(loss.detach()), **parts}


def no_outputs(encoder: Encoder, texts: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
    """Return empty outputs `[0, d]` for a process without texts; a last batch may have fewer texts than processes."""
    with torch.no_grad():
        return encoder.rows(texts[:1], seed=encoder.seed)[:0]


def learning_rate(step: int, steps: int, settings: TrainSettings) -> float:
    """Return the learning rate of a step: linear warm-up, then linear decay to the lower of the two rates."""
    warmup = max(1, round(settings.warmup * steps))
    if step <= warmup:
        return settings.learning_rate * step / warmup
    remaining = (steps - step) / max(1, steps - warmup)
    final = min(settings.final_learning_rate, settings.learning_rate)
    return final + remaining * (settings.learning_rate - final)


def parameter_groups(model: PairModel, settings: TrainSettings) -> list[dict[str, Any]]:
    """Return optimiser groups for encoder and head; the learning rate is `lr_scale` times that of the step."""
    encoder = model.trained_encoder_parameters()
    head = [parameter for parameter in model.head.parameters() if parameter.requires_grad]
    head_scale = (settings.head_learning_rate or settings.learning_rate) / settings.learning_rate
    groups = [{"params": encoder, "lr_scale": 1.0}, {"params": head, "lr_scale": head_scale}]
    return [group for group in groups if group["params"]]


def selection_scores(encoder: Encoder, task: Task, *, step: int, journal: Journal, log: Log) -> dict[str, float]:
    """Return the selection scores after `step`, the deciding one first; write them to the journal and the log."""
    encoder.model.eval()
    scores = dict(task.select(encoder))
    journal.write({"step": step, **scores})
    log(f"step {step:,}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    return scores


def save_best(folder: Path, encoder: Encoder, run_facts: Mapping[str, Any]) -> None:
    """Write model, head, tokenizer and training.json: a folder that `training.export` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder.model.save(folder)
    encoder.texts.tokenizer.save_pretrained(folder)
    (folder / SETTINGS_FILE).write_text(json.dumps(dict(run_facts), indent=2) + "\n", encoding="utf-8")


def endless_batches(batches: Batches, *, skip: int) -> Iterator[Any]:
    """Yield the batches of an unlimited number of epochs, without the first `skip` batches."""
    epoch, first = divmod(skip, batches.batches_per_epoch)
    while True:
        yield from batches.epoch(epoch, skip=first)
        epoch, first = epoch + 1, 0


def dropout_seed(seed: int, step: int, rank: int, micro_batch: int) -> int:
    """Return the dropout seed of a micro-batch: the same in a repeated forward pass and in a resumed run."""
    return int(np.random.SeedSequence([seed, step, rank, micro_batch]).generate_state(1, np.uint64)[0] >> 1)


def run(settings: TrainSettings, make_task: Callable[[Processes], Task], *, output: Path) -> None:
    """Train on the task that `make_task` returns in each process; log the best model's folder."""
    with joined_processes() as processes:
        log = say if processes.is_first else quiet
        result = fit(settings, make_task(processes), output=output, processes=processes, log=log)
        if not processes.is_first:
            return
        log(f"best at step {result.best_step}: {result.best}; in {output / BEST_FOLDER}")
        baseline = next((line for line in read_journal(output / METRICS_FILE) if line["step"] == 0), None)
        if baseline is not None and list(result.best.values()) <= [baseline[name] for name in result.best]:
            scores = ", ".join(f"{name} {baseline[name]:.4f}" for name in result.best)
            log(
                f"no step beats the bundle that the run began with ({scores}): keep that bundle; to improve on it, use "
                "more labels or a lower --learning-rate"
            )


def read_task(options: argparse.Namespace, settings: TrainSettings) -> PairTask:
    """Return the task of the files named on the command line.

    Raises:
        InvalidInput: a file is invalid, or the positive class is unknown.
    """
    pairs = read_pairs(options.pairs, companies=options.companies, grade_one=options.grade_one, classes=options.classes)
    if options.classes is None and pairs.classes[0] != COMPETITOR_CLASSES[0]:
        raise InvalidInput(
            f"the positive class among {', '.join(pairs.classes)} is unknown: pass all of them as --classes, first the "
            "one whose texts are most similar; checkpoint selection expects the highest cosines for it"
        )
    return PairTask(settings, prepare(pairs, settings, selection=options.selection))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read pairs and settings, and train."""
    parser = argparse.ArgumentParser(
        description="Train a sentence encoder on labelled and unlabelled pairs.",
        epilog="Afterwards: python -m training.export --model OUTPUT/best --output bundles",
    )
    add = parser.add_argument
    add("--pairs", type=Path, nargs="+", required=True, help="CSV, TSV, JSONL or Parquet: see training/data/pairs.py")
    add("--companies", type=Path, help="JSONL of the companies in the pairs")
    add("--output", type=Path, required=True, help="folder of this run; run the command again to continue a killed run")
    add("--selection", type=int, default=SELECTION_ANCHORS, help="anchors held out for checkpoint selection (100)")
    grades = "how to treat pairs of grade 1 (related)"
    add("--grade-one", choices=["negative", "unlabelled"], default="negative", help=grades)
    add("--classes", nargs="+", help="the label classes, the positive one (the most similar texts) first")
    add_settings(parser)
    options = parser.parse_args(arguments)
    with refusing():
        settings = settings_of(options, TrainSettings)
        run(settings, lambda _processes: read_task(options, settings), output=options.output)


if __name__ == "__main__":
    main()
