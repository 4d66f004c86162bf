"""The training loop, top to bottom.

    python -m training.train --pairs data/sample/pairs.csv --companies data/sample/companies.jsonl --output runs/first
    torchrun --nproc-per-node 4 -m training.train --pairs ... --output ...
    python -m training.train --method is-bert --companies data/sample/companies.jsonl --output runs/sentences

What is minimised is an objective (training.losses.objectives) of one global batch, however it is cut into
micro-batches and shared among processes: all texts are encoded first, the loss is computed on all
vectors and logits, and its gradients go back through the texts a micro-batch at a time, each under
the dropout it had before. A run writes to its output folder

    best/           the model with the best selection score: `python -m training.export --model .../best`
    checkpoint/     to go on from; a run that was killed goes on exactly where it was
    metrics.jsonl   loss, its parts, learning rate and speed of each step; the selection scores
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from similarity.bundle import is_bundle
from similarity.errors import SimilarityError
from training.config import RECIPES, SENTENCE_METHODS, TrainSettings, settings_values
from training.console import quiet, say
from training.data.batches import Batch, Integers, SentenceBatch, TextBatch
from training.data.sources import Sources, read_sources
from training.data.texts import Texts, chunks
from training.model.encoder import Encoder
from training.model.pair_model import PairModel, load_pair_model, load_weights
from training.model.precision import chosen_precision
from training.options import add_settings, checked_settings
from training.run import checkpoint
from training.run.journal import Clock, Journal, read_journal
from training.run.plots import plot_run
from training.run.processes import Processes, joined_processes
from training.run.task import AnyData, Batches, Task, task_of
from training.run.trained_run import SETTINGS_FILE, start_of

METRICS_FILE, BEST_FOLDER = "metrics.jsonl", "best"

Log = Callable[[str], None]


class TrainingStopped(Exception):
    """Going on would only waste time; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The trained model as of its best step, and what was measured on the way."""

    model: PairModel
    encode: Encoder
    best: Mapping[str, float]
    best_step: int
    steps: int
    seconds: float


def learning_rate(step: int, steps: int, settings: TrainSettings) -> float:
    """Of step 1...`steps`: linear warm-up, then linear decay to `final_learning_rate`, or as it is if lower."""
    warmup = max(1, round(settings.warmup * steps))
    if step <= warmup:
        return settings.learning_rate * step / warmup
    left = (steps - step) / max(1, steps - warmup)
    final = min(settings.final_learning_rate, settings.learning_rate)
    return final + left * (settings.learning_rate - final)


def parameter_groups(model: PairModel, settings: TrainSettings) -> list[dict[str, Any]]:
    """What is trained: the head, if there is one, and the rest; a group's learning rate is `rate` times the step's."""
    head, others = list[nn.Parameter](), list[nn.Parameter]()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (head if name.startswith("head.") else others).append(parameter)
    rate = (settings.head_learning_rate or settings.learning_rate) / settings.learning_rate
    groups = [{"params": others, "rate": 1.0}, {"params": head, "rate": rate}]
    return [group for group in groups if group["params"]]


def fit(settings: TrainSettings, data: AnyData, *, output: Path, processes: Processes, log: Log) -> Fitted:
    """Trains, goes on from `output/checkpoint` if there is one, and leaves the best model in `output/best`.

    Raises:
        TrainingStopped: the loss is not a number.
        checkpoint.NoFit: `output` holds another run's checkpoint.
        ValueError: the settings do not fit data or model.
    """
    # What is learnt from what; the model.
    device = processes.device
    task = task_of(settings, data)
    model = load_pair_model(
        settings.source,
        classes=len(task.classes),
        features=settings.features,
        symmetric=settings.symmetric,
        frozen_layers=settings.frozen_layers,
        seed=settings.seed,
        view=task.view,
        windows=settings.windows,
    ).to(device)
    precision = chosen_precision(settings.precision, device)
    encoder = Encoder(model, data.texts, settings, autocast_to=precision, device=device)
    steps = settings.steps or math.ceil(settings.epochs * task.batches.batches_per_epoch)

    # Optimiser, and where an earlier run was.
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(
        parameter_groups(model, settings), weight_decay=settings.weight_decay, fused=device.type in ("cuda", "cpu")
    )
    names = settings_values(settings)
    start = start_of(settings.source).as_json()
    identity: dict[str, Any] = {"settings": names, "data": task.fingerprint, "start": start}
    state = checkpoint.resume(output, model, optimiser, **identity)
    done = state.step if state else 0
    best, best_step = (state.best, state.best_step) if state else (None, None)
    journal = Journal(output / METRICS_FILE if processes.is_first else None, keep_until=done if state else -1)
    log(
        f"{settings.method}: {task.data}; {steps:,} steps of {task.batch} "
        f"on {processes.count} x {device.type}, {precision}" + (f"; going on after step {done}" if done else "")
    )
    encoder.keep_lower_states(log)
    if not done and is_bundle(settings.source):
        selection_scores(encoder, data, step=0, journal=journal, log=log)  # what the run has to beat

    # The loop.
    clock = Clock(steps=steps, done=done, unit=task.unit)
    for step, batch in zip(range(done + 1, steps + 1), endless(task.batches, skip=done), strict=False):
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * learning_rate(step, steps, settings)
        optimiser.zero_grad(set_to_none=True)
        parts = backward(model, encoder, batch, task, step=step, steps=steps, processes=processes)
        if not math.isfinite(parts["loss"]):
            raise TrainingStopped(
                f"the loss is {parts['loss']} at step {step} ({', '.join(f'{k} {v:.3g}' for k, v in parts.items())}); "
                "lower the learning rate, or train with precision float32"
            )
        if settings.clip_norm:
            parts["gradient_norm"] = float(nn.utils.clip_grad_norm_(trained, settings.clip_norm))
        optimiser.step()
        clock.count(task.size(batch))
        journal.write({"step": step, "learning_rate": optimiser.param_groups[0]["lr"], **parts, **clock.speed()})
        if clock.due():
            log(f"step {step:,}/{steps:,}: loss {parts['loss']:.4f}, {clock}")

        # Selection. An annealed loss is not chosen from before its second part counts.
        if step == steps or (step % settings.evaluate_every == 0 and step >= task.selectable_from * steps):
            scores = selection_scores(encoder, data, step=step, journal=journal, log=log)
            reached = list(scores.values())  # of two that reach the same in the first, the second score decides
            if best is None or reached > best:
                best, best_step = reached, step
                if processes.is_first:
                    chosen = {"settings": names, "classes": task.classes, "step": step, "scores": scores}
                    save_best(output / BEST_FOLDER, model, data.texts, told={**chosen, "start": start, **task.told})
        if settings.checkpoint_every and step % settings.checkpoint_every == 0 and processes.is_first:
            state = checkpoint.State(step=step, best=best, best_step=best_step, **identity)
            checkpoint.save(output, model, optimiser, state)
    processes.wait()

    # The model as of its best step.
    load_weights(model, output / BEST_FOLDER)
    model.second = None  # f alone makes the vectors
    model.eval()
    told = json.loads((output / BEST_FOLDER / SETTINGS_FILE).read_text(encoding="utf-8"))
    return Fitted(
        model=model, encode=encoder, best=told["scores"], best_step=told["step"], steps=steps, seconds=clock.seconds
    )


def backward(
    model: PairModel,
    encoder: Encoder,
    batch: Batch | SentenceBatch | TextBatch,
    task: Task[Any],
    *,
    step: int,
    steps: int,
    processes: Processes,
) -> dict[str, float]:
    """Leaves the gradients of the loss of the whole global batch in the parameters; returns the loss and its parts."""
    lengths = encoder.texts.lengths
    longest = int(lengths[batch.texts].max())
    mine = processes.mine(np.argsort(lengths[batch.texts], kind="stable"))
    pieces = [mine[piece] for piece in chunks(batch.texts[mine], lengths, micro_tokens=encoder.piece_tokens)]
    seeds = [piece_seed(encoder.seed, step, processes.rank, number) for number in range(len(pieces))]
    tokens = sum(len(piece) * int(lengths[batch.texts[piece]].max()) for piece in pieces)
    kept = tokens <= encoder.micro_tokens

    # What the model makes of all texts; what is too much to keep with its graph is encoded again below.
    def made(number: int) -> Tensor:
        return encoder.outputs(batch.texts[pieces[number]], seed=seeds[number], length=longest)

    with torch.set_grad_enabled(kept):
        encoded = [made(number) for number in range(len(pieces))]
    own = torch.cat([outputs.detach() for outputs in encoded] or [_nothing_of(encoder, batch.texts, length=longest)])
    rows = np.concatenate([np.empty(0, dtype=np.int64), *pieces])
    outputs = processes.gather(own, rows, count=len(batch.texts)).requires_grad_()

    # The loss of the global batch; every process computes the same, and so the same gradients of the head.
    loss, parts = task.loss(model, outputs, batch, lengths=lengths[batch.texts], step=step, steps=steps)
    loss.backward()

    # Back through the texts.
    gradients = outputs.grad
    for number, piece in enumerate(pieces):
        again = encoded[number] if kept else made(number)
        again.backward(gradients[torch.from_numpy(piece).to(outputs.device)])
    processes.sum_gradients(model.parameters_of_texts())
    return {"loss": float(loss.detach()), **parts}


def _nothing_of(encoder: Encoder, numbers: Integers, *, length: int) -> Tensor:
    """What a process gives that has no text (a last batch may hold fewer than there are processes): no row."""
    with torch.no_grad():
        return encoder.outputs(numbers[:1], seed=encoder.seed, length=length)[:0]


def selection_scores(encoder: Encoder, data: AnyData, *, step: int, journal: Journal, log: Log) -> dict[str, float]:
    """What selection says of the model after `step`, the score that decides first; written down and logged."""
    encoder.model.eval()
    scores = dict(data.select(encoder))
    journal.write({"step": step, **scores})
    log(f"step {step:,}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    return scores


def compare_with_start(output: Path, fitted: Fitted, log: Log) -> None:
    """Says so where training has not beaten the bundle that it began with."""
    start = next((line for line in read_journal(output / METRICS_FILE) if line["step"] == 0), None)
    if start is not None and list(fitted.best.values()) <= [start[name] for name in fitted.best]:
        had = ", ".join(f"{name} {start[name]:.4f}" for name in fitted.best)
        log(
            f"no step beats the bundle that the run began with ({had}): keep that one, and give more labels or a "
            "lower --learning-rate"
        )


def save_best(
    folder: Path,
    model: PairModel,
    texts: Texts,
    *,
    told: Mapping[str, Any],
) -> None:
    """Model, head, tokenizer, and what they are: a folder that `training.export` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder)
    texts.tokenizer.save_pretrained(folder)
    (folder / SETTINGS_FILE).write_text(json.dumps(dict(told), indent=2) + "\n", encoding="utf-8")


