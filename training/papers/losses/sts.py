"""Regression of graded sentence similarity, for fine-tuning on the STS benchmark."""

import torch
from torch import Tensor
from torch.nn import functional

from training.losses.arithmetic import mean_where, widened


def sts_regression(left: Tensor, right: Tensor, scores: Tensor, *, highest: float = 5.0) -> Tensor:
    """Mean squared difference between the cosine of a pair and its score as a share of the highest.

        L = 1/n Σ_i (cos(u_i, v_i) − s_i / 5)²

    Source: Reimers and Gurevych 2019 (regression objective); PAUSE's Table 2.

    Args:
        left: `[n, d]`; need not be unit vectors.
        right: `[n, d]`.
        scores: `[n]`, from 0 to `highest`.

    Returns a scalar: 0, still in the graph, without pairs.
    """
    cosine = (functional.normalize(widened(left), dim=1) * functional.normalize(widened(right), dim=1)).sum(dim=1)
    difference = cosine - widened(scores) / highest
    return mean_where(difference.square(), torch.ones_like(difference, dtype=torch.bool))
