"""QuickThoughts with altered targets: the softmax target is uniform over the neighbours."""

from torch import Tensor

from training.losses.arithmetic import inner_products, log_sum_exp_where, mean_where


def altered_targets(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Cross-entropy of the softmax over all candidates against a uniform target over the neighbours.

        L_i = −u_i·μ_i⁺ + log Σ_{a ∈ P_i ∪ N_i} exp(u_i·g_a),   μ_i⁺ = mean of g over P_i

    The loss is the mean of L_i over sentences with a neighbour. Source: the blog post "Learning Better Sentence
    Representations" (19 May 2019): each of b neighbours has the target 1/b.

    Args:
        left: `[r, d]`, vectors u.
        right: `[m, d]`, vectors g.
        positives: `[r, m]`, bool, the neighbours P.
        negatives: `[r, m]`, bool, all other candidates N; the sentence itself is in neither mask.

    Returns a scalar; 0 with zero gradients if no sentence has a neighbour.

    >>> positives, vectors = torch.tensor([[True, False]]), torch.eye(2)
    >>> round(altered_targets(vectors[:1], vectors, positives, ~positives).item(), 4)  # ln(1 + 1/e)
    0.3133
    """
    scores = inner_products(left, right)
    # u·μ⁺ is the mean of u·g over the neighbours.
    to_neighbours = mean_where(scores, positives, dim=1)
    return mean_where(log_sum_exp_where(scores, positives | negatives) - to_neighbours, positives.any(1))
