"""QuickThoughts: from a sentence, its neighbours are to be found among all sentences of the batch."""

from torch import Tensor

from training.losses.arithmetic import dots, log_sum_exp_where, mean_where


def quick_thoughts(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """The mean surprise at each (sentence, neighbour), by a softmax over raw inner products.

        L = −1/|pairs| Σ_{(i, j): j ∈ P_i} log( exp(u_i·g_j) / Σ_{a ∈ P_i ∪ N_i} exp(u_i·g_a) )

    Source: Logeswaran and Lee 2018. u and g come from two encoders, f and g. The sentence itself is no
    candidate, so it may stand in neither mask (see `training.papers.neighbours`); public code that
    sets its score to 0 leaves it in the sum. Each pair counts once; in `altered_targets` each sentence.

    Args:
        left: `[r, d]`, vectors u.
        right: `[m, d]`, vectors g; usually of the same sentences.
        positives: `[r, m]`, bool, the neighbours P.
        negatives: `[r, m]`, bool, all other candidates N.

    Returns a scalar: 0, still in the graph, without neighbours.
    """
    scores = dots(left, right)
    log_shares = scores - log_sum_exp_where(scores, positives | negatives)[:, None]
    return -mean_where(log_shares, positives)
