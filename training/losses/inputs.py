"""The inputs of a loss on pairs.

    Pairs ── batches ──▶ Batch ── model ──▶ LossInputs ── objective ──▶ the loss and its parts

`n` is the number of pairs of a global batch, `C` of classes, `d` the length of a vector. An entry without a
label is one that is not `known`; there is no label for "unlabelled".
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInputs:
    """All that a loss on pairs may look at; floats are float32.

    `left` and `right` `[n, d]` are pooled vectors, not normalised. `logits` `[n, C]` are the head's.
    `targets` `[n, C]` are 0 or 1, and mean something where `known` `[n, C]` (bool) is true. A pair of
    single-label data is known in all classes or in none. `gains` `[n]` are those of graded pairs
    (3/1/0; NaN where a pair is not labelled), or the scores of scored ones. Equal `left_ids` or
    `right_ids` `[n]` (int64, one numbering for both sides) are the same text.
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
        """Bool `[n]`: pairs of which at least one class is known."""
        return self.known.any(dim=1)
