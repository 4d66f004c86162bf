"""The anchors of a batch against its candidates, for losses that compare an anchor with many candidates.

A batch of pairs becomes a table with a row for each distinct text on the left (the anchors, `a` of
them) and a column for each distinct text on the right (`m`). The cells are bool masks.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The table of a batch of `n` pairs. Anchors and columns stand in the order of their ids.

    `anchors` `[a]` and `columns` `[m]` (int64) are the first row of the batch with that text;
    `anchor_of` and `column_of` `[n]` are the place of each pair in the table. No cell belongs to two of
    the masks `[a, m]`:

    - `positives`, `negatives`: labelled so for this anchor;
    - `unlabelled`: listed for this anchor, never with a label;
    - `others`: candidates of other anchors only.

    The anchor's own text is in none of them. Nor is, among the others, a candidate that is an anchor
    itself and lists this one: the pair is in the data, in the other order.
    """

    anchors: Tensor
    columns: Tensor
    anchor_of: Tensor
    column_of: Tensor
    positives: Tensor
    negatives: Tensor
    unlabelled: Tensor
    others: Tensor

    def table(self, values: Tensor, *, rows: Tensor) -> Tensor:
        """Values of pairs `[n]` at their places in the table `[a, m]`, without gradient.

        Only pairs under `rows` (bool `[n]`) are taken; cells without one are 0, and the largest value
        stands for a pair that is there twice.
        """
        shape = self.positives.shape
        cells = (self.anchor_of * shape[1] + self.column_of)[rows]
        flat = values.new_zeros(shape.numel())
        return flat.scatter_reduce(0, cells, values[rows].detach(), "amax", include_self=False).view(shape)


def relations(left_ids: Tensor, right_ids: Tensor, *, positive: Tensor, known: Tensor) -> Relations:
    """The table of the pairs `left_ids`, `right_ids` (int64 `[n]`, one numbering for both sides).

    `positive` (bool `[n]`) means something where `known` (bool `[n]`). A pair that is listed twice and
    labelled once is labelled; one that is labelled both ways is positive.
    """
    anchor_ids, anchor_of = torch.unique(left_ids, return_inverse=True)
    column_ids, column_of = torch.unique(right_ids, return_inverse=True)

    def cells(rows: Tensor) -> Tensor:
        marked = torch.zeros(len(anchor_ids), len(column_ids), dtype=torch.bool, device=left_ids.device)
        marked[anchor_of[rows], column_of[rows]] = True
        return marked

    foreign = anchor_ids[:, None] != column_ids
    listed = cells(torch.ones_like(known))
    positives = cells(known & positive) & foreign
    negatives = cells(known & ~positive) & foreign & ~positives
    return Relations(
        anchors=_first_rows(anchor_of, len(anchor_ids)),
        columns=_first_rows(column_of, len(column_ids)),
        anchor_of=anchor_of,
        column_of=column_of,
        positives=positives,
        negatives=negatives,
        unlabelled=listed & foreign & ~positives & ~negatives,
        others=foreign & ~listed & ~_listed_in_reverse(left_ids, right_ids, anchor_ids, column_ids),
    )


def _first_rows(place: Tensor, count: int) -> Tensor:
    """The lowest row at each of `count` places."""
    rows = torch.arange(len(place), device=place.device)
    return rows.new_full((count,), len(place)).scatter_reduce(0, place, rows, "amin")


def _listed_in_reverse(left_ids: Tensor, right_ids: Tensor, anchor_ids: Tensor, column_ids: Tensor) -> Tensor:
    """Bool `[a, m]`: there is a pair with the column's text on the left and the anchor's on the right."""
    as_anchor = torch.searchsorted(anchor_ids, right_ids).clamp(max=len(anchor_ids) - 1)
    as_column = torch.searchsorted(column_ids, left_ids).clamp(max=len(column_ids) - 1)
    there = (anchor_ids[as_anchor] == right_ids) & (column_ids[as_column] == left_ids)
    marked = torch.zeros(len(anchor_ids), len(column_ids), dtype=torch.bool, device=left_ids.device)
    marked[as_anchor[there], as_column[there]] = True
    return marked
