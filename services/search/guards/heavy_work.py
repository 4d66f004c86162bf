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
from starlette.types import Scope

Step: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs on the event loop; raises Problem where the work may not be begun."""

STEPS = "similarity.before_heavy_work"
"""Where the ASGI scope keeps a request's steps."""

_first: ContextVar[list[Step] | None] = ContextVar("first", default=None)


@contextmanager
def asked_first(scope: Scope, step: Step) -> Iterator[None]:
    """Within the block, the request of `scope` goes through `step` once before it begins heavy work.

    The steps belong to the scope, not to the context: on a connection that is kept alive, a server may
    begin the next request in the context of the one before, whose steps must not be gone through again.
    """
    steps: list[Step] = scope.setdefault(STEPS, [])
    steps.append(step)
    token = _first.set(steps)
    try:
        yield
    finally:
        _first.reset(token)
        if step in steps:
            steps.remove(step)


def begin_heavy_work() -> None:
    """To be called by the worker thread of a request before each piece of heavy work; outside of one it does nothing.

    Raises:
        Problem: the caller has used up its requests, or there is no place for the work; nothing was begun.
    """
    steps = _first.get()
    while steps:
        from_thread.run(steps.pop(0))
