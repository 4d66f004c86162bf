"""Texts to vectors by a model in training: with gradients for the loop, without for selection and evaluation."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from training.config import Precision, TrainSettings
from training.data.batches import Integers
from training.data.texts import Texts, chunks
from training.model.pair_model import PairModel
from training.model.precision import autocast
from training.run.journal import Clock

# A CPU is quickest with what its caches hold, of like length; a GPU wants all it can get.
CPU_PIECE_TOKENS = 4_096

Log = Callable[[str], None]
Run = Callable[[Tensor, Tensor], Tensor]


class Encoder:
    """Numbers of texts to vectors, as the run computes them; called with texts it is what selection evaluates."""

    def __init__(
        self, model: PairModel, texts: Texts, settings: TrainSettings, *, autocast_to: Precision, device: torch.device
    ) -> None:
        self.model = model
        self.texts = texts
        self.micro_tokens = settings.micro_tokens
        self.piece_tokens = min(settings.micro_tokens, CPU_PIECE_TOKENS) if device.type == "cpu" else self.micro_tokens
        self.seed = settings.seed
        self.precision = autocast_to
        self.device = device
        self._encode, self._outputs = (
            torch.compile(run, dynamic=True) if settings.compile else run for run in (model.encode, model.outputs)
        )

    def rows(self, numbers: Integers, *, seed: int | None = None) -> Tensor:
        """Vectors float32 `[numbers, d]`; what is random in it (dropout) comes from `seed`."""
        return self._run(numbers, self._encode, self.model.pool, seed=seed)

    def outputs(self, numbers: Integers, *, seed: int, length: int) -> Tensor:
        """What a loss sees of these texts (`training.model.View`); tokens' states are padded to `length`."""
        outputs = self._run(numbers, self._outputs, self.model.outputs_above, seed=seed)
        if self.model.view != "tokens":
            return outputs
        return nn.functional.pad(outputs, (0, 0, 0, length - outputs.shape[1]))

    def _run(self, numbers: Integers, whole: Run, above: Run, *, seed: int | None) -> Tensor:
        """The model from the ids on, or from the states of frozen layers on where they are kept."""
        if seed is not None:
            torch.manual_seed(seed)
        ids, mask = (tensor.to(self.device, non_blocking=True) for tensor in self.texts.padded(numbers))
        with autocast(self.precision, self.device):
            states = self.texts.padded_states(numbers) if self.model.frozen_layers else None
            return whole(ids, mask) if states is None else above(states.to(self.device), mask)

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Vectors float32 `[texts, d]` as the head sees them, not normalised, in evaluation mode."""
        self.model.eval()
        numbers = self.texts.numbers(texts)
        distinct, place = np.unique(numbers, return_inverse=True)
        found = torch.empty(len(distinct), self.model.dimension, device=self.device)
        with torch.no_grad():
            for piece in chunks(distinct, self.texts.lengths, micro_tokens=self.piece_tokens):
                found[torch.from_numpy(piece).to(self.device)] = self.rows(distinct[piece])
        return found[torch.from_numpy(place).to(self.device)]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 `[texts, d]` in evaluation mode: what is served."""
        unit: NDArray[np.float32] = nn.functional.normalize(self.vectors(texts), dim=1).cpu().numpy()
        return unit

    def keep_lower_states(self, log: Log) -> None:
        """Computes what the frozen layers make of every text, once."""
        if not self.model.frozen_layers or self.texts.states:
            return
        log(f"states of the {self.model.frozen_layers} frozen layers for {len(self.texts):,} texts ...")
        everything = np.arange(len(self.texts))
        pieces = list(chunks(everything, self.texts.lengths, micro_tokens=self.piece_tokens))
        clock = Clock(steps=len(pieces), done=0, unit="texts")
        for piece in pieces:
            ids, mask = (tensor.to(self.device) for tensor in self.texts.padded(piece))
            with torch.no_grad(), autocast(self.precision, self.device):
                states = self.model.lower_states(ids, mask)
            states = states.to(torch.bfloat16 if self.precision == "bfloat16" else torch.float32).cpu()
            for number, state in zip(piece, states, strict=True):
                self.texts.states[int(number)] = state[: len(self.texts.tokens[number])].clone()
            clock.count(len(piece))
            if clock.due():
                log(f"states: {clock}")
