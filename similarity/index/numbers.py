"""Numbers as texts that sort as the numbers do, so that an index of texts can answer ranges of numbers.

    key = order of the greatest float64 that is not above the number, 16 hexadecimal digits
        + how far the number is above it, 3 hexadecimal digits

The float64's 64 bits sort as unsigned numbers do once all of a negative one's are flipped, and the
sign alone of any other. Whole numbers of 64 bits lie up to 1,023 above the float64 below them: the
second part keeps apart what one float64 cannot.

Keys lie in indices for years and never change their form: a new one would need a migration.
"""

import math
import re
import struct
from collections.abc import Mapping
from typing import TypeGuard

LOWEST_KEY = "0" * 19
HIGHEST_KEY = "f" * 19

_SIGN = 1 << 63
_ALL = (1 << 64) - 1
# Only bounds of ranges are further above a float64 than this, and no stored number lies in between.
_FURTHEST = 0xFFF


WHOLE_PATTERN = re.compile(r"[+-]?[0-9]{1,309}")
DECIMAL_PATTERN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number_of(text: str) -> float | None:
    """The number that a text spells, a whole one exactly, as an int; None if it spells none."""
    if WHOLE_PATTERN.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL_PATTERN.fullmatch(text) else None


def number_key(number: float) -> str:
    """The key, 19 characters, of a finite number: two keys compare as their numbers do, equal ones alike.

    Exact among floats and whole numbers of 64 bits. A larger whole number compares rightly with each of these.
    """
    below = _greatest_float_up_to(number)
    above = 0 if isinstance(number, float) else min(number - int(below), _FURTHEST)
    [bits] = struct.unpack(">Q", struct.pack(">d", below))
    order = bits ^ _ALL if bits & _SIGN else bits | _SIGN
    return f"{order:016x}{above:03x}"


def number_keys(attributes: Mapping[str, object]) -> dict[str, str]:
    """The key of each attribute that is a number, by `number_name`."""
    return {
        number_name(name): number_key(value)
        for name, value in attributes.items()
        if is_number(value) and is_finite(value)
    }


def number_name(attribute: str) -> str:
    """What an attribute's key is called beside its text: no attribute, for their names have no dot."""
    return f"{attribute}.number"


def key_range(at_least: float | None, at_most: float | None) -> tuple[str, str]:
    """The lowest and the highest key of a range, both included; None is no bound."""
    lowest = LOWEST_KEY if at_least is None else number_key(at_least)
    return lowest, HIGHEST_KEY if at_most is None else number_key(at_most)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is compared as a number: text, true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(number: float) -> bool:
    """Whether a number is neither infinite nor NaN nor, a whole one, beyond the greatest float64."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _greatest_float_up_to(number: float) -> float:
    nearest = float(number) + 0.0  # -0.0 becomes 0.0, its equal
    # Python compares a float with a whole number exactly.
    return math.nextafter(nearest, -math.inf) if nearest > number else nearest
