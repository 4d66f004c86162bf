"""CURL's block loss: a sentence is nearer to the mean of its neighbours than to the mean of others."""

from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import dots, mean_where


def block_loss(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Logistic loss of a sentence against two mean vectors.

        L_i = log(1 + exp(−u_i·(μ_i⁺ − μ_i⁻))),   μ_i⁺ and μ_i⁻ the means of g over P_i and N_i

    and the mean over the sentences i that have both. Source: Arora et al. 2019, blocks in place of
    single examples. For blocks of equal size draw as many negatives as there are positives
    (`training.losses.supervised_contrastive.draw`).

    Args:
        left: `[r, d]`, vectors u.
        right: `[m, d]`, vectors g.
        positives: `[r, m]`, bool, the neighbours P.
        negatives: `[r, m]`, bool, the others N; the sentence itself is in neither.

    Returns a scalar: 0, still in the graph, if no sentence has both.
    """
    scores = dots(left, right)
    # u·μ is the mean of u·g over the block.
    ahead = mean_where(scores, positives, dim=1) - mean_where(scores, negatives, dim=1)
    return mean_where(functional.softplus(-ahead), positives.any(dim=1) & negatives.any(dim=1))
