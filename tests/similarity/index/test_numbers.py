import math
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from similarity.index.numbers import (
    HIGHEST_KEY,
    LOWEST_KEY,
    is_finite,
    is_number,
    key_range,
    number_key,
    number_keys,
    number_name,
    number_of_cell,
)

WHOLE = st.integers(-(2**63), 2**63 - 1)
# Near a power of two, where float64s begin to lie further apart.
AWKWARD = st.builds(lambda power, step: 2**power + step, st.integers(50, 62), st.integers(-3, 3))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
STORED = WHOLE | AWKWARD | AWKWARD.map(lambda number: -number) | FLOATS | WHOLE.map(float)
BOUNDS = STORED | st.integers(-(2**1000), 2**1000)


@given(STORED, STORED)
@example(2**53, 2**53 + 1)
@example(2**63 - 1, 2.0**63)
@example(-(2**53) - 1, -(2.0**53))
@example(0.0, -0.0)
@example(0, -5e-324)
def test_keys_compare_as_their_numbers_do(one: float, other: float) -> None:
    assert (number_key(one) < number_key(other)) is (one < other)
    assert (number_key(one) == number_key(other)) is (one == other)


@given(STORED, BOUNDS)
@example(2.0**63, 2**63 + 1)
@example(1e300, int(1e300) + 1)
@example(-1e300, int(-1e300) - 1)
def test_a_whole_number_of_any_size_compares_rightly_with_what_is_stored(stored: float, bound: int) -> None:
    assert (number_key(stored) <= number_key(bound)) is (stored <= bound)
    assert (number_key(stored) >= number_key(bound)) is (stored >= bound)


@given(BOUNDS)
@example(sys.float_info.max)
@example(-sys.float_info.max)
def test_every_key_has_one_length_and_lies_between_the_outermost(number: float) -> None:
    key = number_key(number)
    assert len(key) == len(LOWEST_KEY) == len(HIGHEST_KEY)
    assert LOWEST_KEY < key < HIGHEST_KEY


@pytest.mark.parametrize(
    ("number", "key"),
    [
        (0, "8000000000000000000"),
        (-0.0, "8000000000000000000"),
        (1, "bff0000000000000000"),
        (1.0, "bff0000000000000000"),
        (-1, "400fffffffffffff000"),
        (2**53 + 1, "c340000000000000001"),
        (2**63 - 1, "c3dfffffffffffff3ff"),
        (1e300, "fe37e43c8800759c000"),
    ],
)
def test_keys_keep_their_form_because_indices_hold_them(number: float, key: str) -> None:
    assert number_key(number) == key


def test_only_numbers_have_keys() -> None:
    attributes = {"size": 10, "share": 0.5, "listed": True, "code": "7", "beyond": 10**400}
    assert number_keys(attributes) == {"size.number": number_key(10), "share.number": number_key(0.5)}
    assert number_name("size") == "size.number"


def test_a_range_without_an_end_goes_on_to_the_outermost_key() -> None:
    assert key_range(None, None) == (LOWEST_KEY, HIGHEST_KEY)
    assert key_range(1, 2.5) == (number_key(1), number_key(2.5))
    assert key_range(-1, None) == (number_key(-1), HIGHEST_KEY)
    assert key_range(None, 7) == (LOWEST_KEY, number_key(7))


@pytest.mark.parametrize(("value", "number"), [(1, True), (-0.5, True), (True, False), ("1", False), (None, False)])
def test_truth_and_text_are_no_numbers(value: object, *, number: bool) -> None:
    assert is_number(value) is number


@pytest.mark.parametrize(
    ("number", "finite"), [(1e300, True), (2**63, True), (math.inf, False), (math.nan, False), (-(10**400), False)]
)
def test_what_no_float64_comes_near_is_not_finite(number: float, *, finite: bool) -> None:
    assert is_finite(number) is finite


def test_a_cell_of_many_digits_is_read_in_one_pass() -> None:
    # Where the time grows with the square of the length, this takes minutes.
    assert number_of_cell("0" * 200_000 + "x") is None
    assert [number_of_cell(text) for text in ("1.5", "1.", ".5", "1e3", "+7")] == [1.5, 1, 0.5, 1e3, 7]
    assert [number_of_cell(text) for text in (".", "e3")] == [None, None]
