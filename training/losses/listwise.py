"""Graded listwise loss: an anchor's candidates, ordered by cosine, should share out its gains."""

import torch
from torch import Tensor

from training.losses.arithmetic import cosines, log_sum_exp_where, mean_where, widened


def graded_listwise(
    anchors: Tensor,
    candidates: Tensor,
    gains: Tensor,
    labelled: Tensor,
    *,
    others: Tensor | None = None,
    temperature: float = 0.05,
) -> Tensor:
    """Cross-entropy of a softmax over candidates against their gains (ListNet's form, for graded pairs).

        L_i = −Σ_j t_ij log( exp(cos_ij/τ) / Σ_{a ∈ labelled_i ∪ others_i} exp(cos_ia/τ) ),   t_ij = g_ij / Σ_a g_ia

    and the mean over the anchors i that have a gain above 0. Gains are those of nDCG, 3/1/0 for the
    grades 2/1/0. `others` are candidates of other anchors, with gain 0; unlabelled candidates of the
    anchor belong to neither mask.

    Args:
        anchors: `[a, d]`; need not be unit vectors.
        candidates: `[m, d]`.
        gains: `[a, m]`, 0 or more; means something where `labelled`.
        labelled: `[a, m]`, bool.
        others: `[a, m]`, bool.

    Returns a scalar: 0, still in the graph, if no anchor has a gain.
    """
    scores = cosines(anchors, candidates) / temperature
    gains = torch.where(labelled, widened(gains), 0)
    total = gains.sum(dim=1)
    gained = total > 0
    shares = gains / torch.where(gained, total, 1)[:, None]
    listed = labelled if others is None else labelled | others
    return mean_where(log_sum_exp_where(scores, listed) - (shares * scores).sum(dim=1), gained)
