"""Cross-entropy of labelled pairs, divided by the number of classes as the PU loss beside it is."""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import widened


def cross_entropy(logits: Tensor, targets: Tensor, known: Tensor) -> Tensor:
    """PAUSE, eq. 1: softmax cross-entropy over N labelled rows, for classes that exclude each other.

        L = −1/(C·N) Σ_i Σ_c y_ic log softmax(f_i)_c

    Public code (and `torch.nn.functional.cross_entropy`) forget the 1/C, which makes the unlabelled
    term of eq. 11 C times weaker than printed.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1, one 1 in each labelled row.
        known: `[n, C]`, bool; a row is labelled if any of its entries is known.

    Returns a scalar: 0, still in the graph, without labelled rows.
    """
    logits = widened(logits)
    chosen = torch.where(known.any(dim=1, keepdim=True), targets.to(logits), 0)
    return -(chosen * functional.log_softmax(logits, dim=1)).sum() / _entries(known)


def binary_cross_entropy(logits: Tensor, targets: Tensor, known: Tensor) -> Tensor:
    """PAUSE, eq. 2 corrected: sigmoid cross-entropy, each class a question of its own (multi-label; C = 1).

        L = −1/(C·N) Σ_i Σ_c k_ic [y_ic log σ(f_ic) + (1 − y_ic) log(1 − σ(f_ic))]

    As printed, eq. 2 has no term for y = 0 and is lowest at f → ∞. k is the mask of known entries, N
    the number of rows that have one.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool; only these entries count.

    Returns a scalar: 0, still in the graph, without a known entry.
    """
    logits = widened(logits)
    # log σ(f) = f − softplus(f) and log(1 − σ(f)) = −softplus(f), finite for every f.
    surprise = functional.softplus(logits) - torch.where(known, targets.to(logits), 0) * logits
    return torch.where(known, surprise, 0).sum() / _entries(known)


def _entries(known: Tensor) -> Tensor:
    """C·N, the number of entries in labelled rows, and 1 if there are none."""
    return (known.any(dim=1).sum() * known.shape[1]).clamp(min=1)
