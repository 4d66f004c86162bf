"""How deeply JSON is nested."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.guards.json_depth import too_deep

TRICKY = st.text(alphabet='[]{}"\\,: aé\n', max_size=12)
JSON: st.SearchStrategy[Any] = st.recursive(
    TRICKY, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY, inner, max_size=2), max_leaves=20
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(value=JSON, ascii_only=st.booleans())
def test_valid_json_is_measured_exactly_whatever_its_strings_hold(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    exact = depth(value)
    assert not too_deep(text, exact)
    assert exact == 0 or too_deep(text, exact - 1)


@given(st.binary(max_size=200))
def test_anything_else_is_measured_without_failing(text: bytes) -> None:
    assert too_deep(text, 8) in {True, False}
    assert too_deep(text, 8, lines=True) in {True, False}


def test_brackets_in_strings_hide_nothing() -> None:
    assert too_deep(b'["]]]]]]]]]]", ' + b"[" * 10, 8)
    assert too_deep(b'["\\"]]]]]]]]]]", ' + b"[" * 10, 8)
    assert too_deep(b'["\\\\", ' + b"[" * 10, 8)
    assert not too_deep(b'["' + b"[" * 50 + b'"]', 8)


def test_lines_are_measured_one_by_one() -> None:
    broken = b'{"a": \n' * 100
    assert too_deep(broken, 8)
    assert not too_deep(broken, 8, lines=True)
    assert too_deep(broken + b"[" * 9, 8, lines=True)


@pytest.mark.parametrize("piece", [b"[", b'"', b'\\"', b'"\\', b'["', b"{}", b'[]"]"', b"\n[[[[[[[[["])
def test_the_worst_megabytes_take_no_long_time(piece: bytes) -> None:
    text = (b"[" * 50 + b"]" * 50 + piece * (2_000_000 // len(piece)))[:2_000_000]
    started = time.perf_counter()
    too_deep(text, 60)
    too_deep(text, 8, lines=True)
    assert time.perf_counter() - started < 4
