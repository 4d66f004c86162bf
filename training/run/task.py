"""The task of a run: its data, its batches, and the loss of a batch."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from training.config import TrainSettings
from training.data.batches import Batch, PairBatches
from training.data.pairs import Pairs
from training.data.selection import Select, TrainingData
from training.data.texts import Texts
from training.losses.methods import Log, LossInputs, Objective, objective_of
from training.model.pair_model import PairModel, load_pair_model


class Batches(Protocol):
    """Global batches that depend only on the seed, the epoch and the number of the batch.

    A batch has `texts`, the numbers of its texts, int64 `[r]`; its length is its number of pairs, sentences or texts.
    """

    batches_per_epoch: int

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Any]:
        """Yield the batches of epoch `number` (from 0), without the first `skip`."""


class Task(ABC):
    """The data, the initial model and the loss of a run, as the training loop uses them.

    Attributes:
        batches, texts: the batches, and the texts whose numbers they contain.
        select: returns the selection scores of an encoder, the deciding one first (see TrainingData).
        fingerprint: a hash of the data; a run continues only with the same data.
        data, batch, unit: for the log: the data, the size of a batch, and the unit of that size.
        classes: the classes of the head; if empty, there is no head.
        selectable_from: checkpoint selection starts after this share of all steps.
        facts: further fields of training.json: the number of anchors held out for checkpoint selection
            (evaluation must hold out the same anchors), the training companies, and the teachers.
    """

    batches: Batches
    texts: Texts
    select: Select
    fingerprint: str
    data: str
    batch: str
    unit: str
    classes: tuple[str, ...] = ()
    selectable_from: float = 0.0
    facts: Mapping[str, Any] = {}

    def load_model(self, settings: TrainSettings) -> PairModel:
        """Return the initial model; `loss` gets the outputs of its `encode` in training mode."""
        return load_pair_model(settings, classes=len(self.classes))

    @abstractmethod
    def loss(self, model: PairModel, outputs: Tensor, batch: Any, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """Return the loss of a batch at `step` of `steps`, and its parts; `outputs`: of the texts `batch.texts`."""


class PairTask(Task):
    """Training on labelled, unlabelled or scored pairs, by default with the objective that `settings.method` names.

    Raises:
        InvalidInput: the method does not fit the pairs.
    """

    unit = "pairs"

    def __init__(self, settings: TrainSettings, data: TrainingData, objective: Objective | None = None) -> None:
        self.objective = objective or objective_of(settings, data.pairs)
        self.pairs = data.pairs.subset(self.objective.useful(data.pairs))
        self.texts, self.select = data.texts, data.select
        self.classes = self.pairs.classes
        self.selectable_from = self.objective.selectable_from
        self.batches = PairBatches(
            self.pairs,
            batch_pairs=settings.batch_pairs,
            seed=settings.seed,
            order=self.objective.order if settings.order == "auto" else settings.order,
            labelled_share=settings.labelled_share,
            labelled_copies=settings.labelled_copies,
            lengths=data.texts.lengths[: len(self.pairs.texts)],
        )
        self.fingerprint = fingerprint_of(self.pairs)
        self.data = f"{len(self.pairs):,} pairs, {int(self.pairs.labelled.sum()):,} of them labelled"
        self.batch = f"{settings.batch_pairs} pairs"
        self.facts = {"companies": self.pairs.labelled_companies}
        if data.selection_anchors:
            self.facts = {"selection_anchors": data.selection_anchors, **self.facts}

    def loss(self, model: PairModel, outputs: Tensor, batch: Batch, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """See Task."""
        return self.objective.loss(loss_inputs(model, outputs, batch, self.pairs), step=step, steps=steps)


def loss_inputs(model: PairModel, vectors: Tensor, batch: Batch, pairs: Pairs) -> LossInputs:
    """Return the vectors, logits and labels of the pairs of a batch: the arguments of an objective."""
    device = vectors.device
    left, right = (vectors[torch.from_numpy(side).to(device)] for side in (batch.left, batch.right))
    return LossInputs(
        left=left,
        right=right,
        logits=model.head(left, right),
        targets=torch.from_numpy(pairs.targets[batch.pairs]).to(device),
        known=torch.from_numpy(pairs.known[batch.pairs]).to(device),
        gains=torch.from_numpy(pairs.gains[batch.pairs]).to(device),
        left_ids=torch.from_numpy(batch.texts[batch.left]).to(device),
        right_ids=torch.from_numpy(batch.texts[batch.right]).to(device),
    )


def fingerprint_of(pairs: Pairs) -> str:
    """Return a hash of the pairs, their labels and scores, and their texts."""
    return digest(pairs.texts, (pairs.left, pairs.right, pairs.targets, pairs.known, pairs.gains))


def digest(texts: Iterable[str], arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of texts and arrays."""
    sha256 = hashlib.sha256("\0".join(texts).encode())
    for values in arrays:
        sha256.update(np.ascontiguousarray(values).tobytes())
    return sha256.hexdigest()[:16]
