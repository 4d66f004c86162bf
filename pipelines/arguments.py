"""Parses the arguments of commands; an invalid or misspelt one is refused before anything runs."""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from difflib import get_close_matches

LIKE = 0.8
HUNDRED_YEARS = 36_500.0


def parse(parser: ArgumentParser, arguments: Sequence[str] | None) -> tuple[Namespace, list[str]]:
    """Return the parsed options and the remaining arguments for Beam. A misspelt option of `parser` ends the process.

    Other unknown options may belong to a runner, whose options neither this command nor Beam knows.
    """
    given, rest = parser.parse_known_args(arguments)
    for word in rest:
        option, name = word.partition("=")[0], name_of(word)
        if name and (near := get_close_matches(name, vars(given), n=1, cutoff=LIKE)):
            parser.error(f"there is no option {option}; did you mean --{near[0].replace('_', '-')}?")
    return given, rest


def name_of(word: str) -> str:
    """Return the name of the option in a command-line word as a Python identifier; "" if it is not an option."""
    option = word.partition("=")[0]
    return option[2:].replace("-", "_") if option.startswith("--") else ""


def count(text: str) -> int:
    """Parse a whole number of 1 or more."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r:.40} is not a whole number of 1 or more")
    return number


def amount(text: str) -> float:
    """Parse a number above 0, for example of seconds."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r:.40} is not a number above 0")
    return number


def amount_or_zero(text: str) -> float:
    """Parse a number of 0 or more."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"{text!r:.40} is not a number of 0 or more")
    return number


def days(text: str) -> float:
    """Parse a number of days, at most a hundred years."""
    number = _number(text)
    if not 0 < number <= HUNDRED_YEARS:
        raise ArgumentTypeError(f"{text!r:.40} is not a number of days above 0 and up to {HUNDRED_YEARS:,.0f}")
    return number


def port(text: str) -> int:
    """Parse a port number."""
    number = count(text)
    if number > 65_535:
        raise ArgumentTypeError(f"{text!r:.40} is not a port; ports go up to 65535")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
