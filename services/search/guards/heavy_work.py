"""Work that the door could not see: free words in a body, many descriptions to take apart for reasons.

A request's cost is decided at the door as far as its method and path tell, before anything is parsed.
The rest shows only while it is answered. So whoever is about to run the encoder for it says so first:
the rate limit then takes what a heavy request costs more, and the request gives up its quick place and
takes a heavy one, or hears no. What it was asked before that costs no more than any quick request.
"""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from anyio import from_thread

Step: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs on the event loop; raises Problem where the work may not be begun."""

_first: ContextVar[list[Step] | None] = ContextVar("first", default=None)


@contextmanager
def asked_first(step: Step) -> Iterator[None]:
    """Within the block, a request that turns out to be heavy goes through `step` once before it begins."""
    token = _first.set([*(_first.get() or ()), step])
    try:
        yield
    finally:
        _first.reset(token)


def begin_heavy_work() -> None:
    """To be called by the worker thread of a request before each piece of heavy work; outside of one it does nothing.

    Raises:
        Problem: the caller has used up its requests, or there is no place for the work; nothing was begun.
    """
    steps = _first.get()
    while steps:
        from_thread.run(steps.pop(0))
