"""A strict parser for JSON from other programs.

Python's own parser silently keeps the last of two members with the same name, and fails on deep nesting.
"""

import json
from collections import Counter
from typing import Any, TypeVar

Value = TypeVar("Value")

# Our own data has at most ten levels. This is well below Python's limits, so no later step fails because of the depth.
MOST_LEVELS = 100


def read_json(text: str | bytes, **hooks: Any) -> Any:
    """Return the value of a JSON text. `hooks` are those of `json.loads`.

    Raises:
        ValueError: it is not JSON, a member occurs twice in one object, or it is nested more than MOST_LEVELS deep.
    """
    try:
        if isinstance(text, str) and not hooks and not text.startswith("\ufeff"):
            value = _DECODER.decode(text)
        else:
            value = json.loads(text, **{"object_pairs_hook": without_repeats, **hooks})
    except RecursionError:
        raise _too_deep() from None
    if isinstance(text, str) and text.count("[") + text.count("{") <= MOST_LEVELS:
        return value
    return check_depth(value)


def without_repeats(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members.

    Raises:
        ValueError: two have the same name.
    """
    found = dict(members)
    if len(found) < len(members):
        counts = Counter(name for name, _ in members)
        raise ValueError(f"the member {counts.most_common(1)[0][0]!a:.80} occurs twice; keep one of them")
    return found


# `json.loads` would make a decoder for each text, which takes longer than to decode the aliases of a company.
_DECODER = json.JSONDecoder(object_pairs_hook=without_repeats)


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
