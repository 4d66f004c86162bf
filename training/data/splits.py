"""Splits of pairs by anchor, never by pair, and hidden labels."""

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.pairs import Integers, Pairs

SELECTION_ANCHORS = 100


def split_by_anchor(pairs: Pairs, *, selection: int = SELECTION_ANCHORS, seed: int) -> tuple[Pairs, Pairs]:
    """(train, selection): `selection` anchors with a labelled pair each go to the second part.

    No selection anchor occurs in train, on either side (of directed pairs: on the left), so that no
    pair is in both, in neither order; pairs that would break this are left out of both.

    Raises:
        InvalidInput: there are not that many anchors, or no pair would be left to train on.
    """
    anchors = np.unique(pairs.left[pairs.labelled])
    if not 0 < selection < len(anchors):
        raise InvalidInput(
            f"{selection} selection anchors cannot be cut from {len(anchors)} anchors with labels; "
            f"give 1 to {max(1, len(anchors) - 1)}"
        )
    chosen = np.random.default_rng(seed).choice(anchors, selection, replace=False)
    held_out = np.isin(pairs.left, chosen)
    kept = ~held_out if pairs.directed else ~held_out & ~np.isin(pairs.right, chosen)
    if not pairs.labelled[kept].any():
        raise InvalidInput(f"{selection} selection anchors leave no labelled pair to train on; choose fewer")
    return pairs.subset(kept), pairs.subset(held_out)


def refuse_leakage(train: Pairs, evaluation: Pairs, *, strict: bool = False) -> Pairs:
    """The pairs to evaluate on, after a check that training saw none of their anchors.

    An anchor or pair is shared if its id or its text is the same; undirected pairs count in either
    order. Candidates may recur; `strict` leaves out the evaluation pairs whose candidate occurs in
    train. Report the figures of both modes.

    Raises:
        InvalidInput: train and evaluation share anchors or pairs (with their counts), or strict
            evaluation has no pair left.
    """
    keys = _keys(train, evaluation)
    train_left, train_right, left, right = (
        keys[: len(train.ids)][train.left],
        keys[: len(train.ids)][train.right],
        keys[len(train.ids) :][evaluation.left],
        keys[len(train.ids) :][evaluation.right],
    )
    seen = np.union1d(train_left, train_right)
    directed = train.directed and evaluation.directed
    anchors = np.intersect1d(left, train_left if directed else seen)
    trained = set(zip(train_left.tolist(), train_right.tolist(), strict=True))
    if not directed:
        trained |= {(second, first) for first, second in trained}
    pairs = len(trained & set(zip(left.tolist(), right.tolist(), strict=True)))
    if len(anchors) or pairs:
        raise InvalidInput(
            f"training saw {len(anchors):,} of the {len(np.unique(left)):,} evaluation anchors and {pairs:,} of the "
            f"{len(evaluation):,} pairs; split by anchor (split_by_anchor) or evaluate on other pairs"
        )
    if not strict:
        return evaluation
    unseen = ~np.isin(right, seen)
    if not unseen.any():
        raise InvalidInput("training saw every candidate of the evaluation pairs; nothing is left for strict mode")
    return evaluation.subset(unseen)


def hide_labels(pairs: Pairs, *, share: float, seed: int) -> Pairs:
    """All pairs, with only `share` of the labels; the others stay as unlabelled pairs.

    Drawn by pair within each class (and grade). For one seed the labels of a smaller share are
    among those of a larger one, and each class keeps one label at least. Both orders of an
    undirected pair share their draw.

    Raises:
        InvalidInput: `share` is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise InvalidInput(f"the share of labels is {share}; give a number above 0, up to 1 (one per cent is .01)")
    chance = _chances(pairs, seed)
    kept = np.zeros(len(pairs), dtype=np.bool_)
    for rows in _strata_with_grades(pairs):
        # Rounded half up, so that a larger share never keeps fewer.
        kept[rows[np.argsort(chance[rows], kind="stable")][: int(np.floor(share * len(rows) + 0.5))]] = True
    for column in range(len(pairs.classes)):
        members = np.flatnonzero(pairs.known[:, column] & (pairs.targets[:, column] > 0))
        if len(members):
            # Kept at every share, also where it is not needed: or a smaller share would not be nested.
            kept[members[np.argmin(chance[members])]] = True
    return pairs.with_hidden(~kept)


def _keys(train: Pairs, evaluation: Pairs) -> Integers:
    """A number for each text of both data, train's first: the same one for the same id or the same text."""
    numbers: dict[tuple[str, str], int] = {}
    merged: list[int] = []
    ids, texts = (*train.ids, *evaluation.ids), (*train.texts, *evaluation.texts)
    for company, text in zip(ids, texts, strict=True):
        by_id, by_text = numbers.get(("id", company)), numbers.get(("text", text))
        number = next((found for found in (by_id, by_text) if found is not None), len(merged))
        merged.append(number)
        numbers.setdefault(("id", company), number)
        numbers.setdefault(("text", text), number)
    return np.array(merged, dtype=np.int64)


def _chances(pairs: Pairs, seed: int) -> NDArray[np.float64]:
    """A random number per pair, the same for both orders of an undirected one."""
    sides = np.stack([pairs.left, pairs.right], axis=1)
    if not pairs.directed:
        sides = np.sort(sides, axis=1)
    _, number = np.unique(sides, axis=0, return_inverse=True)
    number = number.reshape(-1)
    return np.random.default_rng(seed).random(int(number.max(initial=-1)) + 1)[number]


def _strata_with_grades(pairs: Pairs) -> list[Integers]:
    """The labelled pairs, grouped by what their labels and grades say."""
    labels = np.column_stack([pairs.strata, np.nan_to_num(pairs.gains)])
    _, number = np.unique(labels, axis=0, return_inverse=True)
    number = np.where(pairs.labelled, number.reshape(-1), -1)
    return [np.flatnonzero(number == one) for one in np.unique(number[number >= 0])]
