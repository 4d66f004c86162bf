"""Losses of papers that are reproduced: QuickThoughts and its two variants, IS-BERT, and regression on STS scores.

Conventions are those of training.losses.
"""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import at_least_float32, inner_products, log_sum_exp_where, mean_where


def quick_thoughts(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Mean cross-entropy of the (sentence, neighbour) pairs under a softmax over inner products.

        L = −1/|pairs| Σ_{(i, j): j ∈ P_i} log( exp(u_i·g_j) / Σ_{a ∈ P_i ∪ N_i} exp(u_i·g_a) )

    Source: Logeswaran and Lee 2018. u and g are the vectors of two encoders. The sentence itself is not a candidate
    and must be in neither mask (see `sentence_batches.neighbours`); code that sets its score to 0 instead keeps it in
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


def block_loss(left: Tensor, right: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Logistic loss of a sentence against two mean vectors.

        L_i = log(1 + exp(−u_i·(μ_i⁺ − μ_i⁻))),   μ_i⁺ and μ_i⁻ the means of g over P_i and N_i

    The loss is the mean of L_i over sentences with a positive and a negative. Source: Arora et al. 2019. For blocks of
    equal size, sample as many negatives as positives (`training.losses.anchor_losses.sample_entries`).

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


def is_bert(tokens: Tensor, mask: Tensor, sentences: Tensor) -> Tensor:
    """Negated Jensen–Shannon estimate of the mutual information between tokens and sentences.

        L = mean over (token, own sentence) of softplus(−T) + mean over (token, other sentences) of softplus(T)

    with T the inner product. Padding tokens do not count. Source: Zhang et al., An Unsupervised Sentence Embedding
    Method by Mutual Information Maximization, 2020, eq. 2 and 3. In the paper, `tokens` are the outputs of the
    convolutions and `sentences` their means.

    Args:
        tokens: `[r, l, d]`, the state of each token.
        mask: `[r, l]`, bool, false for padding.
        sentences: `[r, d]`.

    Returns a scalar; a mean over no pair (only one sentence) is 0 with zero gradients.

    >>> tokens, mask = torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    >>> round(is_bert(tokens, mask, torch.zeros(2, 4)).item(), 4)  # 2 ln 2
    1.3863
    """
    scores = inner_products(tokens, sentences)
    own = torch.eye(len(sentences), dtype=torch.bool, device=scores.device)[:, None, :]
    real = mask[:, :, None]
    return mean_where(functional.softplus(-scores), real & own) + mean_where(functional.softplus(scores), real & ~own)


def sts_regression(left: Tensor, right: Tensor, scores: Tensor, *, highest: float = 5.0) -> Tensor:
    """Mean squared difference between the cosine of a pair and its score divided by `highest`.

        L = 1/n Σ_i (cos(u_i, v_i) − s_i / highest)²

    Source: Reimers and Gurevych 2019 (regression objective).

    Args:
        left: `[n, d]`; need not be unit vectors.
        right: `[n, d]`.
        scores: `[n]`, from 0 to `highest`.

    Returns a scalar; 0 with zero gradients if there are no pairs.

    >>> sts_regression(torch.eye(2), torch.eye(2), torch.tensor([5.0, 0.0])).item()  # (0² + 1²) / 2
    0.5
    """
    left, right = (functional.normalize(at_least_float32(vectors), dim=1) for vectors in (left, right))
    cosine = (left * right).sum(dim=1)
    difference = cosine - at_least_float32(scores) / highest
    return mean_where(difference.square(), torch.ones_like(difference, dtype=torch.bool))
