"""The training loop.

    python -m training.train --pairs data/sample/pairs.csv --companies data/sample/companies.jsonl --output runs/first
    torchrun --nproc-per-node 4 -m training.train --pairs ... --output ...

Each step minimises the loss of one global batch. Except for dropout, the loss does not depend on the number of
micro-batches or processes, because of gradient caching (Gao et al. 2021, https://arxiv.org/abs/2101.06983):

1. All texts of the batch are encoded.
2. The loss of the whole batch is computed, and its gradients with respect to the outputs of the encoder.
3. These gradients are propagated through the encoder, one micro-batch at a time, with the dropout mask of step 1.

A run writes these files to its output folder:

    best/           the model with the best selection scores: `python -m training.export --model .../best`
    checkpoint/     the state from which a killed run continues; its losses are the same as without the kill
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
from training.options import SEVERAL, add_settings, settings_of
from training.run import checkpoint
from training.run.journal import Clock, Journal, read_journal
from training.run.processes import Processes, joined_processes
from training.run.task import Batches, PairTask, Task
from training.run.trained_run import SETTINGS_FILE, refuse_another_run, start_of

METRICS_FILE, BEST_FOLDER = "metrics.jsonl", "best"


class TrainingStopped(SimilarityError):
    """Raised if the loss is NaN or infinite; the message says which setting to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """The trained model with the weights of its best step, and the selection scores of that step.

    `best`: the scores by name. `steps`: number of steps of the run. `seconds`: time since it was started or continued.
    """

    model: PairModel
    encoder: Encoder
    best: Mapping[str, float]
    best_step: int
    steps: int
    seconds: float


def fit(settings: TrainSettings, task: Task, *, output: Path, processes: Processes, log: Log) -> TrainingResult:
    """Train and return the model of the best step, which is also saved in `output/best`.

    If there is a checkpoint in `output/checkpoint`, the run continues from it.

    Raises:
        TrainingStopped: the loss is NaN or infinite.
        checkpoint.CheckpointMismatch: `output` contains the checkpoint of another run.
        InvalidInput: the settings do not fit the model.
    """
    # Create model and optimiser.
    device = processes.device
    encoder = Encoder(task.load_model(settings), task.texts, settings, device=device)
    model = encoder.model
    trained_parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(
        parameter_groups(model, settings), weight_decay=settings.weight_decay, fused=device.type in ("cuda", "cpu")
    )

    # Restore the checkpoint of this run, if there is one.
    steps = settings.steps or math.ceil(settings.epochs * task.batches.batches_per_epoch)
    start = start_of(settings.source).as_json()  # the model from which the run starts
    identity: dict[str, Any] = {"settings": settings_values(settings), "data": task.fingerprint, "start": start}
    state = checkpoint.resume(output, model, optimiser, **identity)
    if state is None:
        refuse_another_run(output / BEST_FOLDER, **identity)
    last_step, best, best_step = (state.step, state.best, state.best_step) if state else (0, None, None)
    # The journal of a new run keeps no line, not even of step 0.
    journal = Journal(output / METRICS_FILE if processes.is_first else None, keep_until=last_step if state else -1)
    log(
        f"{settings.method}: {task.data}; {steps:,} steps of {task.batch} on {processes.count} x {device.type}, "
        f"{encoder.precision}" + (f"; continuing after step {last_step}" if last_step else "")
    )
    encoder.cache_lower_states(log)
    if not last_step and is_bundle(settings.source):
        # The scores of the bundle from which the run starts: `run` compares the best step with them.
        selection_scores(encoder, task, step=0, journal=journal, log=log)

    clock = Clock(steps=steps, done=last_step, unit=task.unit)
    batches = endless_batches(task.batches, skip=last_step)
    for step, batch in zip(range(last_step + 1, steps + 1), batches, strict=False):
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = group["lr_scale"] * learning_rate(step, steps, settings)
        optimiser.zero_grad(set_to_none=True)
        parts = backward(encoder, task, batch, step=step, steps=steps, processes=processes)
        refuse_non_finite(parts, step=step)
        if settings.clip_norm:
            parts["gradient_norm"] = float(nn.utils.clip_grad_norm_(trained_parameters, settings.clip_norm))
        optimiser.step()
        clock.count(len(batch))
        journal.write({"step": step, "learning_rate": optimiser.param_groups[0]["lr"], **parts, **clock.speed()})
        if clock.due():
            log(f"step {step:,}/{steps:,}: loss {parts['loss']:.4f}, {clock}")

        # Checkpoint selection. Lists are compared item by item: the second scores decide if the first ones are equal.
        if step == steps or (step % settings.evaluate_every == 0 and step >= task.selectable_from * steps):
            scores = selection_scores(encoder, task, step=step, journal=journal, log=log)
            if best is None or list(scores.values()) > best:
                best, best_step = list(scores.values()), step
                if processes.is_first:
                    run_facts = {"classes": task.classes, "step": step, "scores": scores, **task.facts}
                    save_best(output / BEST_FOLDER, encoder, {**run_facts, **identity})
        if settings.checkpoint_every and step % settings.checkpoint_every == 0 and processes.is_first:
            state = checkpoint.State(step=step, best=best, best_step=best_step, **identity)
            checkpoint.save(output, model, optimiser, state)
    processes.wait()

    return best_result(output / BEST_FOLDER, encoder, steps=steps, seconds=clock.seconds)


