"""IS-BERT: maximise the mutual information between a sentence vector and the states of its own tokens."""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import inner_products, mean_where


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
