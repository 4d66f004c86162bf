"""Splits of pairs by anchor, never by pair, and hidden labels."""

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.pairs import Integers, Pairs

SELECTION_ANCHORS = 100


def split_by_anchor(pairs: Pairs, *, selection: int = SELECTION_ANCHORS, seed: int) -> tuple[Pairs, Pairs]:
    """Return (train, selection): the pairs of `selection` random anchors with labelled pairs are in the second part.

    No selection anchor occurs in train, on either side (of directed pairs: on the left). Pairs that would break this
    rule are in neither part.

    Raises:
        InvalidInput: there are not enough anchors, or no labelled pair to train on is left.
    """
    anchors = np.unique(pairs.left[pairs.labelled])
    if len(anchors) < 2:
        raise InvalidInput("some anchors are held out, but fewer than two have labels; label pairs of other anchors")
    if not 0 < selection < len(anchors):
        raise InvalidInput(
            f"{selection} selection anchors cannot be cut from {len(anchors)} anchors with labels; "
            f"give 1 to {len(anchors) - 1}"
        )
    chosen = np.random.default_rng(seed).choice(anchors, selection, replace=False)
    held_out = np.isin(pairs.left, chosen)
    kept = ~held_out if pairs.directed else ~held_out & ~np.isin(pairs.right, chosen)
    if not pairs.labelled[kept].any():
        raise InvalidInput(f"{selection} selection anchors leave no labelled pair to train on; choose fewer")
    return pairs.subset(kept), pairs.subset(held_out)


def refuse_leakage(train: Pairs, evaluation: Pairs) -> None:
    """Check that no anchor of `evaluation` occurs in `train`, on either side, by its id or by its text.

    Candidates may occur in both; `training.evaluate.ranking.without_seen` leaves them out.

    Raises:
        InvalidInput: an anchor of `evaluation` occurs in `train`.
    """
    sides = np.unique(np.concatenate([train.left, train.right]))
    ids, texts = ({of[number] for number in sides} for of in (train.ids, train.texts))
    anchors = np.unique(evaluation.left)
    seen = [row for row in anchors if evaluation.ids[row] in ids or evaluation.texts[row] in texts]
    if seen:
        raise InvalidInput(
            f"{len(seen):,} of the {len(anchors):,} evaluation anchors, such as {evaluation.ids[seen[0]]}, occur in "
            "the training pairs; split by anchor (split_by_anchor), or evaluate on other pairs"
        )


def hide_labels(pairs: Pairs, *, share: float, seed: int) -> Pairs:
    """Return all pairs, with only `share` of the labels; pairs with hidden labels are unlabelled.

    Pairs are drawn within each class (and grade). For one seed, a smaller share keeps a subset of the labels that a
    larger share keeps, and each class keeps at least one label. Both orders of an undirected pair are drawn one after
    the other, so usually both are kept or both are hidden.

    Raises:
        InvalidInput: `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise InvalidInput(f"the share of labels is {share}; it must be above 0, up to 1 (one per cent is .01)")
    chance = _chances(pairs, seed)
    kept = np.zeros(len(pairs), dtype=np.bool_)
    for rows in _strata_with_grades(pairs):
        # Rounded half up, so that a larger share never keeps fewer.
        kept[rows[np.argsort(chance[rows], kind="stable")][: int(np.floor(share * len(rows) + 0.5))]] = True
    for column in range(len(pairs.classes)):
        members = np.flatnonzero(pairs.known[:, column] & (pairs.targets[:, column] > 0))
        if len(members):
            # Kept at every share: otherwise a smaller share would not be a subset of a larger one.
            kept[members[np.argmin(chance[members])]] = True
    return pairs.with_hidden(~kept)


def _chances(pairs: Pairs, seed: int) -> NDArray[np.float64]:
    """Return a random number for each pair, the same for both orders of an undirected pair."""
    sides = np.stack([pairs.left, pairs.right], axis=1)
    if not pairs.directed:
        sides = np.sort(sides, axis=1)
    _, number = np.unique(sides, axis=0, return_inverse=True)
    number = number.reshape(-1)
    return np.random.default_rng(seed).random(int(number.max(initial=-1)) + 1)[number]


def _strata_with_grades(pairs: Pairs) -> list[Integers]:
    """Return the rows of the labelled pairs, grouped by labels and grade."""
    labels = np.column_stack([pairs.strata, np.nan_to_num(pairs.gains)])
    _, number = np.unique(labels, axis=0, return_inverse=True)
    number = np.where(pairs.labelled, number.reshape(-1), -1)
    return [np.flatnonzero(number == one) for one in np.unique(number[number >= 0])]
