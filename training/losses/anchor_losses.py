"""Losses that compare an anchor with many candidates: in-batch contrastive, graded listwise, supervised contrastive.

Their arguments are anchors `[a, d]`, candidates `[m, d]`, and tables `[a, m]` (see training.losses.candidate_table).
"""

import torch
from torch import Generator, Tensor
from torch.nn import functional

from training.losses.arithmetic import at_least_float32, cosines, inner_products, log_sum_exp_where, mean_where


def in_batch_contrastive(
    anchors: Tensor, candidates: Tensor, positives: Tensor, negatives: Tensor, *, scale: float = 20.0
) -> Tensor:
    """Cross-entropy of a softmax over one positive and all negatives, on cosines times `scale` (s).

        L_i = −1/|P_i| Σ_{p ∈ P_i} log( exp(s·cos_ip) / (exp(s·cos_ip) + Σ_{a ∈ N_i} exp(s·cos_ia)) )

    The loss is the mean of L_i over anchors with at least one positive. The denominator contains no other positive of
    the anchor. N_i must not contain the anchor's unlabelled candidates or its own text: take `negatives | others` of
    `training.losses.candidate_table`.

    Args:
        anchors: `[a, d]`; need not be unit vectors.
        candidates: `[m, d]`.
        positives: `[a, m]`, bool.
        negatives: `[a, m]`, bool.

    Returns a scalar; 0 with zero gradients if no anchor has a positive.

    >>> positives = torch.tensor([[True, False]])
    >>> vectors = torch.eye(2)
    >>> round(in_batch_contrastive(vectors[:1], vectors, positives, ~positives, scale=1.0).item(), 4)  # ln(1 + 1/e)
    0.3133
    """
    scores = scale * cosines(anchors, candidates)
    of_negatives = log_sum_exp_where(scores, negatives)[:, None]
    # −log(exp(s) / (exp(s) + exp(b))) = softplus(b − s)
    return mean_where(mean_where(functional.softplus(of_negatives - scores), positives, dim=1), positives.any(dim=1))


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

    The loss is the mean of L_i over anchors with a gain above 0. The gains are as in nDCG: 3/1/0 for the grades
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
