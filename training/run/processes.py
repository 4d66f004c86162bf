"""One or several processes that train together (`torchrun`).

Each process has the whole global batch, encodes its share of the texts, and gathers the vectors of all texts. So each
process computes the same loss and the same gradients of the vectors. It propagates only the gradients of its own texts
through the encoder; the gradients of the encoder's parameters are then summed over processes.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, distributed, nn

from training.data.pairs import Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """One process of a run: its rank among all `count`, and its device."""

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and logs."""
        return self.rank == 0

    def local_share(self, order: Integers) -> Integers:
        """Return every `count`-th of the rows `order`, which are sorted by length, so that each share is equal work."""
        return order[self.rank :: self.count]

    def gather(self, vectors: Tensor, rows: Integers, *, count: int) -> Tensor:
        """Return the vectors of all processes, `[count, d]`; this process contributes the rows `rows`."""
        gathered = vectors.new_zeros((count, *vectors.shape[1:]))
        gathered[torch.from_numpy(rows).to(vectors.device)] = vectors
        if self.count > 1:
            distributed.all_reduce(gathered)  # a row is zero in all processes but one
        return gathered

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over all processes, in place."""
        if self.count == 1:
            return
        trained = list(parameters)
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in trained]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat)
        summed = flat.split([gradient.numel() for gradient in gradients])
        for parameter, gradient in zip(trained, summed, strict=True):
            parameter.grad = gradient.view_as(parameter)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.count > 1:
            distributed.barrier()


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """Join the process group if `torchrun` started this process; leave it at the end of the context."""
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
