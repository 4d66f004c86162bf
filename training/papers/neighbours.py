"""Which sentences of a batch are neighbours in their document (QuickThoughts)."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Bool `[r, r]`: sentences near this one in its document, and all others; itself is in neither."""

    positives: Tensor
    negatives: Tensor


def neighbours(documents: Tensor, positions: Tensor, *, context: int) -> Neighbours:
    """Sentences at most `context` places before or after each other in one document are neighbours.

    `documents` and `positions` are int64 `[r]`. A sentence that stands in the batch twice is not its own
    neighbour and not its own negative.
    """
    together = documents[:, None] == documents
    distance = (positions[:, None] - positions).abs()
    near = together & (distance > 0) & (distance <= context)
    itself = together & (distance == 0)
    return Neighbours(positives=near, negatives=~near & ~itself)
