"""The anchors of a batch against its candidates, for losses that compare an anchor with many candidates.

The table of a batch of pairs has a row for each distinct text on the left (`a` anchors) and a column for each distinct
text on the right (`m` candidates). Bool masks `[a, m]` give the label of each cell.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTable:
    """The table of a batch of `n` pairs, with anchors and columns in the order of their ids.

    `anchors` `[a]` and `columns` `[m]` (int64) are the number of the first pair with each text; `anchor_of` and
    `column_of` `[n]` are the table row and column of each pair. A cell is true in at most one of the masks `[a, m]`:

    - `positives`, `negatives`: the pair has this label;
    - `unlabelled`: the pair is in the batch, without a label;
    - `others`: the candidate is paired with other anchors only.

    The cell of the anchor's own text is in none of them. A cell whose pair is in the batch in the other order is not in
    `others`.
    """

    anchors: Tensor
    columns: Tensor
    anchor_of: Tensor
    column_of: Tensor
    positives: Tensor
    negatives: Tensor
    unlabelled: Tensor
    others: Tensor

    def scatter(self, values: Tensor, *, rows: Tensor) -> Tensor:
        """Return the values of pairs `[n]` as a table `[a, m]`, without gradient.

        Only pairs for which `rows` (bool `[n]`) is true are used. A cell without such a pair is 0; a cell of
        duplicate pairs has their largest value.
        """
        shape = self.positives.shape
        cells = (self.anchor_of * shape[1] + self.column_of)[rows]
        flat = values.new_zeros(shape.numel())
        return flat.scatter_reduce(0, cells, values[rows].detach(), "amax", include_self=False).view(shape)


def candidate_table(left_ids: Tensor, right_ids: Tensor, *, positive: Tensor, known: Tensor) -> CandidateTable:
    """Return the table of the pairs `left_ids`, `right_ids` (int64 `[n]`; texts of both sides are numbered together).

    `positive` (bool `[n]`) is valid only where `known` (bool `[n]`) is true. Of duplicate pairs, a labelled one takes
    precedence over an unlabelled one, and a positive one over a negative one.

    >>> table = candidate_table(torch.tensor([1, 2]), torch.tensor([3, 4]), positive=torch.tensor([True, False]),
    ...                         known=torch.tensor([True, True]))
    >>> table.positives.tolist(), table.others.tolist()
    ([[True, False], [False, False]], [[False, True], [True, False]])
    """
    anchor_ids, anchor_of = torch.unique(left_ids, return_inverse=True)
    column_ids, column_of = torch.unique(right_ids, return_inverse=True)

    def cells(rows: Tensor) -> Tensor:
        marked = torch.zeros(len(anchor_ids), len(column_ids), dtype=torch.bool, device=left_ids.device)
        marked[anchor_of[rows], column_of[rows]] = True
        return marked

    different = anchor_ids[:, None] != column_ids
    listed = cells(torch.ones_like(known))
    positives = cells(known & positive) & different
    negatives = cells(known & ~positive) & different & ~positives
    return CandidateTable(
        anchors=_first_rows(anchor_of, len(anchor_ids)),
        columns=_first_rows(column_of, len(column_ids)),
        anchor_of=anchor_of,
        column_of=column_of,
        positives=positives,
        negatives=negatives,
        unlabelled=listed & different & ~positives & ~negatives,
        others=different & ~listed & ~_listed_in_reverse(left_ids, right_ids, anchor_ids, column_ids),
    )


def _first_rows(group_of: Tensor, count: int) -> Tensor:
    """Return the number of the first pair of each of `count` groups; `group_of` `[n]` is the group of each pair."""
    rows = torch.arange(len(group_of), device=group_of.device)
    return rows.new_full((count,), len(group_of)).scatter_reduce(0, group_of, rows, "amin")


def _listed_in_reverse(left_ids: Tensor, right_ids: Tensor, anchor_ids: Tensor, column_ids: Tensor) -> Tensor:
    """Return bool `[a, m]`: whether the batch contains the pair of this anchor and column in the other order."""
    as_anchor = torch.searchsorted(anchor_ids, right_ids).clamp(max=len(anchor_ids) - 1)
    as_column = torch.searchsorted(column_ids, left_ids).clamp(max=len(column_ids) - 1)
    in_table = (anchor_ids[as_anchor] == right_ids) & (column_ids[as_column] == left_ids)
    marked = torch.zeros(len(anchor_ids), len(column_ids), dtype=torch.bool, device=left_ids.device)
    marked[as_anchor[in_table], as_column[in_table]] = True
    return marked
