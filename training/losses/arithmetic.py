"""Arithmetic of the losses: full precision, similarities, and means over masks that may be empty."""

import torch
from torch import Tensor
from torch.nn import functional


def at_least_float32(values: Tensor) -> Tensor:
    """Return half precisions and integers as float32; float32 and float64 unchanged."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def inner_products(left: Tensor, right: Tensor) -> Tensor:
    """Return the inner products of the rows of `left` `[..., d]` and `right` `[m, d]`: `[..., m]`."""
    # Autocast would round the factors of a matrix product to half precision.
    with torch.autocast(left.device.type, enabled=False):
        return at_least_float32(left) @ at_least_float32(right).T


def cosines(left: Tensor, right: Tensor) -> Tensor:
    """Return the cosines of the rows of `left` `[a, d]` and `right` `[m, d]`: `[a, m]`."""
    left, right = (functional.normalize(at_least_float32(vectors), dim=1) for vectors in (left, right))
    return inner_products(left, right)


def mean_where(values: Tensor, mask: Tensor, *, dim: int | None = None) -> Tensor:
    """Return the mean of the values where `mask` (bool, same shape) is true, over all or along `dim`; 0 if none."""
    return torch.where(mask, values, 0).sum(dim) / mask.sum(dim).clamp(min=1)


def log_sum_exp_where(scores: Tensor, mask: Tensor) -> Tensor:
    """Return log Σ exp of each row's scores `[a, m]` where `mask` is true, `[a]`; about the lowest float if none."""
    # Not -inf, because the gradient of a row without a true entry must be finite.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).logsumexp(dim=1)
