"""Supervised contrastive loss on inner products, and a random sample of the positives and negatives of each anchor.

Source: Liao, Sentence Embeddings using Supervised Contrastive Learning, 2021, https://arxiv.org/abs/2106.04791.
"""

import torch
from torch import Generator, Tensor

from training.losses.arithmetic import inner_products, log_sum_exp_where, mean_where


def supervised_contrastive(
    anchors: Tensor, candidates: Tensor, positives: Tensor, negatives: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """Mean cross-entropy of the softmax over an anchor's positives and negatives (Liao 2021, eq. 2).

        L_i = −1/|P_i| Σ_{p ∈ P_i} log( exp(u_i·v_p/τ) / Σ_{a ∈ P_i ∪ N_i} exp(u_i·v_a/τ) )

    The loss is the mean of L_i over anchors with at least one positive. Scores are inner products, not cosines: with
    cosines, which lie in [−1, 1], the softmax at τ = 1 would be almost uniform. In the paper, negatives are the
    anchor's labelled negatives and the candidates of other anchors.

    Args:
        anchors: `[a, d]`, vectors u.
        candidates: `[m, d]`, vectors v.
        positives: `[a, m]`, bool, the set P of each anchor.
        negatives: `[a, m]`, bool, the set N of each anchor.

    Returns a scalar; 0 with zero gradients if no anchor has a positive.

    >>> positives, vectors = torch.tensor([[True, False]]), torch.eye(2)
    >>> round(supervised_contrastive(vectors[:1], vectors, positives, ~positives).item(), 4)  # ln(1 + 1/e)
    0.3133
    """
    scores = inner_products(anchors, candidates) / temperature
    log_probabilities = scores - log_sum_exp_where(scores, positives | negatives)[:, None]
    return -mean_where(mean_where(log_probabilities, positives, dim=1), positives.any(dim=1))


def sample_entries(mask: Tensor, at_most: int | None, generator: Generator) -> Tensor:
    """Return a copy of `mask` (bool `[a, m]`) in which at most `at_most` random entries of each row stay true.

    If `at_most` is None, return `mask`. The paper uses (positives, negatives) = (3, 3), (3, all) and (all, all). The
    sample depends on the generator only, not on the device of the mask.

    >>> sample_entries(torch.tensor([[True, True, False]]), 1, torch.Generator().manual_seed(0)).sum().item()
    1
    """
    if at_most is None:
        return mask
    random = torch.rand(mask.shape, generator=generator, device=generator.device).to(mask.device)
    sampled = random.masked_fill(~mask, -1).topk(min(at_most, mask.shape[1]), dim=1).indices
    return mask & torch.zeros_like(mask).scatter(1, sampled, True)
