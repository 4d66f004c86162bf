"""Distillation of similarities: a text's nearness to the others of its batch should be what teachers say."""

import torch
from torch import Tensor

from training.losses.arithmetic import cosines, widened


def distillation(vectors: Tensor, targets: Tensor, *, temperature: float = 0.05, scale_weight: float = 0.1) -> Tensor:
    """Cross-entropy of each text's softmax over the batch's others against the teachers', and their distance in scale.

        L = mean_i −Σ_{j≠i} p_ij log q_ij + scale_weight · mean_{i≠j} ((s_ij − t_ij)/τ)²,
        p_i = softmax_{j≠i}(t_ij/τ),  q_i = softmax_{j≠i}(s_ij/τ)

    with the student's cosines s and the teachers' t. The first term is that of SEED (Fang et al., ICLR 2021)
    with the batch in place of its queue. It says nothing on a constant added to all cosines of a text; the
    second fixes that, so that cosines of different texts can be compared, which probabilities need.

    Args:
        vectors: `[r, d]`, r at least 2; need not be unit vectors.
        targets: the teachers' cosines `[r, r]`; the diagonal is ignored.
    """
    others = ~torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    shape = (len(vectors), len(vectors) - 1)
    student = cosines(vectors, vectors)[others].view(shape) / temperature
    teacher = widened(targets)[others].view(shape) / temperature
    order = -(teacher.softmax(dim=1) * student.log_softmax(dim=1)).sum(dim=1).mean()
    scale: Tensor = (student - teacher).square().mean()
    return order + scale_weight * scale
