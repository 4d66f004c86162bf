"""In-batch contrastive loss: an anchor's positive against the candidates of the other anchors in the batch."""

from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import cosines, log_sum_exp_where, mean_where


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
