"""The training loop.

    python -m training.train --pairs data/sample/pairs.csv --companies data/sample/companies.jsonl --output runs/first
    torchrun --nproc-per-node 4 -m training.train --pairs ... --output ...

The loop minimises the loss of one global batch, however the batch is cut into micro-batches and shared
among processes: all texts are encoded first, the loss is computed on all vectors and logits, and its
gradients go back through the texts one micro-batch at a time, each under the dropout it had before. A
run writes to its output folder

    best/           the model with the best selection score: `python -m training.export --model .../best`
    checkpoint/     the state to continue from; a killed run continues with the losses it would have had
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
from training.data.texts import chunks
from training.model.encoder import Encoder
from training.model.pair_model import PairModel
from training.options import add_settings, settings_of
from training.run import checkpoint
from training.run.journal import Clock, Journal, read_journal
from training.run.plots import plot_run
from training.run.processes import Processes, joined_processes
from training.run.task import Batches, PairTask, Task
from training.run.trained_run import SETTINGS_FILE, start_of

METRICS_FILE, BEST_FOLDER = "metrics.jsonl", "best"


class TrainingStopped(SimilarityError):
    """The loss is not a number; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The trained model as of its best step, with that step's selection scores."""

    model: PairModel
    encode: Encoder
    best: Mapping[str, float]
    best_step: int
    steps: int
    seconds: float


def fit(settings: TrainSettings, task: Task[Any], *, output: Path, processes: Processes, log: Log) -> Fitted:
    """Train, or continue from `output/checkpoint` if there is one, and leave the best model in `output/best`.

    Raises:
        TrainingStopped: the loss is not a number.
        checkpoint.NoFit: `output` holds another run's checkpoint.
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

    # The state of an earlier run.
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
    encoder.keep_lower_states(log)
    if not done and is_bundle(settings.source):
        selection_scores(encoder, task, step=0, journal=journal, log=log)  # the baseline that the run has to beat

    # The loop.
    clock = Clock(steps=steps, done=done, unit=task.unit)
    for step, batch in zip(range(done + 1, steps + 1), endless(task.batches, skip=done), strict=False):
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * learning_rate(step, steps, settings)
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

        # Checkpoint selection; of steps with the same first score the second score decides.
        if step == steps or (step % settings.evaluate_every == 0 and step >= task.selectable_from * steps):
            scores = selection_scores(encoder, task, step=step, journal=journal, log=log)
            reached = list(scores.values())
            if best is None or reached > best:
                best, best_step = reached, step
                if processes.is_first:
                    facts = {"settings": identity["settings"], "classes": task.classes, "step": step, "scores": scores}
                    save_best(output / BEST_FOLDER, encoder, {**facts, "start": start, **task.facts})
        if settings.checkpoint_every and step % settings.checkpoint_every == 0 and processes.is_first:
            state = checkpoint.State(step=step, best=best, best_step=best_step, **identity)
            checkpoint.save(output, model, optimiser, state)
    processes.wait()

    # The model as of its best step.
    model.load(output / BEST_FOLDER)
    model.eval()
    chosen = json.loads((output / BEST_FOLDER / SETTINGS_FILE).read_text(encoding="utf-8"))
    return Fitted(
        model=model, encode=encoder, best=chosen["scores"], best_step=chosen["step"], steps=steps, seconds=clock.seconds
    )


def backward(
    encoder: Encoder, task: Task[Any], batch: Any, *, step: int, steps: int, processes: Processes
) -> dict[str, float]:
    """Leave the gradients of the global batch's loss in the parameters; return the loss and its parts."""
    texts, lengths = batch.texts, encoder.texts.lengths
    mine = processes.mine(np.argsort(lengths[texts], kind="stable"))
    pieces = [mine[piece] for piece in chunks(texts[mine], lengths, micro_tokens=encoder.piece_tokens)]
    seeds = [piece_seed(encoder.seed, step, processes.rank, number) for number in range(len(pieces))]
    tokens = sum(len(piece) * int(lengths[texts[piece]].max()) for piece in pieces)
    kept = tokens <= encoder.micro_tokens

    # Encode all texts. Graphs that are too large to keep are computed again below.
    with torch.set_grad_enabled(kept):
        encoded = [encoder.rows(texts[piece], seed=seed) for piece, seed in zip(pieces, seeds, strict=True)]
    own = torch.cat([rows.detach() for rows in encoded] or [no_rows(encoder, texts)])
    places = np.concatenate([np.empty(0, dtype=np.int64), *pieces])
    outputs = processes.gather(own, places, count=len(texts)).requires_grad_()

    # The loss of the global batch; every process computes the same, and so the same gradients of the head.
    loss, parts = task.loss(encoder.model, outputs, batch, step=step, steps=steps)
    loss.backward()

    # Back through the texts.
    for piece, seed, rows in zip(pieces, seeds, encoded, strict=True):
        graph = rows if kept else encoder.rows(texts[piece], seed=seed)
        graph.backward(outputs.grad[torch.from_numpy(piece).to(outputs.device)])
    processes.sum_gradients(encoder.model.parameters_of_texts())
    return {"loss": float(loss.detach()), **parts}


