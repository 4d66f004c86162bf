"""CURL's block loss: a sentence should be more similar to the mean of its neighbours than to the mean of the others."""

from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import inner_products, mean_where


def block_loss(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Logistic loss of a sentence against two mean vectors.

        L_i = log(1 + exp(−u_i·(μ_i⁺ − μ_i⁻))),   μ_i⁺ and μ_i⁻ the means of g over P_i and N_i

    The loss is the mean of L_i over sentences with a positive and a negative. Source: Arora et al. 2019. For blocks of
    equal size, sample as many negatives as positives (`training.losses.supervised_contrastive.sample_entries`).

    Args:
        left: `[r, d]`, vectors u.
        right: `[m, d]`, vectors g.
        positives: `[r, m]`, bool, the neighbours P.
        negatives: `[r, m]`, bool, the other sentences N; the sentence itself is in neither mask.

    Returns a scalar; 0 with zero gradients if no sentence has a positive and a negative.

    >>> positives, vectors = torch.tensor([[True, False]]), torch.eye(2)
    >>> round(block_loss(vectors[:1], vectors, positives, ~positives).item(), 4)  # ln(1 + 1/e)
    0.3133
    """
    scores = inner_products(left, right)
    # u·μ is the mean of u·g over the block.
    margin = mean_where(scores, positives, dim=1) - mean_where(scores, negatives, dim=1)
    return mean_where(functional.softplus(-margin), positives.any(dim=1) & negatives.any(dim=1))