def backward(
    encoder: Encoder, task: Task, batch: Any, *, step: int, steps: int, processes: Processes
) -> dict[str, float]:
    """Compute the loss of a global batch, add its gradients to the parameters, and return it with its parts."""
    texts, lengths = batch.texts, encoder.texts.lengths
    local_rows = processes.local_share(np.argsort(lengths[texts], kind="stable"))  # rows of `texts` for this process
    micro_batches = [
        local_rows[rows] for rows in micro_batches_of(texts[local_rows], lengths, tokens=encoder.micro_batch_tokens)
    ]
    seeds = [dropout_seed(encoder.seed, step, processes.rank, number) for number in range(len(micro_batches))]
    padded_tokens = sum(len(rows) * int(lengths[texts[rows]].max()) for rows in micro_batches)
    keep_graphs = padded_tokens <= encoder.micro_tokens

    # Encode all texts. If their autograd graphs would need too much memory, each micro-batch is encoded again below.
    with torch.set_grad_enabled(keep_graphs):
        encoded = [encoder.rows(texts[rows], seed=seed) for rows, seed in zip(micro_batches, seeds, strict=True)]
    local_outputs = torch.cat([each.detach() for each in encoded] or [no_outputs(encoder, texts)])
    encoded_rows = np.concatenate([np.empty(0, dtype=np.int64), *micro_batches])
    outputs = processes.gather(local_outputs, encoded_rows, count=len(texts)).requires_grad_()

    # Each process computes the loss of the whole batch, and therefore the same gradients of the head.
    loss, parts = task.loss(encoder.model, outputs, batch, step=step, steps=steps)
    loss.backward()

    # Propagate the gradients of the outputs through the encoder, one micro-batch at a time.
    for rows, seed, encoded_before in zip(micro_batches, seeds, encoded, strict=True):
        micro_outputs = encoded_before if keep_graphs else encoder.rows(texts[rows], seed=seed)
        micro_outputs.backward(outputs.grad[torch.from_numpy(rows).to(outputs.device)])
    processes.sum_gradients(encoder.model.trained_encoder_parameters())
    return {"loss": float(loss.detach()), **parts}


def refuse_non_finite(parts: Mapping[str, float], *, step: int) -> None:
    """Raise TrainingStopped if the loss is NaN or infinite; `parts`: the loss and its parts."""
    if not math.isfinite(parts["loss"]):
        listed = ", ".join(f"{name} {value:.3g}" for name, value in parts.items())
        raise TrainingStopped(
            f"the loss is {parts['loss']} at step {step} ({listed}); lower the learning rate, or train with precision "
            "float32"
        )


