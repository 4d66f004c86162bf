"""The arguments of an objective: vectors, logits and labels of the pairs of a global batch.

    Pairs ── batches ──▶ Batch ── model ──▶ LossInputs ── objective ──▶ the loss and its parts

`n` is the number of pairs of a global batch, `C` the number of classes, `d` the dimension of a vector. "Unlabelled" is
not a label: an entry is unlabelled if it is not `known`.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInputs:
    """The pairs of a global batch; floats are float32.

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
