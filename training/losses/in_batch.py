"""In-batch contrastive loss: an anchor's positive against what the batch holds for the other anchors."""

from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import cosines, log_sum_exp_where, mean_where


def in_batch_contrastive(
    anchors: Tensor, candidates: Tensor, positives: Tensor, negatives: Tensor, *, scale: float = 20.0
) -> Tensor:
    """Scaled cosines under a softmax with one positive at a time.

        L_i = −1/|P_i| Σ_{p ∈ P_i} log( exp(s·cos_ip) / (exp(s·cos_ip) + Σ_{a ∈ N_i} exp(s·cos_ia)) )

    and the mean over the anchors i that have a positive. The other positives of an anchor are not in
    the denominator of this one. N_i must not hold the anchor's unlabelled candidates nor its own text:
    take the labelled negatives and the others of `training.losses.relations`.

    Args:
        anchors: `[a, d]`; need not be unit vectors.
        candidates: `[m, d]`.
        positives: `[a, m]`, bool.
        negatives: `[a, m]`, bool.

    Returns a scalar: 0, still in the graph, if no anchor has a positive.
    """
    scores = scale * cosines(anchors, candidates)
    against = log_sum_exp_where(scores, negatives)[:, None]
    # −log(exp(s) / (exp(s) + exp(b))) = softplus(b − s)
    return mean_where(mean_where(functional.softplus(against - scores), positives, dim=1), positives.any(dim=1))