def no_outputs(encoder: Encoder, texts: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
    """Return outputs `[0, d]`, for a process without texts: the last batch may have fewer texts than processes."""
    with torch.no_grad():
        return encoder.rows(texts[:1], seed=encoder.seed)[:0]


def learning_rate(step: int, steps: int, settings: TrainSettings) -> float:
    """Return the learning rate of a step (from 1): linear warm-up, then linear decay.

    The decay ends at `final_learning_rate`; if that is above `learning_rate`, there is no decay.
    """
    warmup = max(1, round(settings.warmup * steps))
    if step <= warmup:
        return settings.learning_rate * step / warmup
    remaining = (steps - step) / max(1, steps - warmup)
    final = min(settings.final_learning_rate, settings.learning_rate)
    return final + remaining * (settings.learning_rate - final)


def parameter_groups(model: PairModel, settings: TrainSettings) -> list[dict[str, Any]]:
    """Return the optimiser groups of encoder and head, without empty ones.

    The learning rate of a group is its `lr_scale` times `learning_rate(step, ...)`.
    """
    encoder_parameters = model.trained_encoder_parameters()
    head_parameters = [parameter for parameter in model.head.parameters() if parameter.requires_grad]
    head_scale = (settings.head_learning_rate or settings.learning_rate) / settings.learning_rate
    groups = [{"params": encoder_parameters, "lr_scale": 1.0}, {"params": head_parameters, "lr_scale": head_scale}]
    return [group for group in groups if group["params"]]


def selection_scores(encoder: Encoder, task: Task, *, step: int, journal: Journal, log: Log) -> dict[str, float]:
    """Return the selection scores after `step`, the most important one first; write them to the journal and the log."""
    encoder.model.eval()
    scores = dict(task.select(encoder))
    journal.write({"step": step, **scores})
    log(f"step {step:,}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    return scores


def save_best(folder: Path, encoder: Encoder, run_facts: Mapping[str, Any]) -> None:
    """Write model, head, tokenizer and training.json (`run_facts`) to a folder that `training.export` can read."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder.model.save(folder)
    encoder.texts.tokenizer.save_pretrained(folder)
    (folder / SETTINGS_FILE).write_text(json.dumps(dict(run_facts), indent=2) + "\n", encoding="utf-8")


def best_result(folder: Path, encoder: Encoder, *, steps: int, seconds: float) -> TrainingResult:
    """Load the weights that `save_best` wrote into the model of `encoder`, and return the result of the run."""
    model = encoder.model
    model.load(folder)
    model.eval()
    saved = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    return TrainingResult(
        model=model, encoder=encoder, best=saved["scores"], best_step=saved["step"], steps=steps, seconds=seconds
    )


def endless_batches(batches: Batches, *, skip: int) -> Iterator[Any]:
    """Yield the batches of epoch after epoch without end, except the first `skip` batches."""
    epoch, first = divmod(skip, batches.batches_per_epoch)
    while True:
        yield from batches.epoch(epoch, skip=first)
        epoch, first = epoch + 1, 0


def dropout_seed(seed: int, step: int, rank: int, micro_batch: int) -> int:
    """Return the dropout seed of a micro-batch; it is the same if the micro-batch is encoded again or a run resumed."""
    return int(np.random.SeedSequence([seed, step, rank, micro_batch]).generate_state(1, np.uint64)[0] >> 1)


def run(settings: TrainSettings, make_task: Callable[[Processes], Task], *, output: Path) -> None:
    """Train on the task that `make_task` returns in each process, and log where the best model is."""
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
                f"no step beats the bundle from which the run started ({scores}): keep that bundle, or train "
                "again with more labels or a lower --learning-rate"
            )


def read_task(options: argparse.Namespace, settings: TrainSettings) -> PairTask:
    """Return the task for the files that the command line names.

    Raises:
        InvalidInput: a file is invalid, or it is unknown which class is the positive one.
    """
    pairs = read_pairs(options.pairs, companies=options.companies, grade_one=options.grade_one, classes=options.classes)
    if options.classes is None and pairs.classes[0] != COMPETITOR_CLASSES[0]:
        raise InvalidInput(
            f"the positive class among {', '.join(pairs.classes)} is unknown: pass all classes as --classes, the class "
            "with the most similar texts first; checkpoint selection expects the highest cosines for this class"
        )
    return PairTask(settings, prepare(pairs, settings, selection=options.selection))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read pairs and settings, and train."""
    parser = argparse.ArgumentParser(
        description="Train a sentence encoder on labelled and unlabelled pairs.",
        epilog="Afterwards: python -m training.export --model OUTPUT/best --output bundles",
    )
    add = parser.add_argument
    pair_files = "files of pairs: CSV, TSV, JSONL or Parquet (see training/data/pairs.py)"
    add("--pairs", type=Path, **SEVERAL, required=True, help=pair_files)
    add("--companies", type=Path, help="JSONL file of the companies in the pairs")
    add("--output", type=Path, required=True, help="folder of this run; run the command again to continue a killed run")
    add("--selection", type=int, default=SELECTION_ANCHORS, help="anchors held out for checkpoint selection (100)")
    grades = "how to treat pairs of grade 1 (related)"
    add("--grade-one", choices=["negative", "unlabelled"], default="negative", help=grades)
    add(
        "--classes",
        **SEVERAL,
        help="the classes of the labels, the positive class (the most similar texts) first",
    )
    add_settings(parser)
    options = parser.parse_args(arguments)
    with refusing():
        settings = settings_of(options, TrainSettings)
        run(settings, lambda _processes: read_task(options, settings), output=options.output)


if __name__ == "__main__":
    main()
