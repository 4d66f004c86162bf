"""QuickThoughts: classify which sentences of the batch are the neighbours of a sentence."""

from torch import Tensor

from training.losses.arithmetic import inner_products, log_sum_exp_where, mean_where


def quick_thoughts(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Mean cross-entropy of the (sentence, neighbour) pairs under a softmax over inner products.

        L = −1/|pairs| Σ_{(i, j): j ∈ P_i} log( exp(u_i·g_j) / Σ_{a ∈ P_i ∪ N_i} exp(u_i·g_a) )

    Source: Logeswaran and Lee 2018. u and g are the vectors of two encoders. The sentence itself is not a candidate
    and must be in neither mask (see `training.papers.neighbours`); code that sets its score to 0 instead keeps it in
    the denominator. This is a mean over pairs; `altered_targets` is a mean over sentences.

    Args:
        left: `[r, d]`, vectors u.
        right: `[m, d]`, vectors g, usually of the same sentences.
        positives: `[r, m]`, bool, the neighbours P.
        negatives: `[r, m]`, bool, all other candidates N.

    Returns a scalar; 0 with zero gradients if no sentence has a neighbour.

    >>> positives, vectors = torch.tensor([[True, False]]), torch.eye(2)
    >>> round(quick_thoughts(vectors[:1], vectors, positives, ~positives).item(), 4)  # ln(1 + 1/e)
    0.3133
    """
    scores = inner_products(left, right)
    log_probabilities = scores - log_sum_exp_where(scores, positives | negatives)[:, None]
    return -mean_where(log_probabilities, positives)
