"""Regression of the cosine on scores of sentence similarity, for fine-tuning on the STS benchmark."""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import at_least_float32, mean_where


def sts_regression(left: Tensor, right: Tensor, scores: Tensor, *, highest: float = 5.0) -> Tensor:
    """Mean squared difference between the cosine of a pair and its score divided by `highest`.

        L = 1/n Σ_i (cos(u_i, v_i) − s_i / 5)²

    Source: Reimers and Gurevych 2019 (regression objective); PAUSE's Table 2.

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
