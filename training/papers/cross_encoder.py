"""A cross-encoder as a teacher: it reads both texts of a pair together, and grades pairs without a label.

A cross-encoder compares words with words, which vectors cannot do. It is too slow for search, but it can be trained on
the few labels and grade the unlabelled pairs, on which the dual encoder is then trained (Thakur et al., Augmented
SBERT, NAACL 2021). The grade of a pair is its expected gain, from 0 to the gain of a competitor.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from similarity.encoder import padded
from similarity.generations.relevance_labels import COMPETITOR, GAINS
from training.config import TrainSettings
from training.console import Log
from training.data.pairs import Integers, Pairs
from training.data.texts import Texts
from training.model.pair_model import mean_over_tokens
from training.model.precision import autocast, chosen_precision
from training.model.weights import load_transformer, weights_source

HIGHEST_GAIN = GAINS[COMPETITOR]
REPORT_EVERY = 20  # batches
BATCH_PAIRS, LEARNING_RATE, WARMUP = 32, 5e-5, 0.1


class CrossEncoder(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """Model of [CLS] left [SEP] right [SEP] that returns one number: the log-odds of a competitor."""

    def __init__(self, transformer: PreTrainedModel) -> None:
        super().__init__()
        self.transformer = transformer
        self.score = nn.Linear(int(transformer.config.hidden_size), 1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return the log-odds, float32 `[n]`."""
        states = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        scores: Tensor = self.score(mean_over_tokens(states, attention_mask)).squeeze(1)
        return scores.float()


class Teacher:
    """A cross-encoder for the texts of `pairs`; `settings` provide its start, `max_tokens` a text, and the seed."""

    def __init__(self, pairs: Pairs, settings: TrainSettings, *, device: torch.device) -> None:
        self.pairs = pairs
        self.settings = settings
        self.device = device
        self.precision = chosen_precision(settings.precision, device)
        self.texts = Texts(pairs.texts, settings.source, max_tokens=settings.max_tokens)
        torch.manual_seed(settings.seed)
        transformer = load_transformer(weights_source(settings.source))
        self.model = CrossEncoder(transformer).to(device)

    def learn(self, *, epochs: int, learning_rate: float = LEARNING_RATE, log: Log) -> None:
        """Train on the graded pairs, each in a random order of its two texts."""
        random = np.random.default_rng(self.settings.seed)
        graded = np.flatnonzero(np.isfinite(self.pairs.gains))
        rows_of_step = [rows for _ in range(epochs) for rows in _batches(random.permutation(graded))]
        steps = len(rows_of_step)
        warmup = max(1, round(WARMUP * steps))
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=learning_rate, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / warmup, max(0.0, (steps - step) / max(1, steps - warmup)))
        )
        self.model.train()
        for step, rows in enumerate(rows_of_step, start=1):
            targets = torch.from_numpy(self.pairs.gains[rows] / HIGHEST_GAIN).to(self.device)
            scores = self._scores(rows, random.random(len(rows)) < 0.5)
            loss = functional.binary_cross_entropy_with_logits(scores, targets)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if step % REPORT_EVERY == 0 or step == steps:
                log(f"teacher, step {step}/{steps}: loss {float(loss.detach()):.4f}")

    def gains(self, rows: Integers) -> NDArray[np.float32]:
        """Return the expected gains of the pairs `rows`, float32 `[rows]`: means over both orders."""
        self.model.eval()
        lengths = self.texts.lengths[self.pairs.left[rows]] + self.texts.lengths[self.pairs.right[rows]]
        found = np.empty(len(rows), dtype=np.float32)
        with torch.no_grad():
            for some in _batches(np.argsort(lengths, kind="stable")):
                ways = [self._scores(rows[some], np.full(len(some), way)) for way in (False, True)]
                found[some] = HIGHEST_GAIN * torch.stack(ways).sigmoid().mean(dim=0).cpu().numpy()
        return found

    def _scores(self, rows: Integers, swapped: NDArray[np.bool_]) -> Tensor:
        """Return the log-odds of the pairs `rows`; where `swapped`, the right text comes first."""
        left, right = self.pairs.left[rows], self.pairs.right[rows]
        first, second = np.where(swapped, right, left), np.where(swapped, left, right)
        # The tokens of a text are [CLS] ... [SEP]; the [CLS] of the second text is omitted.
        tokens = self.texts.tokens
        parts = [(tokens[one], tokens[other][1:]) for one, other in zip(first, second, strict=True)]
        ids, mask = padded([np.concatenate(part) for part in parts])
        kinds, _ = padded([np.repeat([0, 1], [len(one), len(other)]) for one, other in parts])
        inputs = [torch.from_numpy(each).to(self.device) for each in (ids, mask, kinds)]
        with autocast(self.precision, self.device):
            scores: Tensor = self.model(*inputs)
        return scores


def _batches(rows: Integers) -> list[Integers]:
    return np.split(rows, range(BATCH_PAIRS, len(rows), BATCH_PAIRS))
