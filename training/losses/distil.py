"""Distillation: the cosines of an anchor's candidates follow the scores that a teacher gave them."""

import torch
from torch import Tensor

from training.losses.arithmetic import cosines, log_sum_exp_where, mean_where, widened


def distil_ranking(
    anchors: Tensor,
    candidates: Tensor,
    teacher: Tensor,
    scored: Tensor,
    *,
    temperature: float = 0.05,
    teacher_temperature: float = 1.0,
) -> Tensor:
    """How far the student's order of each anchor's candidates is from the teacher's (Kullback–Leibler).

        L_i = Σ_j p_ij (log p_ij − log q_ij),   p = softmax(teacher / τ'),   q = softmax(cos / τ)

    both over the scored candidates of the anchor, and the mean over the anchors i that have at least
    two of them: with one there is nothing to order.

    Args:
        anchors: `[a, d]`; need not be unit vectors.
        candidates: `[m, d]`.
        teacher: `[a, m]`, scores such as logits; means something where `scored`. Gets no gradient.
        scored: `[a, m]`, bool.

    Returns a scalar: 0, still in the graph, without such an anchor.
    """
    wanted = _log_shares(torch.where(scored, widened(teacher), 0).detach() / teacher_temperature, scored)
    got = _log_shares(cosines(anchors, candidates) / temperature, scored)
    difference = torch.where(scored, wanted.exp() * (wanted - got), 0).sum(dim=1)
    return mean_where(difference, scored.sum(dim=1) > 1)


def distil_scores(anchors: Tensor, candidates: Tensor, teacher: Tensor, scored: Tensor) -> Tensor:
    """Mean squared difference between the cosines and the teacher's scores, over all scored candidates.

    The teacher's scores must be on the scale of a cosine. Shapes and the empty case as for `distil_ranking`.
    """
    difference = cosines(anchors, candidates) - torch.where(scored, widened(teacher), 0).detach()
    return mean_where(difference.square(), scored)


def _log_shares(scores: Tensor, mask: Tensor) -> Tensor:
    """log softmax of each row over the entries under `mask`, 0 elsewhere."""
    return torch.where(mask, scores - log_sum_exp_where(scores, mask)[:, None], 0)
