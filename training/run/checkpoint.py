"""Checkpoints: the whole state of a run, as safetensors and JSON.

A checkpoint folder is complete or missing: a new one is written to a temporary folder, which is then renamed.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from similarity.errors import SimilarityError

FOLDER = "checkpoint"
MODEL_FILE, OPTIMISER_FILE, STATE_FILE = "model.safetensors", "optimiser.safetensors", "state.json"


class CheckpointMismatch(SimilarityError):
    """The checkpoint belongs to another run: other settings, data or model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The progress of a run: `step` steps are done, `best` are the best selection scores, `best_step` their step.

    `settings`, `data` (a fingerprint) and `start` (the initial model) identify the run; another run is refused.
    """

    step: int
    best: list[float] | None
    best_step: int | None
    settings: dict[str, Any]
    data: str
    start: dict[str, Any]


def save(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, state: State) -> None:
    """Write `folder/checkpoint`, replacing an older one."""
    draft, finished, old = folder / f"{FOLDER}.draft", folder / FOLDER, folder / f"{FOLDER}.old"
    for stale in (draft, old):
        shutil.rmtree(stale, ignore_errors=True)
    draft.mkdir(parents=True)
    weights = {name: value.detach().contiguous() for name, value in model.named_parameters()}
    save_file(weights, draft / MODEL_FILE)
    save_file(_optimiser_tensors(optimiser), draft / OPTIMISER_FILE)
    values = {name: getattr(state, name) for name in State.__slots__}
    (draft / STATE_FILE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    if finished.exists():
        finished.rename(old)
    draft.rename(finished)
    shutil.rmtree(old, ignore_errors=True)


def resume(
    folder: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    *,
    settings: dict[str, Any],
    data: str,
    start: dict[str, Any],
) -> State | None:
    """Restore model and optimiser from the checkpoint in `folder`, and return its state; None if there is none.

    Raises:
        CheckpointMismatch: the checkpoint is from another release, other settings, data or initial model.
    """
    finished, old = folder / FOLDER, folder / f"{FOLDER}.old"
    if not finished.exists() and old.exists():  # killed between the two renames
        old.rename(finished)
    if not finished.exists():
        return None
    values = json.loads((finished / STATE_FILE).read_text(encoding="utf-8"))
    if values.keys() != set(State.__slots__):
        raise CheckpointMismatch(f"{finished} was written by another release; choose another output folder")
    state = State(**values)
    _check(state, finished, settings=settings, data=data, start=start)
    weights = load_file(finished / MODEL_FILE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    _restore_optimiser(optimiser, load_file(finished / OPTIMISER_FILE))
    return state


def _check(state: State, folder: Path, *, settings: dict[str, Any], data: str, start: dict[str, Any]) -> None:
    changed = sorted(name for name in settings if settings[name] != state.settings.get(name))
    if changed:
        name = changed[0]
        raise CheckpointMismatch(
            f"{folder} was made with {name} = {state.settings.get(name)!r}, now it is {settings[name]!r}; "
            "use the same settings, or choose another output folder"
        )
    if start != state.start:
        raise CheckpointMismatch(
            f"{folder} began with another model than the one at {settings['model']} now; restore that model, or choose "
            "another output folder"
        )
    if data != state.data:
        raise CheckpointMismatch(f"{folder} was made from other pairs; restore them, or choose another output folder")


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimiser.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).contiguous()
        for number, values in state.items()
        for name, value in values.items()
    }


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    values: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, field = name.split(".", 1)
        values.setdefault(int(number), {})[field] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": values})
