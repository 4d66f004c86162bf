"""One or several processes that train together (`torchrun`).

Every process knows the whole global batch, encodes its share of the texts, and gets the vectors of
all texts, so each process computes the same loss. Only the gradients through the encoder differ, because
each process sends back those of its own texts; they are summed.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, distributed, nn

from training.data.batches import Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """One process of a run: its rank among all `count`, and its device."""

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes files and reports."""
        return self.rank == 0

    def mine(self, order: Integers) -> Integers:
        """The share of this process of rows ordered by length: every `count`-th, so that the work is even."""
        return order[self.rank :: self.count]

    def gather(self, vectors: Tensor, rows: Integers, *, count: int) -> Tensor:
        """All `count` rows `[count, d]`; this process contributes those numbered `rows`."""
        everything = vectors.new_zeros((count, *vectors.shape[1:]))
        everything[torch.from_numpy(rows).to(vectors.device)] = vectors
        if self.count > 1:
            distributed.all_reduce(everything)  # a row is zero in all processes but one
        return everything

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Adds up the gradients of all processes, in place."""
        if self.count == 1:
            return
        trained = list(parameters)
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in trained]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat)
        pieces = flat.split([gradient.numel() for gradient in gradients])
        for parameter, piece in zip(trained, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.count > 1:
            distributed.barrier()


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """The processes of `torchrun` if it started this one; the group ends with the context."""
    cuda = torch.cuda.is_available()
    if "RANK" not in os.environ:
        yield Processes(device=torch.device("cuda" if cuda else "cpu"))
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if cuda else "gloo")
    try:
        yield Processes(rank=distributed.get_rank(), count=distributed.get_world_size(), device=device)
    finally:
        distributed.destroy_process_group()
