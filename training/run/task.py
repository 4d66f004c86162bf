"""The task of a run: its data, its batches, and the loss of a batch."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from training.config import TrainSettings
from training.data.batches import Batch, Integers, PairBatches
from training.data.pairs import Pairs
from training.data.selection import Select, TrainingData
from training.data.texts import Texts
from training.losses.inputs import LossInputs
from training.losses.objectives import Log, Objective, objective_of
from training.model.pair_model import PairModel, load_pair_model


class TextRows(Protocol):
    """A global batch: `texts` are the numbers of its texts, its length counts its pairs, sentences or texts."""

    @property
    def texts(self) -> Integers:
        """int64 `[r]`."""

    def __len__(self) -> int: ...


AnyBatch = TypeVar("AnyBatch", bound=TextRows)
AnyBatch_co = TypeVar("AnyBatch_co", bound=TextRows, covariant=True)


class Batches(Protocol[AnyBatch_co]):
    """Batches that depend on seed, epoch and number alone."""

    @property
    def batches_per_epoch(self) -> int:
        """The same for every epoch."""

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[AnyBatch_co]:
        """The batches of epoch `number` (from 0), without the first `skip` of them."""


class Task(ABC, Generic[AnyBatch]):
    """Everything that the training loop needs to know about data, model and loss.

    Attributes:
        batches, texts: the batches, and the texts that they number.
        select: selection scores of an encoder, the deciding one first (see TrainingData).
        fingerprint: changes with the data, because a run must not continue with other data.
        data, batch, unit: in words, the data, the size of a batch, and the unit of that size.
        classes: those of the head; without any there is no head.
        selectable_from: the best step is chosen from those after this share of all steps.
        facts: further fields of training.json: the number of anchors held out for checkpoint selection
            (evaluation must hold out the same ones), and the teachers.
    """

    batches: Batches[AnyBatch]
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
        """The model to begin with; `loss` gets the outputs of its `encode` in training mode."""
        return load_pair_model(settings, classes=len(self.classes))

    @abstractmethod
    def loss(self, model: PairModel, outputs: Tensor, batch: AnyBatch, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """The loss of a batch at `step` of `steps`, and its parts, from the model's `outputs` for `batch.texts`."""


class PairTask(Task[Batch]):
    """Labelled, unlabelled or scored pairs; the objective is the one that `settings.method` names, or the one given.

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
        self.facts = {"selection_anchors": data.selection_anchors} if data.selection_anchors else {}

    def loss(self, model: PairModel, outputs: Tensor, batch: Batch, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """See Task."""
        return self.objective.loss(loss_inputs(model, outputs, batch, self.pairs), step=step, steps=steps)


def loss_inputs(model: PairModel, vectors: Tensor, batch: Batch, pairs: Pairs) -> LossInputs:
    """The pairs of a batch with their labels and logits, as an objective takes them."""
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
    """A digest that changes with the pairs, their labels or scores, or their texts."""
    return digest(pairs.texts, (pairs.left, pairs.right, pairs.targets, pairs.known, pairs.gains))


def digest(texts: Iterable[str], arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    """16 hexadecimal digits of the SHA-256 of texts and arrays."""
    found = hashlib.sha256("\0".join(texts).encode())
    for values in arrays:
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()[:16]
