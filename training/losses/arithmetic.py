"""Arithmetic of the losses: full precision, similarities, and means over masks that may be empty."""

import torch
from torch import Tensor
from torch.nn import functional


def widened(values: Tensor) -> Tensor:
    """Half precisions and integers as float32; float32 and float64 as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def dots(left: Tensor, right: Tensor) -> Tensor:
    """Inner products of the rows of `left` `[..., d]` and `right` `[m, d]`: `[..., m]`."""
    # Autocast would round the factors of a matrix product to half precision.
    with torch.autocast(left.device.type, enabled=False):
        return widened(left) @ widened(right).T


def cosines(left: Tensor, right: Tensor) -> Tensor:
    """Cosines of the rows of `left` `[a, d]` and `right` `[m, d]`: `[a, m]`."""
    return dots(functional.normalize(widened(left), dim=1), functional.normalize(widened(right), dim=1))


def mean_where(values: Tensor, mask: Tensor, *, dim: int | None = None) -> Tensor:
    """The mean of the values under `mask` (bool, same shape), of all or along `dim`; 0 where there are none."""
    return torch.where(mask, values, 0).sum(dim) / mask.sum(dim).clamp(min=1)


def log_sum_exp_where(scores: Tensor, mask: Tensor) -> Tensor:
    """log Σ exp over the scores of each row under `mask`: `[a, m]` to `[a]`; hugely negative where there are none."""
    # The lowest number and not -inf: its gradient is finite in a row that has nothing.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).logsumexp(dim=1)
