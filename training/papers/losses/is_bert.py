"""IS-BERT: a sentence vector should share as much information as possible with its own tokens."""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import dots, mean_where


def is_bert(tokens: Tensor, mask: Tensor, sentences: Tensor) -> Tensor:
    """The Jensen–Shannon estimate of mutual information between tokens and sentences, negated.

        L = mean over (token, own sentence) of softplus(−T) + mean over (token, other sentences) of softplus(T)

    with T the inner product. Source: Zhang et al. 2020, eq. 2 and 3; only real tokens count. In the
    paper `sentences` are the means of `tokens`, the outputs of the convolutions.

    Args:
        tokens: `[r, l, d]`, a state for each token.
        mask: `[r, l]`, bool, true for real tokens.
        sentences: `[r, d]`.

    Returns a scalar: a part without any pair (one sentence: no others) is 0, still in the graph.
    """
    scores = dots(tokens, sentences)
    own = torch.eye(len(sentences), dtype=torch.bool, device=scores.device)[:, None, :]
    real = mask[:, :, None]
    return mean_where(functional.softplus(-scores), real & own) + mean_where(functional.softplus(scores), real & ~own)
