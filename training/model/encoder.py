"""Encodes texts with a model in training: with gradients for the loop, without them for checkpoint selection."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from training.config import TrainSettings
from training.console import Log
from training.data.pairs import Integers
from training.data.texts import Texts, micro_batches_of
from training.model.pair_model import PairModel
from training.model.precision import autocast, chosen_precision
from training.run.journal import Clock

# A CPU is fastest with micro-batches that fit its caches; a GPU, with micro-batches that fill its memory.
CPU_MICRO_BATCH_TOKENS = 4_096


class Encoder:
    """A model in training with its texts; calling it returns unit vectors (an `Encode` for checkpoint selection).

    `micro_tokens` limits the tokens whose autograd graphs are kept, `micro_batch_tokens` the tokens of a forward pass.
    """

    def __init__(self, model: PairModel, texts: Texts, settings: TrainSettings, *, device: torch.device) -> None:
        self.model = model.to(device)
        self.texts = texts
        self.micro_tokens = settings.micro_tokens
        self.micro_batch_tokens = (
            min(settings.micro_tokens, CPU_MICRO_BATCH_TOKENS) if device.type == "cpu" else self.micro_tokens
        )
        self.seed = settings.seed
        self.precision = chosen_precision(settings.precision, device)
        self.device = device
        self._encode = torch.compile(model.encode, dynamic=True) if settings.compile else model.encode

    def rows(self, numbers: Integers, *, seed: int | None = None) -> Tensor:
        """Return the model's outputs for the texts `numbers`, float32 `[numbers, d]`; `seed`: for dropout.

        The input is the cached output of the frozen layers or, if there is none, the token ids.
        """
        if seed is not None:
            torch.manual_seed(seed)
        ids, mask = (tensor.to(self.device, non_blocking=True) for tensor in self.texts.padded(numbers))
        with autocast(self.precision, self.device):
            states = self.texts.padded_states(numbers) if self.model.frozen_layers else None
            return (
                self._encode(ids, mask)
                if states is None
                else self.model.encode_from_lower_states(states.to(self.device), mask)
            )

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Return vectors float32 `[texts, d]` in evaluation mode, not normalised: the head's input."""
        self.model.eval()
        numbers = self.texts.numbers(texts)
        distinct, row_of = np.unique(numbers, return_inverse=True)
        vectors = torch.empty(len(distinct), self.model.dimension, device=self.device)
        with torch.no_grad():
            for rows in micro_batches_of(distinct, self.texts.lengths, tokens=self.micro_batch_tokens):
                vectors[torch.from_numpy(rows).to(self.device)] = self.rows(distinct[rows])
        return vectors[torch.from_numpy(row_of).to(self.device)]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors float32 `[texts, d]` in evaluation mode, as the search uses them."""
        unit: NDArray[np.float32] = nn.functional.normalize(self.vectors(texts), dim=1).cpu().numpy()
        return unit

    def cache_lower_states(self, log: Log) -> None:
        """Compute and cache the output of the frozen layers for every text, once."""
        if not self.model.frozen_layers or self.texts.states:
            return
        log(f"states of the {self.model.frozen_layers} frozen layers for {len(self.texts):,} texts ...")
        numbers = np.arange(len(self.texts))
        micro_batches = list(micro_batches_of(numbers, self.texts.lengths, tokens=self.micro_batch_tokens))
        clock = Clock(steps=len(micro_batches), done=0, unit="texts")
        for rows in micro_batches:
            ids, mask = (tensor.to(self.device) for tensor in self.texts.padded(rows))
            with torch.no_grad(), autocast(self.precision, self.device):
                states = self.model.lower_states(ids, mask)
            states = states.to(torch.bfloat16 if self.precision == "bfloat16" else torch.float32).cpu()
            for number, state in zip(rows, states, strict=True):
                self.texts.states[int(number)] = state[: len(self.texts.tokens[number])].clone()
            clock.count(len(rows))
            if clock.due():
                log(f"states: {clock}")