def no_rows(encoder: Encoder, texts: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
    """Outputs of no text, for a process without one: a last batch may hold fewer texts than there are processes."""
    with torch.no_grad():
        return encoder.rows(texts[:1], seed=encoder.seed)[:0]


def learning_rate(step: int, steps: int, settings: TrainSettings) -> float:
    """Linear warm-up, then linear decay to `final_learning_rate` (or to `learning_rate`, if that is lower)."""
    warmup = max(1, round(settings.warmup * steps))
    if step <= warmup:
        return settings.learning_rate * step / warmup
    left = (steps - step) / max(1, steps - warmup)
    final = min(settings.final_learning_rate, settings.learning_rate)
    return final + left * (settings.learning_rate - final)


def parameter_groups(model: PairModel, settings: TrainSettings) -> list[dict[str, Any]]:
    """The trained parameters, the head's apart; a group's learning rate is `rate` times that of the step."""
    head, others = list[nn.Parameter](), list[nn.Parameter]()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (head if name.startswith("head.") else others).append(parameter)
    rate = (settings.head_learning_rate or settings.learning_rate) / settings.learning_rate
    groups = [{"params": others, "rate": 1.0}, {"params": head, "rate": rate}]
    return [group for group in groups if group["params"]]


def selection_scores(encoder: Encoder, task: Task[Any], *, step: int, journal: Journal, log: Log) -> dict[str, float]:
    """The selection scores after `step`, the deciding one first; written to the journal and logged."""
    encoder.model.eval()
    scores = dict(task.select(encoder))
    journal.write({"step": step, **scores})
    log(f"step {step:,}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    return scores


def save_best(folder: Path, encoder: Encoder, facts: Mapping[str, Any]) -> None:
    """Write model, head, tokenizer and training.json: a folder that `training.export` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder.model.save(folder)
    encoder.texts.tokenizer.save_pretrained(folder)
    (folder / SETTINGS_FILE).write_text(json.dumps(dict(facts), indent=2) + "\n", encoding="utf-8")


def endless(batches: Batches[Any], *, skip: int) -> Iterator[Any]:
    """The batches of epoch after epoch, without the first `skip`."""
    epoch, first = divmod(skip, batches.batches_per_epoch)
    while True:
        yield from batches.epoch(epoch, skip=first)
        epoch, first = epoch + 1, 0


def piece_seed(seed: int, step: int, rank: int, piece: int) -> int:
    """The seed of one piece's dropout: the same when it is encoded again, or when a killed run continues."""
    return int(np.random.SeedSequence([seed, step, rank, piece]).generate_state(1, np.uint64)[0] >> 1)


def run(settings: TrainSettings, task_of: Callable[[Processes, Log], Task[Any]], *, output: Path) -> None:
    """Train on the task that `task_of` makes in each process; plot the run and say where the model is."""
    with joined_processes() as processes:
        log = say if processes.is_first else quiet
        fitted = fit(settings, task_of(processes, log), output=output, processes=processes, log=log)
        if not processes.is_first:
            return
        plot_run(output / METRICS_FILE, output / "metrics.png")
        log(f"best at step {fitted.best_step}: {fitted.best}; in {output / BEST_FOLDER}")
        baseline = next((line for line in read_journal(output / METRICS_FILE) if line["step"] == 0), None)
        if baseline is not None and list(fitted.best.values()) <= [baseline[name] for name in fitted.best]:
            had = ", ".join(f"{name} {baseline[name]:.4f}" for name in fitted.best)
            log(
                f"no step beats the bundle that the run began with ({had}): keep that one, and give more labels or a "
                "lower --learning-rate"
            )


def read_task(options: argparse.Namespace, settings: TrainSettings) -> PairTask:
    """The task of the files named on the command line.

    Raises:
        InvalidInput: a file cannot be used, or nothing says which class marks the most similar texts.
    """
    pairs = read_pairs(options.pairs, companies=options.companies, grade_one=options.grade_one, classes=options.classes)
    if options.classes is None and pairs.classes[0] != COMPETITOR_CLASSES[0]:
        raise InvalidInput(
            f"which of the classes {', '.join(pairs.classes)} has the most similar texts? Name all of them with "
            "--classes, this one first: the best step is the one at which its pairs have the highest cosines"
        )
    return PairTask(settings, prepare(pairs, settings, selection=options.selection))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read pairs and settings, and train."""
    parser = argparse.ArgumentParser(
        description="Train an encoder on pairs of which only a few need a label.",
        epilog="Afterwards: python -m training.export --model OUTPUT/best --output bundles",
    )
    add = parser.add_argument
    add("--pairs", type=Path, nargs="+", required=True, help="CSV, TSV, JSONL or Parquet: see training/data/pairs.py")
    add("--companies", type=Path, help="JSONL of the companies that the pairs name")
    add("--output", type=Path, required=True, help="folder of this run; a killed run continues there")
    add(
        "--selection",
        type=int,
        default=SELECTION_ANCHORS,
        help=f"anchors held out for checkpoint selection ({SELECTION_ANCHORS})",
    )
    add("--grade-one", choices=["negative", "unlabelled"], default="negative", help="of graded pairs")
    add("--classes", nargs="+", help="of the labels, that of the most similar texts first")
    add_settings(parser)
    options = parser.parse_args(arguments)
    with refusing():
        settings = settings_of(options, TrainSettings)
        run(settings, lambda _processes, _log: read_task(options, settings), output=options.output)


if __name__ == "__main__":
    main()
