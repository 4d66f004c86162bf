"""JSON from outside this process: nested too deeply, it is a ValueError and not Python's RecursionError."""

import json
from typing import Any, TypeVar

Value = TypeVar("Value")

# Nothing of ours nests more than ten. Well below Python's own limits, so that no later step fails for depth either.
MOST_LEVELS = 100


def read_json(text: str | bytes, **hooks: Any) -> Any:
    """Return the value of a JSON text. `hooks` are those of `json.loads`.

    Raises:
        ValueError: it is not JSON, or it is nested more than MOST_LEVELS deep.
    """
    try:
        value = json.loads(text, **hooks)
    except RecursionError:
        raise _too_deep() from None
    return check_depth(value)


def check_depth(value: Value) -> Value:
    """Return `value`, which was read from JSON.

    Raises:
        ValueError: it is nested more than MOST_LEVELS deep.
    """
    level: list[object] = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [inner for outer in level for inner in _members(outer)]
        if not level:
            return value
    raise _too_deep()


def _members(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> ValueError:
    return ValueError(f"it is nested too deeply (more than {MOST_LEVELS} levels)")
