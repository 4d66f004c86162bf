"""The objective of a run: the loss that its method names.

    Pairs ── batches ──▶ Batch ── model ──▶ LossInputs ── Objective ──▶ the loss and its parts

A method is a loss on pairs (PAIR_LOSSES), a loss on anchors (ANCHOR_LOSSES), or one of each joined by "+":
`pause`, `listwise`, `cross-entropy+supervised-contrastive`, `pause+listwise`, ... The loss of a joined method is
(1 - λ) * the first + λ * the second, with `contrastive_weight` as λ (Liao 2021, https://arxiv.org/abs/2106.04791,
eq. 3; its best λ are .3 for STS and .1 for SentEval).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from similarity.errors import InvalidInput
from training.config import TrainSettings
from training.data.pairs import Pairs
from training.losses.anchor_losses import graded_listwise, in_batch_contrastive, sample_entries, supervised_contrastive
from training.losses.candidate_table import CandidateTable, candidate_table
from training.losses.cross_entropy import binary_cross_entropy, cross_entropy
from training.losses.pause import Supervised, check_priors, pause


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInputs:
    """The `n` pairs of a global batch, with `C` classes and vectors of dimension `d`; floats are float32.

    `left` and `right` `[n, d]` are the pooled vectors, not normalised; `logits` `[n, C]` are the head's output.
    `targets` `[n, C]` are 0 or 1, and valid only where `known` `[n, C]` (bool) is true. If the data are single-label,
    a pair is known in all classes or in none. `gains` `[n]` are the gains of graded pairs (3/1/0), the scores of scored
    pairs, and NaN for unlabelled pairs. `left_ids` and `right_ids` `[n]` (int64) number the texts of both sides
    together: equal ids are the same text.
    """

    left: Tensor
    right: Tensor
    logits: Tensor
    targets: Tensor
    known: Tensor
    gains: Tensor
    left_ids: Tensor
    right_ids: Tensor

    @property
    def labelled(self) -> Tensor:
        """Bool `[n]`: pairs with at least one known class."""
        return self.known.any(dim=1)


Log: TypeAlias = dict[str, float]
PairLoss: TypeAlias = Callable[[LossInputs, float, Log], Tensor]
AnchorLoss: TypeAlias = Callable[[LossInputs, CandidateTable, int], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The loss of a run, and what it needs from the data and the training loop.

    `order` is the order of pairs in batches: a loss on anchors needs all candidates of an anchor in one batch. If
    `uses_unlabelled` is false, unlabelled pairs are left out. Checkpoint selection starts after the share
    `selectable_from` of all steps.
    """

    on_pairs: PairLoss | None
    on_anchors: AnchorLoss | None
    contrastive_weight: float
    order: Literal["composition", "anchors"]
    uses_unlabelled: bool
    selectable_from: float

    def useful(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return bool `[n]`: pairs that affect the loss; a pair without a label may have an expected gain."""
        return np.ones(len(pairs), dtype=bool) if self.uses_unlabelled else pairs.labelled | np.isfinite(pairs.gains)

    def loss(self, inputs: LossInputs, *, step: int, steps: int) -> tuple[Tensor, Log]:
        """Return the scalar to minimise at `step` (from 1) of `steps`, and its parts for the log."""
        log: Log = {"labelled": float(inputs.labelled.sum())}
        values = []
        if self.on_pairs:
            values.append(self.on_pairs(inputs, step / steps, log))
        if self.on_anchors:
            table = candidate_table(
                inputs.left_ids, inputs.right_ids, positive=inputs.targets[:, 0] > 0.5, known=inputs.known[:, 0]
            )
            values.append(self.on_anchors(inputs, table, step))
            log["contrastive"] = float(values[-1].detach())
        if len(values) == 1:
            return values[0], log
        weight = self.contrastive_weight
        return (1 - weight) * values[0] + weight * values[1], log


def objective_of(settings: TrainSettings, pairs: Pairs) -> Objective:
    """Return the objective that `settings.method` names, for these pairs. Their first class is the positive one.

    Raises:
        InvalidInput: the method is unknown, or does not fit the labels.
    """
    names = settings.method.split("+")
    on_pairs = [name for name in names if name in PAIR_LOSSES]
    on_anchors = [name for name in names if name in ANCHOR_LOSSES]
    if on_pairs + on_anchors != names or len(on_pairs) > 1 or len(on_anchors) > 1:
        raise InvalidInput(
            f"unknown method {settings.method!r}; choose one of {', '.join(PAIR_LOSSES)}, one of "
            f"{', '.join(ANCHOR_LOSSES)}, or one of each in this order joined by '+' (the methods of reproduced papers "
            "have their own commands, see docs/training.md)"
        )
    supervised = _supervised(pairs)
    annealed = on_pairs == ["pause"] and settings.alpha > 0 and supervised != "none"
    return Objective(
        on_pairs=PAIR_LOSSES[on_pairs[0]](settings, pairs, supervised) if on_pairs else None,
        on_anchors=ANCHOR_LOSSES[on_anchors[0]](settings, pairs) if on_anchors else None,
        contrastive_weight=settings.contrastive_weight,
        order="anchors" if on_anchors else "composition",
        uses_unlabelled=bool({"pause", "punce"} & set(names)),
        # At this share of the steps the annealed weight reaches one half; an earlier model has hardly seen the PU loss.
        selectable_from=0.5 ** (1 / settings.alpha) if annealed else 0.0,
    )


def class_priors(settings: TrainSettings, pairs: Pairs) -> tuple[float, ...]:
    """Return the priors of the settings or, if there are none, the shares of the classes among the labelled pairs.

    These shares are unbiased only if labels were hidden, or pairs chosen for labelling, at random.

    Raises:
        InvalidInput: a class has no positive or only positive labels, or the priors are out of range.
    """
    if settings.priors:
        priors = settings.priors
    else:
        priors = tuple(
            float(pairs.targets[pairs.known[:, c], c].mean()) if pairs.known[:, c].any() else 0.0
            for c in range(len(pairs.classes))
        )
        if any(prior in (0.0, 1.0) for prior in priors):
            raise InvalidInput(
                "the labels do not show the share of each class among the unlabelled pairs; pass it as --priors "
                "(python -m training.prior estimates it)"
            )
    check_priors(priors, classes=len(pairs.classes))
    return priors


def _supervised(pairs: Pairs) -> Supervised:
    """Return the loss on labelled pairs: "softmax" for several classes, else "binary", or "none" without negatives."""
    if len(pairs.classes) > 1:
        return "softmax"
    return "binary" if bool((pairs.targets[pairs.known] < 0.5).any()) else "none"


def _cross_entropy_loss(_settings: TrainSettings, _pairs: Pairs, supervised: Supervised) -> PairLoss:
    if supervised == "none":
        raise InvalidInput("cross-entropy needs negatives; label some, or train with pause")
    entropy = cross_entropy if supervised == "softmax" else binary_cross_entropy

    def loss(inputs: LossInputs, _progress: float, log: Log) -> Tensor:
        value: Tensor = entropy(inputs.logits, inputs.targets, inputs.known)
        log["cross_entropy"] = float(value.detach())
        return value

    return loss


def _pause_loss(settings: TrainSettings, pairs: Pairs, supervised: Supervised) -> PairLoss:
    priors = torch.tensor(class_priors(settings, pairs))

    def loss(inputs: LossInputs, progress: float, log: Log) -> Tensor:
        value = pause(
            inputs.logits,
            inputs.targets,
            inputs.known,
            priors=priors,
            progress=progress,
            alpha=settings.alpha,
            max_weight=settings.unlabelled_weight,
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

    return loss


def _listwise_loss(settings: TrainSettings, pairs: Pairs) -> AnchorLoss:
    if not np.isfinite(pairs.gains).any():
        raise InvalidInput("listwise needs graded pairs, or pairs that are labelled positive and negative")

    def loss(inputs: LossInputs, table: CandidateTable, _step: int) -> Tensor:
        graded = inputs.gains.isfinite()
        return graded_listwise(
            inputs.left[table.anchors],
            inputs.right[table.columns],
            table.scatter(inputs.gains, rows=graded),
            table.scatter(graded.float(), rows=graded) > 0,
            others=table.others,
            temperature=settings.temperature,
        )

    return loss


def _prior_aware_loss(settings: TrainSettings, pairs: Pairs) -> AnchorLoss:
    """Return a loss adapted from puNCE (https://arxiv.org/abs/2402.06038, section 6.1).

    puNCE counts an unlabelled sample twice: as positive with weight π, the prior, and as negative with weight 1 - π; an
    augmented view of each sample is a positive, too. Here, in graded_listwise, a positive has the gain 1 and an
    unlabelled candidate the gain π: there is no copy as negative, and no augmented view.
    """
    prior = class_priors(settings, pairs)[0]

    def loss(inputs: LossInputs, table: CandidateTable, _step: int) -> Tensor:
        return graded_listwise(
            inputs.left[table.anchors],
            inputs.right[table.columns],
            table.positives + prior * table.unlabelled,
            table.positives | table.negatives | table.unlabelled,
            others=table.others,
            temperature=settings.temperature,
        )

    return loss


def _in_batch_loss(settings: TrainSettings, _pairs: Pairs) -> AnchorLoss:
    def loss(inputs: LossInputs, table: CandidateTable, _step: int) -> Tensor:
        return in_batch_contrastive(
            inputs.left[table.anchors],
            inputs.right[table.columns],
            table.positives,
            table.negatives | table.others,
            scale=settings.scale,
        )

    return loss


def _supervised_contrastive_loss(settings: TrainSettings, _pairs: Pairs) -> AnchorLoss:
    def loss(inputs: LossInputs, table: CandidateTable, step: int) -> Tensor:
        random = step_random(settings, step)
        return supervised_contrastive(
            inputs.left[table.anchors],
            inputs.right[table.columns],
            sample_entries(table.positives, settings.positives or None, random),
            sample_entries(table.negatives | table.others, settings.negatives or None, random),
            temperature=settings.contrastive_temperature,
        )

    return loss


PAIR_LOSSES: Mapping[str, Callable[[TrainSettings, Pairs, Supervised], PairLoss]] = {
    "pause": _pause_loss,
    "cross-entropy": _cross_entropy_loss,
}
ANCHOR_LOSSES: Mapping[str, Callable[[TrainSettings, Pairs], AnchorLoss]] = {
    "supervised-contrastive": _supervised_contrastive_loss,
    "in-batch": _in_batch_loss,
    "listwise": _listwise_loss,
    "punce": _prior_aware_loss,
}


def step_random(settings: TrainSettings, step: int) -> torch.Generator:
    """Return the random generator of a step, the same in every process and in a resumed run."""
    return torch.Generator().manual_seed(settings.seed * 1_000_003 + step)
