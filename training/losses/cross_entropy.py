"""Cross-entropy of labelled pairs, divided by the number of classes, as the PU loss is.

PAUSE is Cao et al. 2021 (https://arxiv.org/abs/2109.03155).
"""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import at_least_float32


def cross_entropy(logits: Tensor, targets: Tensor, known: Tensor) -> Tensor:
    """Softmax cross-entropy of N labelled rows, for mutually exclusive classes (PAUSE, eq. 1).

        L = −1/(C·N) Σ_i Σ_c y_ic log softmax(f_i)_c

    The authors' code and `torch.nn.functional.cross_entropy` omit the factor 1/C. Without it, the unlabelled term of
    eq. 11 is C times weaker than printed.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1, one 1 in each labelled row.
        known: `[n, C]`, bool; a row is labelled if any of its entries is known.

    Returns a scalar; 0 with zero gradients if no row is labelled.

    >>> logits, targets = torch.zeros(2, 2), torch.tensor([[1, 0], [0, 0]])
    >>> round(cross_entropy(logits, targets, torch.tensor([[True, True], [False, False]])).item(), 4)  # ln 2 / 2
    0.3466
    """
    logits = at_least_float32(logits)
    labelled_targets = torch.where(known.any(dim=1, keepdim=True), targets.to(logits), 0)
    return -(labelled_targets * functional.log_softmax(logits, dim=1)).sum() / _entries(known)


def binary_cross_entropy(logits: Tensor, targets: Tensor, known: Tensor) -> Tensor:
    """Sigmoid cross-entropy of each class (PAUSE, eq. 2, corrected), for a single class (C = 1).

        L = −1/(C·N) Σ_i Σ_c k_ic [y_ic log σ(f_ic) + (1 − y_ic) log(1 − σ(f_ic))]

    As printed, eq. 2 has no term for y = 0, so its minimum is at f → ∞. k is the mask of known entries, N the number
    of rows with at least one known entry.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool; only these entries count.

    Returns a scalar; 0 with zero gradients if no entry is known.

    >>> logits, known = torch.zeros(2, 1), torch.tensor([[True], [False]])
    >>> round(binary_cross_entropy(logits, torch.ones(2, 1), known).item(), 4)  # ln 2
    0.6931
    """
    logits = at_least_float32(logits)
    # log σ(f) = f − softplus(f) and log(1 − σ(f)) = −softplus(f), finite for every f.
    entropies = functional.softplus(logits) - torch.where(known, targets.to(logits), 0) * logits
    return torch.where(known, entropies, 0).sum() / _entries(known)


def _entries(known: Tensor) -> Tensor:
    """C·N, the number of entries in labelled rows; at least 1."""
    return (known.any(dim=1).sum() * known.shape[1]).clamp(min=1)
