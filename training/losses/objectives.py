"""Which loss a run minimises, by the name of its method.

A method is a loss on pairs, a loss on anchors, or one of each joined by "+":

    pairs     pause, cross-entropy
    anchors   supervised-contrastive, in-batch, listwise

so `pause`, `listwise`, `cross-entropy+supervised-contrastive` (that paper's own), `pause+listwise`, ...
Joined, they are (1 - contrastive_weight) * the first + contrastive_weight * the second. Alone stand

    scored pairs    sts
    sentences       quick-thoughts, quick-thoughts-block, quick-thoughts-altered, is-bert
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.config import SENTENCE_METHODS, TrainSettings
from training.data.pairs import Pairs
from training.losses.combination import combination
from training.losses.cross_entropy import binary_cross_entropy, cross_entropy
from training.losses.in_batch import in_batch_contrastive
from training.losses.inputs import LossInputs, SentenceInputs
from training.losses.listwise import graded_listwise
from training.losses.pause import Supervised, check_priors, pause
from training.losses.relations import Relations, neighbours, relations
from training.losses.supervised_contrastive import draw, supervised_contrastive
from training.papers.losses.altered_targets import altered_targets
from training.papers.losses.block import block_loss
from training.papers.losses.is_bert import is_bert
from training.papers.losses.quick_thoughts import quick_thoughts
from training.papers.losses.sts import sts_regression

Log: TypeAlias = dict[str, float]
PairLoss: TypeAlias = Callable[[LossInputs, float, Log], Tensor]
AnchorLoss: TypeAlias = Callable[[LossInputs, Relations, int], Tensor]
SentenceLoss: TypeAlias = Callable[[SentenceInputs, int], Tensor]

PAIR_LOSSES = ("pause", "cross-entropy")
ANCHOR_LOSSES = ("supervised-contrastive", "in-batch", "listwise")
SCORE_METHOD = "sts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What a run minimises.

    `order` is that of the pairs in batches: a loss on anchors needs their candidates together. Without
    `uses_unlabelled` unlabelled pairs would be encoded for nothing. The best step is chosen from those
    after `selectable_from` of all steps.
    """

    on_pairs: PairLoss | None
    on_anchors: AnchorLoss | None
    contrastive_weight: float
    order: Literal["composition", "anchors"]
    uses_unlabelled: bool
    selectable_from: float

    def useful(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Bool `[n]`: pairs that change the loss. A teacher may have given gains to pairs without a label."""
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
        ValueError: there is no such method, or it does not fit the labels.
    """
    if settings.method in SENTENCE_METHODS:
        raise ValueError(
            f"{settings.method} learns from sentences; train it with: python -m training.train --companies"
        )
    if settings.method == SCORE_METHOD:
        return _regression(pairs)
    names = settings.method.split("+")
    on_pairs = [name for name in names if name in PAIR_LOSSES]
    on_anchors = [name for name in names if name in ANCHOR_LOSSES]
    if on_pairs + on_anchors != names or len(on_pairs) > 1 or len(on_anchors) > 1:
        raise ValueError(
            f"there is no method {settings.method!r}; name one of {', '.join(PAIR_LOSSES)}, one of "
            f"{', '.join(ANCHOR_LOSSES)}, or one of each in this order joined by '+'; alone stand {SCORE_METHOD}, "
            f"{', '.join(SENTENCE_METHODS)}"
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


def sentence_loss_of(settings: TrainSettings) -> SentenceLoss:
    """The loss of sentences at a step (from 1) that `settings.method` names.

    Raises:
        ValueError: the method does not learn from sentences.
    """
    if settings.method not in SENTENCE_METHODS:
        raise ValueError(f"{settings.method} learns from pairs, not from sentences; give --pairs")
    if settings.method == "is-bert":
        return _tokens_and_sentences
    on_neighbours = {"quick-thoughts": quick_thoughts, "quick-thoughts-altered": altered_targets}

    def of_neighbours(inputs: SentenceInputs, step: int) -> Tensor:
        near = neighbours(inputs.documents, inputs.positions, context=settings.context)
        if settings.method != "quick-thoughts-block":
            return on_neighbours[settings.method](inputs.left, inputs.right, near.positives, near.negatives)
        # Blocks of equal size, that is as many others as a sentence has neighbours on both sides.
        others = draw(near.negatives, 2 * settings.context, _lots(settings, step))
        return block_loss(inputs.left, inputs.right, near.positives, others)

    return of_neighbours


def _tokens_and_sentences(inputs: SentenceInputs, _step: int) -> Tensor:
    return is_bert(inputs.tokens, inputs.mask, inputs.left)


def class_priors(settings: TrainSettings, pairs: Pairs) -> tuple[float, ...]:
    """The priors of the settings, or else the classes' shares among the labelled pairs.

    The shares are right where labels were hidden, or pairs chosen for labelling, at random.

    Raises:
        ValueError: there are only positives, or the priors are out of range.
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
            raise ValueError(
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


def _regression(pairs: Pairs) -> Objective:
    if pairs.classes or not np.isfinite(pairs.gains).all():
        raise ValueError(f"{SCORE_METHOD} needs pairs with a score, not with labels: python -m training.papers.stsb")

    def regression(inputs: LossInputs, _progress: float, _log: Log) -> Tensor:
        return sts_regression(inputs.left, inputs.right, inputs.gains)

    return Objective(
        on_pairs=regression,
        on_anchors=None,
        contrastive_weight=0.0,
        order="composition",
        uses_unlabelled=False,
        selectable_from=0.0,
    )


def _pair_loss(name: str, settings: TrainSettings, pairs: Pairs, supervised: Supervised) -> PairLoss:
    if name == "cross-entropy":
        if supervised == "none":
            raise ValueError("cross-entropy needs negatives; label some, or train with pause")
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
            raise ValueError("listwise needs graded pairs, or pairs that are labelled positive and negative")

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
        lots = _lots(settings, step)
        return supervised_contrastive(
            inputs.left[table.anchors],
            inputs.right[table.columns],
            draw(table.positives, settings.positives or None, lots),
            draw(table.negatives | table.others, settings.negatives or None, lots),
            temperature=settings.contrastive_temperature,
        )

    return drawn


def _lots(settings: TrainSettings, step: int) -> torch.Generator:
    """For draws that are the same on every process, and after a kill."""
    return torch.Generator().manual_seed(settings.seed * 1_000_003 + step)
