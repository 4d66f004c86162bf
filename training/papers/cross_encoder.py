"""A teacher that reads both texts of a pair at once, and the gains it gives to pairs without a label.

A cross-encoder compares word with word, which vectors cannot; it is too slow to search with, but it can
learn from the few labels and grade the unlabelled pairs, from which the dual encoder then learns
(distillation; Thakur et al., Augmented SBERT, NAACL 2021). Its grade of a pair is the gain to expect,
from 0 to that of a competitor.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from similarity.generations.judgements import COMPETITOR, GAINS
from training.config import Precision
from training.console import Log
from training.data.batches import Integers
from training.data.pairs import Pairs
from training.data.texts import Texts
from training.model.pair_model import mean_over_tokens
from training.model.precision import autocast, chosen_precision
from training.model.weights import load_transformer, weights_source

HIGHEST_GAIN = GAINS[COMPETITOR]
REPORT_EVERY = 20  # batches


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherSettings:
    """How a teacher is trained. Texts are cut to `max_tokens` each."""

    model: str
    max_tokens: int = 64
    epochs: int = 4
    batch_pairs: int = 32
    learning_rate: float = 5e-5
    warmup: float = 0.1
    precision: Precision = "auto"
    seed: int = 1


class CrossEncoder(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """[CLS] left [SEP] right [SEP] -> one number: the log-odds of a competitor."""

    def __init__(self, transformer: PreTrainedModel) -> None:
        super().__init__()
        self.transformer = transformer
        self.score = nn.Linear(int(transformer.config.hidden_size), 1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Float32 `[n]`."""
        states = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        scores: Tensor = self.score(mean_over_tokens(states, attention_mask)).squeeze(1)
        return scores.float()


class Teacher:
    """A cross-encoder with the texts of some pairs."""

    def __init__(self, pairs: Pairs, settings: TeacherSettings, *, device: torch.device) -> None:
        self.pairs = pairs
        self.settings = settings
        self.device = device
        self.precision = chosen_precision(settings.precision, device)
        self.texts = Texts(pairs.texts, settings.model, max_tokens=settings.max_tokens)
        torch.manual_seed(settings.seed)
        transformer = load_transformer(weights_source(settings.model))
        self.model = CrossEncoder(transformer).to(device)

    def learn(self, log: Log) -> None:
        """Learns from the graded pairs, each in a random order of its two texts."""
        settings, random = self.settings, np.random.default_rng(self.settings.seed)
        graded = np.flatnonzero(np.isfinite(self.pairs.gains))
        steps = settings.epochs * -(-len(graded) // settings.batch_pairs)
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=settings.learning_rate, weight_decay=0.01)
        warmup = max(1, round(settings.warmup * steps))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / warmup, max(0.0, (steps - step) / max(1, steps - warmup)))
        )
        self.model.train()
        for step, rows in enumerate(self._batches(graded, random), start=1):
            swapped = random.random(len(rows)) < 0.5
            targets = torch.from_numpy(self.pairs.gains[rows] / HIGHEST_GAIN).to(self.device)
            loss = functional.binary_cross_entropy_with_logits(self._scores(rows, swapped), targets)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if step % REPORT_EVERY == 0 or step == steps:
                log(f"teacher, step {step}/{steps}: loss {float(loss.detach()):.4f}")

    def gains(self, rows: Integers, log: Log) -> NDArray[np.float32]:
        """The gain to expect of some pairs, float32 `[rows]`: the mean over both orders."""
        self.model.eval()
        lengths = self.texts.lengths[self.pairs.left[rows]] + self.texts.lengths[self.pairs.right[rows]]
        order = np.argsort(lengths, kind="stable")
        found = np.empty(len(rows), dtype=np.float32)
        with torch.no_grad():
            for number, start in enumerate(range(0, len(order), self.settings.batch_pairs), start=1):
                some = order[start : start + self.settings.batch_pairs]
                ways = [self._scores(rows[some], np.full(len(some), way)) for way in (False, True)]
                found[some] = HIGHEST_GAIN * torch.stack(ways).sigmoid().mean(dim=0).cpu().numpy()
                if number % (5 * REPORT_EVERY) == 0:
                    log(f"teacher, graded {start + len(some):,} of {len(rows):,} pairs")
        return found

    def _batches(self, rows: Integers, random: np.random.Generator) -> Iterator[Integers]:
        for _ in range(self.settings.epochs):
            shuffled = random.permutation(rows)
            for start in range(0, len(shuffled), self.settings.batch_pairs):
                yield shuffled[start : start + self.settings.batch_pairs]

    def _scores(self, rows: Integers, swapped: NDArray[np.bool_]) -> Tensor:
        """The log-odds of some pairs, those under `swapped` with the right text first."""
        left, right = self.pairs.left[rows], self.pairs.right[rows]
        first, second = np.where(swapped, right, left), np.where(swapped, left, right)
        # A text's tokens are [CLS] ... [SEP]; the second one's [CLS] is left out.
        joined = [
            (self.texts.tokens[one], self.texts.tokens[other][1:]) for one, other in zip(first, second, strict=True)
        ]
        longest = max(len(one) + len(other) for one, other in joined)
        ids, mask, kinds = (np.zeros((len(joined), longest), dtype=np.int64) for _ in range(3))
        for row, (one, other) in enumerate(joined):
            end = len(one) + len(other)
            ids[row, :end] = np.concatenate([one, other])
            mask[row, :end] = 1
            kinds[row, len(one) : end] = 1
        inputs = [torch.from_numpy(each).to(self.device) for each in (ids, mask, kinds)]
        with autocast(self.precision, self.device):
            scores: Tensor = self.model(*inputs)
        return scores


def with_expected_gains(pairs: Pairs, settings: TeacherSettings, *, device: torch.device, log: Log) -> Pairs:
    """The pairs, those without a gain with the one that a teacher of the others expects."""
    teacher = Teacher(pairs, settings, device=device)
    teacher.learn(log)
    rows = np.flatnonzero(~np.isfinite(pairs.gains))
    return pairs.with_gains(rows, teacher.gains(rows, log))
