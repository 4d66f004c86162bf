"""The objective of a run, by the name of its method.

A method is a loss on pairs, a loss on anchors, or one of each joined by "+":

    pairs     pause, cross-entropy
    anchors   supervised-contrastive, in-batch, listwise

so `pause`, `listwise`, `cross-entropy+supervised-contrastive` (that paper's own), `pause+listwise`, ...
Joined, they are (1 - contrastive_weight) * the first + contrastive_weight * the second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from similarity.errors import InvalidInput
from training.config import TrainSettings
from training.data.pairs import Pairs
from training.losses.combination import combination
from training.losses.cross_entropy import binary_cross_entropy, cross_entropy
from training.losses.in_batch import in_batch_contrastive
from training.losses.inputs import LossInputs
from training.losses.listwise import graded_listwise
from training.losses.pause import Supervised, check_priors, pause
from training.losses.relations import Relations, relations
from training.losses.supervised_contrastive import draw, supervised_contrastive

Log: TypeAlias = dict[str, float]
PairLoss: TypeAlias = Callable[[LossInputs, float, Log], Tensor]
AnchorLoss: TypeAlias = Callable[[LossInputs, Relations, int], Tensor]

PAIR_LOSSES = ("pause", "cross-entropy")
ANCHOR_LOSSES = ("supervised-contrastive", "in-batch", "listwise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The loss of a run.

    `order` is that of the pairs in batches: a loss on anchors needs all candidates of an anchor in
    one batch. Without `uses_unlabelled`, unlabelled pairs are left out. The best step is chosen from those
    after `selectable_from` of all steps.
    """

    on_pairs: PairLoss | None
    on_anchors: AnchorLoss | None
    contrastive_weight: float
    order: Literal["composition", "anchors"]
    uses_unlabelled: bool
    selectable_from: float

    def useful(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Bool `[n]`: pairs that change the loss; pairs without a label may have expected gains."""
        return np.ones(len(pairs), dtype=bool) if self.uses_unlabelled else pairs.labelled | np.isfinite(pairs.gains)

    def loss(self, inputs: LossInputs, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """The scalar to minimise at `step` (from 1) of `steps`, and its parts for the log."""
        log: Log = {"labelled": float(inputs.labelled.sum())}
        values = []
        if self.on_pairs:
            values.append(self.on_pairs(inputs, step / steps, log))
        if self.on_anchors:
            table = relations(
                inputs.left_ids, inputs.right_ids, positive=inputs.targets[:, 0] > 0.5, known=inputs.known[:, 0]
            )
            values.append(self.on_anchors(inputs, table, step))
            log["contrastive"] = float(values[-1].detach())
        if len(values) == 1:
            return values[0], log
        return combination(*values, share=self.contrastive_weight), log


def objective_of(settings: TrainSettings, pairs: Pairs) -> Objective:
    """The objective that `settings.method` names, for these pairs. Their first class is the positive one.

    Raises:
        InvalidInput: there is no such method, or it does not fit the labels.
    """
    names = settings.method.split("+")
    on_pairs = [name for name in names if name in PAIR_LOSSES]
    on_anchors = [name for name in names if name in ANCHOR_LOSSES]
    if on_pairs + on_anchors != names or len(on_pairs) > 1 or len(on_anchors) > 1:
        raise InvalidInput(
            f"there is no method {settings.method!r}; name one of {', '.join(PAIR_LOSSES)}, one of "
            f"{', '.join(ANCHOR_LOSSES)}, or one of each in this order joined by '+' (the methods of reproduced papers "
            "have their own commands, see docs/training.md)"
        )
    uses_unlabelled = on_pairs == ["pause"]
    supervised = _supervised(pairs)
    annealed = uses_unlabelled and settings.alpha > 0 and supervised != "none"
    return Objective(
        on_pairs=_pair_loss(on_pairs[0], settings, pairs, supervised) if on_pairs else None,
        on_anchors=_anchor_loss(on_anchors[0], settings, pairs) if on_anchors else None,
        contrastive_weight=settings.contrastive_weight,
        order="anchors" if on_anchors else "composition",
        uses_unlabelled=uses_unlabelled,
        # The weight of the annealed part reaches one half here (METHOD: no choice before).
        selectable_from=0.5 ** (1 / settings.alpha) if annealed else 0.0,
    )


def class_priors(settings: TrainSettings, pairs: Pairs) -> tuple[float, ...]:
    """The priors of the settings, or else the classes' shares among the labelled pairs.

    The shares are right where labels were hidden, or pairs chosen for labelling, at random.

    Raises:
        InvalidInput: there are only positives, or the priors are out of range.
    """
    single_label = _supervised(pairs) != "binary"
    if settings.priors:
        priors = settings.priors
    else:
        priors = tuple(
            float(pairs.targets[pairs.known[:, c], c].mean()) if pairs.known[:, c].any() else 0.0
            for c in range(len(pairs.classes))
        )
        if any(prior in (0.0, 1.0) for prior in priors):
            raise InvalidInput(
                "the labels do not tell the share of each class among the unlabelled pairs; give it as --priors "
                "(python -m training.prior estimates it)"
            )
    check_priors(priors, classes=len(pairs.classes), single_label=single_label)
    return priors


def _supervised(pairs: Pairs) -> Supervised:
    """Softmax where every labelled pair has one class of several; no such part where there are only positives."""
    known = pairs.known
    if known.shape[1] == 1:
        return "none" if bool((pairs.targets[known] > 0.5).all()) else "binary"
    labelled = known.any(axis=1)
    one_class = bool(known[labelled].all() and (pairs.targets[labelled].sum(axis=1) == 1).all())
    return "softmax" if one_class else "binary"


def _pair_loss(name: str, settings: TrainSettings, pairs: Pairs, supervised: Supervised) -> PairLoss:
    if name == "cross-entropy":
        if supervised == "none":
            raise InvalidInput("cross-entropy needs negatives; label some, or train with pause")
        entropy = cross_entropy if supervised == "softmax" else binary_cross_entropy

        def labelled_only(inputs: LossInputs, _progress: float, log: Log) -> Tensor:
            value: Tensor = entropy(inputs.logits, inputs.targets, inputs.known)
            log["cross_entropy"] = float(value.detach())
            return value

        return labelled_only

    priors = torch.tensor(class_priors(settings, pairs))

    def with_unlabelled(inputs: LossInputs, progress: float, log: Log) -> Tensor:
        value = pause(
            inputs.logits,
            inputs.targets,
            inputs.known,
            priors=priors,
            progress=progress,
            alpha=settings.alpha,
            scale=settings.unlabelled_weight,
            supervised=supervised,
            correction=settings.correction,
        )
        log |= {
            "cross_entropy": float(value.cross_entropy.detach()),
            "unlabelled_risk": float(value.risk.loss.detach()),
            "unlabelled_weight": value.weight,
            "classes_without_risk": float((~value.risk.contributed).sum()),
        }
        return value.loss

    return with_unlabelled


def _anchor_loss(name: str, settings: TrainSettings, pairs: Pairs) -> AnchorLoss:
    if name == "listwise":
        if not np.isfinite(pairs.gains).any():
            raise InvalidInput("listwise needs graded pairs, or pairs that are labelled positive and negative")

        def listwise(inputs: LossInputs, table: Relations, _step: int) -> Tensor:
            graded = inputs.gains.isfinite()
            return graded_listwise(
                inputs.left[table.anchors],
                inputs.right[table.columns],
                table.table(inputs.gains, rows=graded),
                table.table(graded.float(), rows=graded) > 0,
                others=table.others,
                temperature=settings.temperature,
            )

        return listwise

    if name == "in-batch":

        def in_batch(inputs: LossInputs, table: Relations, _step: int) -> Tensor:
            return in_batch_contrastive(
                inputs.left[table.anchors],
                inputs.right[table.columns],
                table.positives,
                table.negatives | table.others,
                scale=settings.scale,
            )

        return in_batch

    def drawn(inputs: LossInputs, table: Relations, step: int) -> Tensor:
        random = step_random(settings, step)
        return supervised_contrastive(
            inputs.left[table.anchors],
            inputs.right[table.columns],
            draw(table.positives, settings.positives or None, random),
            draw(table.negatives | table.others, settings.negatives or None, random),
            temperature=settings.contrastive_temperature,
        )

    return drawn


def step_random(settings: TrainSettings, step: int) -> torch.Generator:
    """The generator of a step: it draws the same on every process, and after a kill."""
    return torch.Generator().manual_seed(settings.seed * 1_000_003 + step)