def endless(batches: Batches[Any], *, skip: int) -> Iterator[Batch | SentenceBatch | TextBatch]:
    """Batches of epoch after epoch, without the first `skip`."""
    epoch, first = divmod(skip, batches.batches_per_epoch)
    while True:
        yield from batches.epoch(epoch, skip=first)
        epoch, first = epoch + 1, 0


def piece_seed(seed: int, step: int, rank: int, piece: int) -> int:
    """The seed of one piece's dropout: the same when it is encoded again, or when the run goes on after a kill."""
    return int(np.random.SeedSequence([seed, step, rank, piece]).generate_state(1, np.uint64)[0] >> 1)


def run(settings: TrainSettings, read: Callable[[Processes, Log], AnyData], *, output: Path) -> None:
    """Trains on what `read` gives to each process, draws the run, and says where the model is.

    Raises:
        SystemExit: with the reason in one line, where data or settings cannot be used or training is of no use.
    """
    try:
        with joined_processes() as processes:
            log = say if processes.is_first else quiet
            fitted = fit(settings, read(processes, log), output=output, processes=processes, log=log)
            if processes.is_first:
                plot_run(output / METRICS_FILE, output / "metrics.png")
                log(f"best at step {fitted.best_step}: {fitted.best}; in {output / BEST_FOLDER}")
                compare_with_start(output, fitted, log)
    except (ValueError, SimilarityError, TrainingStopped, checkpoint.NoFit) as error:
        sys.exit(f"refused: {error}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads pairs and settings, and trains."""
    parser = argparse.ArgumentParser(
        description="Train an encoder on pairs of which only a few need a label, or on descriptions alone.",
        epilog="Afterwards: python -m training.export --model OUTPUT/best --output bundles",
    )
    parser.add_argument(
        "--pairs",
        type=Path,
        nargs="+",
        help=f"CSV, TSV, JSONL or Parquet: see training/data/pairs.py. {', '.join(SENTENCE_METHODS)} need none; "
        "given, theirs choose the best step",
    )
    parser.add_argument(
        "--companies",
        type=Path,
        help="JSONL of the companies that the pairs name, or whose descriptions are learnt from (for these also .txt)",
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of this run; a killed run goes on there")
    parser.add_argument(
        "--selection", type=int, default=100, help="anchors, or descriptions, kept to choose the best step (100)"
    )
    parser.add_argument("--grade-one", choices=["negative", "unlabelled"], default="negative", help="of graded pairs")
    parser.add_argument("--classes", nargs="+", help="of the labels, those of the most alike texts first")
    add_settings(parser)
    options = parser.parse_args(arguments)
    sources = Sources(
        pairs=options.pairs,
        companies=options.companies,
        selection=options.selection,
        grade_one=options.grade_one,
        classes=options.classes,
    )
    settings = checked_settings(options, RECIPES.get(getattr(options, "method", TrainSettings().method)))
    run(settings, lambda _processes, _log: read_sources(sources, settings), output=options.output)


if __name__ == "__main__":
    main()
