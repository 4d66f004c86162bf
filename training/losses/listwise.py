"""Graded listwise loss: the softmax over an anchor's candidates should be proportional to their gains."""

import torch
from torch import Tensor

from training.losses.arithmetic import at_least_float32, cosines, log_sum_exp_where, mean_where


def graded_listwise(
    anchors: Tensor,
    candidates: Tensor,
    gains: Tensor,
    labelled: Tensor,
    *,
    others: Tensor | None = None,
    temperature: float = 0.05,
) -> Tensor:
    """Cross-entropy of a softmax over candidates against their normalised gains (as in ListNet, for graded pairs).

        L_i = −Σ_j t_ij log( exp(cos_ij/τ) / Σ_{a ∈ labelled_i ∪ others_i} exp(cos_ia/τ) ),   t_ij = g_ij / Σ_a g_ia

    The loss is the mean of L_i over anchors with a gain above 0. The gains are those of nDCG: 3/1/0 for the grades
    2/1/0. `others` are candidates of other anchors, with gain 0. Unlabelled candidates of the anchor are in neither
    mask.

    Args:
        anchors: `[a, d]`; need not be unit vectors.
        candidates: `[m, d]`.
        gains: `[a, m]`, 0 or more; valid only where `labelled`.
        labelled: `[a, m]`, bool.
        others: `[a, m]`, bool.

    Returns a scalar; 0 with zero gradients if no anchor has a gain.

    >>> labelled = torch.tensor([[True, True]])
    >>> gains, vectors = torch.tensor([[3.0, 0.0]]), torch.eye(2)
    >>> round(graded_listwise(vectors[:1], vectors, gains, labelled, temperature=1.0).item(), 4)  # ln(1 + 1/e)
    0.3133
    """
    scores = cosines(anchors, candidates) / temperature
    gains = torch.where(labelled, at_least_float32(gains), 0)
    total = gains.sum(dim=1)
    gained = total > 0
    shares = gains / torch.where(gained, total, 1)[:, None]
    listed = labelled if others is None else labelled | others
    return mean_where(log_sum_exp_where(scores, listed) - (shares * scores).sum(dim=1), gained)
