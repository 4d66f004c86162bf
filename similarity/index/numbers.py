"""Keys of numbers: texts that sort like the numbers, so that an index of texts supports ranges of numbers.

    key = order of the greatest float64 that is not above the number, 16 hexadecimal digits
        + difference of the number and that float64, 3 hexadecimal digits

The 64 bits of a float64 sort like unsigned numbers if all bits of negative numbers, and the sign bit of others, are
inverted. A 64-bit integer is up to 1,023 above the float64 below it: the second part distinguishes such integers.

Keys are stored in indices: a change of their form would need a migration.
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
# Only limits of ranges can be further above a float64 than this, and no stored number is between.
_FURTHEST = 0xFFF


WHOLE_PATTERN = re.compile(r"[+-]?[0-9]{1,309}")
# Groups of three digits by one separator: 12,500, 12'500, 12 500 (also with narrow spaces), and decimals after another
# separator. Dots are certain if there are several, or if a comma follows. "0,500" and "12,5" do not match: they are
# decimals. "1 000,000" does not match either: it may be a thousand or a million.
_BLANKS = "'\u2019 \u00a0\u2009\u202f"
GROUPED_PATTERN = re.compile(
    "[+-]?[1-9][0-9]{0,2}"
    f"(?:(?P<mark>[{_BLANKS}])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*(?:\\.[0-9]+|,(?![0-9]{{3}}\\Z)[0-9]+)?"
    "|(?:,[0-9]{3})+(?:\\.[0-9]+)?"
    "|(?:\\.[0-9]{3}){2,}"
    "|(?:\\.[0-9]{3})+,[0-9]+)"
)
# "1.200" is 1.2 in English and 1200 in German.
AMBIGUOUS_PATTERN = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
# "1,234" is 1234 in English and 1.234 in German, but "2,5" and "0,500" certainly have a decimal comma.
THOUSANDS_COMMA = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
DECIMAL_COMMA = re.compile(f"(?!{THOUSANDS_COMMA.pattern}\\Z)[+-]?[0-9]+,[0-9]+")
# The year of a date is stored, so that a range of years finds it. A text such as "2010-12" may be two years.
DATE_PATTERN = re.compile(r"([12][0-9]{3})-[01][0-9]-[0-3][0-9](?:[T ].*)?")
# No digit is tried twice: a cell may have millions of them.
DECIMAL_PATTERN = re.compile(r"[+-]?([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")


def number_of(text: str) -> float | None:
    """Return the number in a text (an int for a whole number, exactly); None if the text is not a number."""
    if WHOLE_PATTERN.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL_PATTERN.fullmatch(text) else None


def number_of_cell(text: str) -> float | None:
    """Return the number in a cell of a table, which may have thousands separators; None if there is none.

    The last of two different separators is the decimal sign. A comma alone separates thousands, so "12,5" is no number;
    "1.200" is 1.2 (see `ambiguous_thousands`). The number of an ISO date is its year.

    >>> number_of_cell("12,500"), number_of_cell("1.234,50"), number_of_cell("1 234,50"), number_of_cell("12,5")
    (12500, 1234.5, 1234.5, None)
    """
    if date := DATE_PATTERN.fullmatch(text):
        return int(date[1])
    if not GROUPED_PATTERN.fullmatch(text):
        return number_of(text)
    marks = re.findall("[^0-9+-]", text)
    whole, mark, decimals = text.rpartition(marks[-1]) if len(set(marks)) > 1 else (text, "", "")
    return number_of("".join(re.findall("[0-9+-]", whole)) + ("." if mark else "") + decimals)


def has_decimal_comma(text: str) -> bool:
    """Return whether the decimal sign of a cell is certainly a comma.

    >>> has_decimal_comma("94.785,64"), has_decimal_comma("1 234,50"), has_decimal_comma("12,500")
    (True, True, False)
    """
    return (
        bool(GROUPED_PATTERN.fullmatch(text))
        and "," in text
        and len(set(re.findall("[^0-9+-]", text))) > 1
        and (text.rfind(",") > text.rfind("."))
    )


def ambiguous_thousands(text: str) -> int | None:
    """Return the other number that a cell may mean, whose point may separate thousands; None if it is not ambiguous.

    >>> ambiguous_thousands("1.200"), ambiguous_thousands("1.2"), ambiguous_thousands("1.234.567")
    (1200, None, None)
    """
    return int(text.replace(".", "")) if AMBIGUOUS_PATTERN.fullmatch(text) else None


def number_key(number: float) -> str:
    """Return the key (19 characters) of a finite number: keys compare like their numbers.

    This is exact for floats and 64-bit integers. A larger integer compares correctly with each of these.
    """
    below = _greatest_float_up_to(number)
    above = 0 if isinstance(number, float) else min(number - int(below), _FURTHEST)
    [bits] = struct.unpack(">Q", struct.pack(">d", below))
    order = bits ^ _ALL if bits & _SIGN else bits | _SIGN
    return f"{order:016x}{above:03x}"


def number_keys(attributes: Mapping[str, object]) -> dict[str, str]:
    """Return the key of each attribute that is a number, by `number_name`."""
    return {
        number_name(name): number_key(value)
        for name, value in attributes.items()
        if is_number(value) and is_finite(value)
    }


def number_name(attribute: str) -> str:
    """Return the name under which an attribute's key is stored; no attribute has it, because of the dot."""
    return f"{attribute}.number"


def key_range(
    at_least: float | None, at_most: float | None, *, above: float | None = None, below: float | None = None
) -> tuple[str, str]:
    """Return the lowest and the highest key of a range, both inclusive; None is no limit."""
    lowest = LOWEST_KEY if at_least is None else number_key(at_least)
    highest = HIGHEST_KEY if at_most is None else number_key(at_most)
    if above is not None:
        lowest = max(lowest, _shifted(number_key(above), 1))
    if below is not None:
        highest = min(highest, _shifted(number_key(below), -1))
    return lowest, highest


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is compared as a number; text, true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(number: float) -> bool:
    """Return whether a number is not infinite, not NaN, and not an integer above the greatest float64."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _shifted(key: str, by: int) -> str:
    return f"{int(key, 16) + by:0{len(key)}x}"


def _greatest_float_up_to(number: float) -> float:
    nearest = float(number) + 0.0  # -0.0 becomes 0.0, its equal
    # Python compares a float with a whole number exactly.
    return math.nextafter(nearest, -math.inf) if nearest > number else nearest
