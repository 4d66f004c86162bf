"""The task of distillation: texts and the teachers' similarities between them."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from training.config import TrainSettings
from training.data.batches import TextBatch
from training.data.pairs import Integers
from training.data.selection import Select
from training.data.texts import Texts
from training.distillation.neighbour_batches import NeighbourBatches, Source
from training.distillation.targets import TeacherTargets
from training.losses.distillation import distillation
from training.losses.methods import Log
from training.model.pair_model import PairModel
from training.run.task import Task, digest


class DistillationTask(Task):
    """Training on distinct `texts`, in batches of neighbours.

    `rows`: the row of `targets` that each text has, int64 `[texts]`: a translation has the row of its original,
    which comes first. `sources`: the rows of the batches' centres, by share. `teachers` describes the teachers;
    `trained_on` are the training companies of their bundles.

    Raises:
        InvalidInput: see NeighbourBatches.
    """

    unit = "texts"

    def __init__(
        self,
        settings: TrainSettings,
        texts: Sequence[str],
        targets: TeacherTargets,
        *,
        rows: Integers,
        sources: Sequence[Source],
        select: Select,
        selection_anchors: int,
        teachers: Sequence[str],
        trained_on: Collection[str] = (),
    ) -> None:
        self.settings = settings
        self.targets = targets
        self.rows = rows
        self.batches = NeighbourBatches(
            targets.vectors, rows, sources, batch_texts=settings.batch_texts, seed=settings.seed
        )
        self.texts = Texts(texts, settings.source, max_tokens=settings.max_tokens)
        self.select = select
        lexical = targets.lexical
        self.fingerprint = digest(
            texts,
            [
                *(targets.vectors, targets.local_scaling, lexical.data, lexical.indices, lexical.indptr, rows),
                *(part for source in sources for part in (np.float64(source.share).reshape(1), source.rows)),
            ],
        )
        self.data = f"{len(texts):,} texts, teachers {' and '.join(teachers)}"
        self.batch = f"{settings.batch_texts} texts"
        self.facts = {
            "selection_anchors": selection_anchors,
            "teachers": list(teachers),
            "teachers_trained_on": sorted(trained_on),
        }

    def loss(self, model: PairModel, outputs: Tensor, batch: TextBatch, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """See Task."""
        value = distillation(
            outputs,
            torch.from_numpy(self.targets.among(self.rows[batch.texts])).to(outputs.device),
            temperature=self.settings.temperature,
            scale_weight=self.settings.scale_weight,
        )
        return value, {"texts": float(len(batch))}
