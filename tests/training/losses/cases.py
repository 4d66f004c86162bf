"""Random cases for the losses, as float64 arrays, and what every loss must do with its gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
SEEDS = range(12)


@dataclass(frozen=True)
class Table:
    """Vectors of anchors and candidates, and two masks that share no cell; some rows may be empty."""

    anchors: Floats
    candidates: Floats
    positives: Bools
    negatives: Bools

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return tensor(self.anchors), tensor(self.candidates), tensor(self.positives), tensor(self.negatives)


def random_table(seed: int) -> Table:
    random = np.random.default_rng(seed)
    anchors, candidates = int(random.integers(1, 6)), int(random.integers(1, 8))
    kinds = random.integers(0, 3, size=(anchors, candidates))
    if seed % 4 == 0:
        kinds[0] = random.integers(0, 2, size=candidates)  # an anchor without positives
    if seed % 4 == 1:
        kinds[0] = 2  # an anchor without negatives
    return Table(
        anchors=random.normal(size=(anchors, 4)),
        candidates=random.normal(size=(candidates, 4)),
        positives=kinds == 2,
        negatives=kinds == 1,
    )


def tensor(values: Any) -> Tensor:
    return torch.tensor(values)


def cosine(left: Floats, right: Floats) -> float:
    return float(left @ right / np.sqrt((left @ left) * (right @ right)))


def assert_zero_with_zero_gradient(loss: Callable[..., Tensor], *vectors: Tensor) -> None:
    leaves = [vector.clone().requires_grad_() for vector in vectors]
    value = loss(*leaves)
    assert value.item() == 0
    for gradient in torch.autograd.grad(value, leaves):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def assert_right_gradient(loss: Callable[..., Tensor], *vectors: Tensor) -> None:
    """Against finite differences, in float64."""
    leaves = tuple(vector.double().clone().requires_grad_() for vector in vectors)
    assert torch.autograd.gradcheck(loss, leaves)


def assert_finite_gradient(loss: Callable[..., Tensor], *vectors: Tensor) -> None:
    leaves = [vector.clone().requires_grad_() for vector in vectors]
    value = loss(*leaves)
    assert torch.isfinite(value)
    for gradient in torch.autograd.grad(value, leaves):
        assert torch.isfinite(gradient).all()
