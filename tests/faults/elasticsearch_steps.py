"""Makes, promotes, rolls back and retires generations while writers write and faults come.

Each step is tried until the registry says that it was taken, as an operator would. A step that
returned must be there when the registry is read next.
"""

import threading
import time
from collections.abc import Callable, Mapping

from similarity.errors import GenerationConflict, IndexUnavailable
from similarity.index.elastic import ElasticIndex
from similarity.index.protocol import GenerationState
from tests.factories import make_generation

BUILDING, CANDIDATE = GenerationState.BUILDING, GenerationState.CANDIDATE
LIVE, PREVIOUS = GenerationState.LIVE, GenerationState.PREVIOUS
FIRST = "first"
PAUSE_SECONDS = 0.1
SECONDS_PER_STEP = 120.0

States = Mapping[str, GenerationState]


class Stepper(threading.Thread):
    """Goes through the life of one generation after the other until `finish`."""

    def __init__(self, index: ElasticIndex) -> None:
        super().__init__(daemon=True)
        self.index = index
        self.expected: dict[str, GenerationState] = {FIRST: LIVE}
        self.bugs: list[str] = []
        self._over = threading.Event()

    def finish(self) -> None:
        """Returns when the step under way is taken."""
        self._over.set()
        self.join()

    def run(self) -> None:
        for number in range(1, 1_000):
            for step, states in _life(self.index, f"g{number}"):
                if self._over.wait(PAUSE_SECONDS):
                    return
                if not self._take(step, states):
                    return

    def _take(self, step: Callable[[], object], states: States) -> bool:
        returned = False
        give_up = time.monotonic() + SECONDS_PER_STEP
        while time.monotonic() < give_up:
            try:
                seen = {generation.name: generation.state for generation in self.index.generations()}
                if seen == states:
                    self.expected = dict(states)
                    return True
                if returned or seen != self.expected:
                    self.bugs.append(f"from {self.expected} to {states}: the registry says {seen}")
                    return False
                step()
                returned = True
            except IndexUnavailable:
                time.sleep(PAUSE_SECONDS)
            except Exception as error:
                self.bugs.append(f"from {self.expected} to {states}: {type(error).__name__}: {error}")
                return False
        self.bugs.append(f"from {self.expected} to {states}: not reached in {SECONDS_PER_STEP:.0f} s")
        return False


def _life(index: ElasticIndex, name: str) -> list[tuple[Callable[[], object], States]]:
    """The steps of one generation, each with the states it leads to."""
    generation = make_generation(name)
    return [
        (lambda: index.create_generation(generation), {FIRST: LIVE, name: BUILDING}),
        (lambda: index.register_candidate(name), {FIRST: LIVE, name: CANDIDATE}),
        (lambda: index.promote(name), {FIRST: PREVIOUS, name: LIVE}),
        (lambda: _roll_back(index), {FIRST: LIVE, name: PREVIOUS}),
        (lambda: index.retire(name), {FIRST: LIVE}),
    ]


def _roll_back(index: ElasticIndex) -> None:
    try:
        index.rollback()
    except GenerationConflict:
        # What was written to the one and failed in the other has not been sent again yet.
        index.rollback(force=True)
