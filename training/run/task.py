"""What a run learns from: batches of pairs, sentences or texts, and the loss of what the model makes of them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from training.config import DISTILLATION, TrainSettings
from training.data.batches import Batch, Integers, PairBatches, SentenceBatch, TextBatch
from training.data.pairs import Pairs
from training.data.selection import TrainingData
from training.distillation.data import DistilData
from training.losses.distillation import distillation
from training.losses.inputs import LossInputs, SentenceInputs
from training.losses.objectives import Log, objective_of, sentence_loss_of
from training.model.pair_model import PairModel, View, mean_over_tokens
from training.papers.sentence_data import SentenceData

AnyBatch = TypeVar("AnyBatch", Batch, SentenceBatch, TextBatch)
DrawnBatch_co = TypeVar("DrawnBatch_co", bound=Batch | SentenceBatch | TextBatch, covariant=True)
AnyData: TypeAlias = TrainingData | SentenceData | DistilData


class Batches(Protocol[DrawnBatch_co]):
    """Batches that depend on seed, epoch and number alone."""

    @property
    def batches_per_epoch(self) -> int:
        """The same for every epoch."""

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[DrawnBatch_co]:
        """The batches of epoch `number` (from 0), without the first `skip` of them."""


class Task(Protocol[AnyBatch]):
    """What the loop needs to know.

    `classes` are those of the head (none: no head), `view` is what the loss sees of each text. The
    best step is chosen from those after `selectable_from` of all steps. `fingerprint` changes with
    the data: a run must not go on with others. `data` and `batch` say in words what there is, and
    what a batch has, `unit` of what its size is. `told` goes into the saved model's facts: how many anchors
    were cut off to choose the best step (whoever evaluates it must cut the same ones), and who taught.
    """

    classes: tuple[str, ...]
    view: View
    selectable_from: float
    fingerprint: str
    data: str
    batch: str
    unit: str
    told: Mapping[str, Any]

    @property
    def batches(self) -> Batches[AnyBatch]:
        """Those of every epoch."""

    def size(self, batch: AnyBatch) -> int:
        """How many pairs, sentences or texts are in it."""

    def loss(
        self, model: PairModel, outputs: Tensor, batch: AnyBatch, *, lengths: Integers, step: int, steps: int
    ) -> tuple[Tensor, Log]:
        """The loss of a batch at `step` of `steps` and its parts, from the model's `outputs` of `batch.texts`.

        `lengths` are the numbers of tokens of these texts.
        """


class PairTask:
    """Labelled, unlabelled and scored pairs. A loss on pairs sees vectors, and the head's logits."""

    view: View = "vectors"
    unit = "pairs"

    def __init__(self, settings: TrainSettings, data: TrainingData) -> None:
        self.objective = objective_of(settings, data.pairs)
        self.pairs = data.pairs.subset(self.objective.useful(data.pairs))
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
        self.told: Mapping[str, Any] = _selected_by(data.selection_anchors)

    def size(self, batch: Batch) -> int:
        """The number of its pairs."""
        return len(batch.pairs)

    def loss(
        self, model: PairModel, outputs: Tensor, batch: Batch, *, lengths: Integers, step: int, steps: int
    ) -> tuple[Tensor, Log]:
        """See Task."""
        return self.objective.loss(loss_inputs(model, outputs, batch, self.pairs), step=step, steps=steps)


class SentenceTask:
    """Neighbouring sentences of descriptions, without labels."""

    classes: tuple[str, ...] = ()
    selectable_from = 0.0
    unit = "sentences"
    told: Mapping[str, Any] = {}

    def __init__(self, settings: TrainSettings, data: SentenceData) -> None:
        self.of_sentences = sentence_loss_of(settings)
        self.view: View = "tokens" if settings.method == "is-bert" else "two encoders"
        self.batches = data.batches
        arrays = (data.batches.documents, data.batches.positions)
        self.fingerprint = _digest(data.batches.texts, arrays)
        descriptions = len(np.unique(data.batches.documents))
        self.data = f"{len(data.batches.texts):,} sentences of {descriptions:,} descriptions"
        self.batch = f"about {settings.batch_sentences} sentences"

    def size(self, batch: SentenceBatch) -> int:
        """The number of its sentences."""
        return len(batch.texts)

    def loss(
        self, model: PairModel, outputs: Tensor, batch: SentenceBatch, *, lengths: Integers, step: int, steps: int
    ) -> tuple[Tensor, Log]:
        """See Task."""
        value = self.of_sentences(sentence_inputs(outputs, batch, lengths, view=self.view), step)
        return value, {"sentences": float(len(batch.texts))}


