"""A decorator that gives a method the name, docstring and signature of the function that builds its call."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

SELF = Parameter("self", Parameter.POSITIONAL_ONLY)


def with_signature_of(build: Callable[..., Any], *, doc: str | None = None) -> Callable[[Method], Method]:
    """Return a decorator for a method that calls `build`. With `doc`, the method keeps its name and has that help."""

    def decorate(method: Method) -> Method:
        shown = signature(build)
        if doc is None:
            method.__name__ = build.__name__
        method.__doc__ = doc or build.__doc__
        method.__signature__ = shown.replace(  # type: ignore[attr-defined]  # what inspect reads first
            parameters=[SELF, *shown.parameters.values()], return_annotation=shown.empty
        )
        return method

    return decorate
