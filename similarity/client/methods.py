"""Makes a method look like the function that builds its call: its name, its help and its parameters."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

SELF = Parameter("self", Parameter.POSITIONAL_ONLY)


def like(build: Callable[..., Any], *, doc: str | None = None) -> Callable[[Method], Method]:
    """Decorates the method that stands for `build`; `doc` where another help and the method's own name fit better."""

    def dress(method: Method) -> Method:
        shown = signature(build)
        if doc is None:
            method.__name__ = build.__name__
        method.__doc__ = doc or build.__doc__
        method.__signature__ = shown.replace(  # type: ignore[attr-defined]  # what inspect reads first
            parameters=[SELF, *shown.parameters.values()], return_annotation=shown.empty
        )
        return method

    return dress
