"""Encodes texts with a model in training: with gradients for the loop, without them for selection."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from training.config import TrainSettings
from training.console import Log
from training.data.batches import Integers
from training.data.texts import Texts, chunks
from training.model.pair_model import PairModel
from training.model.precision import autocast, chosen_precision
from training.run.journal import Clock

# A CPU is fastest with pieces that fit its caches; a GPU, with pieces that fill its memory.
CPU_PIECE_TOKENS = 4_096


class Encoder:
    """Vectors of texts by a model in training; called with texts, an `Encode` for checkpoint selection."""

    def __init__(self, model: PairModel, texts: Texts, settings: TrainSettings, *, device: torch.device) -> None:
        self.model = model.to(device)
        self.texts = texts
        self.micro_tokens = settings.micro_tokens
        self.piece_tokens = min(settings.micro_tokens, CPU_PIECE_TOKENS) if device.type == "cpu" else self.micro_tokens
        self.seed = settings.seed
        self.precision = chosen_precision(settings.precision, device)
        self.device = device
        self._encode = torch.compile(model.encode, dynamic=True) if settings.compile else model.encode

    def rows(self, numbers: Integers, *, seed: int | None = None) -> Tensor:
        """The model's outputs for the texts with these numbers, float32 `[numbers, d]`; dropout is drawn from `seed`.

        Starts from the cached states of the frozen layers, or from the token ids.
        """
        if seed is not None:
            torch.manual_seed(seed)
        ids, mask = (tensor.to(self.device, non_blocking=True) for tensor in self.texts.padded(numbers))
        with autocast(self.precision, self.device):
            states = self.texts.padded_states(numbers) if self.model.frozen_layers else None
            return self._encode(ids, mask) if states is None else self.model.pool(states.to(self.device), mask)

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Vectors float32 `[texts, d]` in evaluation mode, not normalised, as the head takes them."""
        self.model.eval()
        numbers = self.texts.numbers(texts)
        distinct, place = np.unique(numbers, return_inverse=True)
        found = torch.empty(len(distinct), self.model.dimension, device=self.device)
        with torch.no_grad():
            for piece in chunks(distinct, self.texts.lengths, micro_tokens=self.piece_tokens):
                found[torch.from_numpy(piece).to(self.device)] = self.rows(distinct[piece])
        return found[torch.from_numpy(place).to(self.device)]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 `[texts, d]` in evaluation mode, as the search uses them."""
        unit: NDArray[np.float32] = nn.functional.normalize(self.vectors(texts), dim=1).cpu().numpy()
        return unit

    def keep_lower_states(self, log: Log) -> None:
        """Compute and cache the states of the frozen layers for every text, once."""
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