class DistilTask:
    """Texts as near each other as teachers say."""

    classes: tuple[str, ...] = ()
    view: View = "vectors"
    selectable_from = 0.0
    unit = "texts"

    def __init__(self, settings: TrainSettings, data: DistilData) -> None:
        if settings.method != DISTILLATION:
            raise ValueError(f"{settings.method} does not learn from teachers; {DISTILLATION} does")
        self.settings = settings
        self.batches = data.batches
        self.taught = data.taught
        words = data.taught.words
        self.fingerprint = _digest(
            data.names, [data.taught.vectors, data.taught.taken_off, words.data, words.indices, words.indptr]
        )
        self.data = f"{len(data.taught):,} texts, taught by {' and '.join(data.teachers)}"
        self.batch = f"{settings.batch_texts} texts"
        self.told: Mapping[str, Any] = {
            **_selected_by(data.selection_anchors),
            "teachers": list(data.teachers),
            "teachers_trained_on": list(data.trained_on),
        }

    def size(self, batch: TextBatch) -> int:
        """The number of its texts."""
        return len(batch.texts)

    def loss(
        self, model: PairModel, outputs: Tensor, batch: TextBatch, *, lengths: Integers, step: int, steps: int
    ) -> tuple[Tensor, Log]:
        """See Task."""
        value = distillation(
            outputs,
            torch.from_numpy(self.taught.targets(batch.texts)).to(outputs.device),
            temperature=self.settings.temperature,
            scale_weight=self.settings.scale_weight,
        )
        return value, {"texts": float(len(batch.texts))}


def _selected_by(anchors: int) -> dict[str, int]:
    return {"selection_anchors": anchors} if anchors else {}


def task_of(settings: TrainSettings, data: AnyData) -> Task[Any]:
    """What these settings learn from these data.

    Raises:
        ValueError: the method does not fit the data.
    """
    if isinstance(data, DistilData):
        return DistilTask(settings, data)
    return PairTask(settings, data) if isinstance(data, TrainingData) else SentenceTask(settings, data)


def loss_inputs(model: PairModel, vectors: Tensor, batch: Batch, pairs: Pairs) -> LossInputs:
    """What an objective on pairs looks at: the pairs of a batch, their labels and logits."""
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


def sentence_inputs(outputs: Tensor, batch: SentenceBatch, lengths: Integers, *, view: View) -> SentenceInputs:
    """What a loss on sentences looks at: both encoders' vectors, or the tokens' states and their means."""
    tokens = mask = None
    if view == "tokens":
        tokens = outputs
        ends = torch.from_numpy(lengths).to(outputs.device)
        mask = torch.arange(outputs.shape[1], device=outputs.device) < ends[:, None]
        left = right = mean_over_tokens(outputs, mask)
    else:
        left, right = outputs.unbind(dim=1)
    documents, positions = (torch.from_numpy(each).to(outputs.device) for each in (batch.documents, batch.positions))
    return SentenceInputs(left=left, right=right, tokens=tokens, mask=mask, documents=documents, positions=positions)


def fingerprint_of(pairs: Pairs) -> str:
    """Changes with the pairs, their labels or scores, or their texts."""
    return _digest(pairs.texts, (pairs.left, pairs.right, pairs.targets, pairs.known, pairs.gains))


def _digest(texts: Iterable[str], arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256("\0".join(texts).encode())
    for values in arrays:
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]
