"""QuickThoughts with altered targets: the neighbours share one softmax target evenly."""

from torch import Tensor

from training.losses.arithmetic import dots, log_sum_exp_where, mean_where


def altered_targets(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """The mean neighbour against all candidates.

        L_i = −u_i·μ_i⁺ + log Σ_{a ∈ P_i ∪ N_i} exp(u_i·g_a),   μ_i⁺ = mean of g over P_i

    and the mean over the sentences i that have a neighbour. Source: "Learning better sentence
    representations" (2019), where targets of 1/b for b neighbours take the place of a single 1.

    Args:
        left: `[r, d]`, vectors u.
        right: `[m, d]`, vectors g.
        positives: `[r, m]`, bool, the neighbours P.
        negatives: `[r, m]`, bool, all other candidates N; the sentence itself is in neither.

    Returns a scalar: 0, still in the graph, without neighbours.
    """
    scores = dots(left, right)
    # u·μ⁺ is the mean of u·g over the neighbours.
    to_neighbours = mean_where(scores, positives, dim=1)
    return mean_where(log_sum_exp_where(scores, positives | negatives) - to_neighbours, positives.any(1))
