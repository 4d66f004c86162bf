"""Distillation of similarities: the student reproduces the teachers' cosines between the texts of a batch."""

import torch
from torch import Tensor

from training.losses.arithmetic import at_least_float32, cosines


def distillation(vectors: Tensor, targets: Tensor, *, temperature: float = 0.05, scale_weight: float = 0.1) -> Tensor:
    """Cross-entropy of the student's softmax over the other texts against the teachers' one, plus a squared difference.

        L = mean_i −Σ_{j≠i} p_ij log q_ij + scale_weight · mean_{i≠j} ((s_ij − t_ij)/τ)²,
        p_i = softmax_{j≠i}(t_ij/τ),  q_i = softmax_{j≠i}(s_ij/τ)

    with the student's cosines s and the teachers' t. The first term is the loss of SEED (Fang et al., ICLR 2021), over
    the batch instead of a queue. It does not change when a constant is added to all cosines of a text. The second
    term determines that constant: calibrated probabilities need cosines that are comparable across texts.

    Args:
        vectors: `[r, d]`, r at least 2; need not be unit vectors.
        targets: the teachers' cosines `[r, r]`; the diagonal is ignored.

    >>> round(distillation(torch.eye(3), torch.eye(3)).item(), 4)  # ln 2: both softmaxes are uniform over two texts
    0.6931
    """
    others = ~torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    shape = (len(vectors), len(vectors) - 1)
    student = cosines(vectors, vectors)[others].view(shape) / temperature
    teacher = at_least_float32(targets)[others].view(shape) / temperature
    entropy = -(teacher.softmax(dim=1) * student.log_softmax(dim=1)).sum(dim=1).mean()
    difference: Tensor = (student - teacher).square().mean()
    return entropy + scale_weight * difference
