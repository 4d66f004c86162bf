"""Which faults a schedule holds: drawn from its seed. Pure.

Faults of one track follow each other, the tracks run at the same time: a node may be killed while the
proxy loses answers and a writer dies. Only one node at a time is down: that is what one replica is for.
"""

import random
from dataclasses import dataclass

from tests.faults.fault_proxy import KINDS

KILL_NODE, PAUSE_NODE, KILL_WRITER, FULL_QUEUE = "node killed", "node paused", "writer killed", "queue full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """After `wait` seconds: `kind` for so many seconds; `target` chooses the node or the writer."""

    kind: str
    wait: float
    seconds: float = 0.0
    target: int = 0
    chance: float = 1.0
    late_by: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run on a cluster of `nodes`. With `steps`, generations are made, promoted, rolled back and retired in it."""

    seed: int
    nodes: int
    writers: int
    request_seconds: float
    write_seconds: float
    steps: bool
    tracks: tuple[tuple[Fault, ...], ...]

    @property
    def name(self) -> str:
        return f"run-{self.nodes}-{self.seed}"


def draw(seed: int, *, nodes: int) -> Schedule:
    """The schedule of a seed, always the same."""
    choice = random.Random(f"{seed} on {nodes}")
    request_seconds = round(choice.uniform(0.5, 2.5), 2)
    return Schedule(
        seed=seed,
        nodes=nodes,
        writers=choice.randint(2, 4),
        request_seconds=request_seconds,
        write_seconds=round(choice.uniform(1, 6), 2),
        steps=choice.random() < 0.5,
        tracks=(
            _nodes(choice, nodes),
            _proxy(choice, request_seconds),
            _writers(choice),
            _queue(choice),
        ),
    )


def _nodes(choice: random.Random, nodes: int) -> tuple[Fault, ...]:
    """Mostly one fault; a kill takes a single node away for as long as it takes to start."""
    faults = []
    for kind in choice.choice(((KILL_NODE,), (KILL_NODE,), (PAUSE_NODE,), (PAUSE_NODE, PAUSE_NODE), ())):
        longest = 8.0 if choice.random() < 0.3 else 2.5
        seconds = choice.uniform(0.5, longest) if kind == PAUSE_NODE else choice.uniform(0, 1)
        faults.append(Fault(kind=kind, wait=choice.uniform(0.3, 2), seconds=seconds, target=choice.randrange(nodes)))
    return tuple(faults)


def _proxy(choice: random.Random, request_seconds: float) -> tuple[Fault, ...]:
    return tuple(
        Fault(
            kind=choice.choice(KINDS),
            wait=choice.uniform(0.1, 0.6),
            seconds=choice.uniform(0.3, 1.2),
            target=choice.randrange(1_000),
            chance=choice.uniform(0.2, 1),
            late_by=request_seconds + choice.uniform(0.05, 1.5),
        )
        for _ in range(choice.randint(2, 5))
    )


def _writers(choice: random.Random) -> tuple[Fault, ...]:
    return tuple(
        Fault(kind=KILL_WRITER, wait=choice.uniform(0.2, 1.5), target=choice.randrange(1_000))
        for _ in range(choice.randint(0, 3))
    )


def _queue(choice: random.Random) -> tuple[Fault, ...]:
    if choice.random() < 0.5:
        return ()
    return (Fault(kind=FULL_QUEUE, wait=choice.uniform(0.5, 2), seconds=choice.uniform(0.5, 1.5)),)
