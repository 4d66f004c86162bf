"""Supervised contrastive loss on inner products, and the draw of a few positives and negatives for each anchor."""

import torch
from torch import Generator, Tensor

from training.losses.arithmetic import dots, log_sum_exp_where, mean_where


def supervised_contrastive(
    anchors: Tensor, candidates: Tensor, positives: Tensor, negatives: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """Moves anchors towards all their positives at once and away from their negatives.

        L_i = −1/|P_i| Σ_{p ∈ P_i} log( exp(u_i·v_p/τ) / Σ_{a ∈ P_i ∪ N_i} exp(u_i·v_a/τ) )

    and the mean over the anchors i that have a positive. Source: Supervised contrastive learning for
    sentence pairs, its eq. 2. The products are not normalised: only so is τ = 1 a meaningful choice.
    The paper's negatives are an anchor's labelled ones and the candidates of other anchors.

    Args:
        anchors: `[a, d]`, vectors u.
        candidates: `[m, d]`, vectors v.
        positives: `[a, m]`, bool, the P of each anchor.
        negatives: `[a, m]`, bool, the N of each anchor.

    Returns a scalar: 0, still in the graph, if no anchor has a positive.
    """
    scores = dots(anchors, candidates) / temperature
    log_shares = scores - log_sum_exp_where(scores, positives | negatives)[:, None]
    return -mean_where(mean_where(log_shares, positives, dim=1), positives.any(dim=1))


def draw(mask: Tensor, at_most: int | None, generator: Generator) -> Tensor:
    """At most `at_most` random entries of each row of `mask` (bool `[a, m]`); all of them for None.

    The paper's choices (positives, negatives) are (3, 3), (3, all) and (all, all). The draw depends on
    the generator alone, not on the device of the mask.
    """
    if at_most is None:
        return mask
    random = torch.rand(mask.shape, generator=generator, device=generator.device).to(mask.device)
    drawn = random.masked_fill(~mask, -1).topk(min(at_most, mask.shape[1]), dim=1).indices
    return mask & torch.zeros_like(mask).scatter(1, drawn, True)
