"""What arguments of commands must be, and that none is misspelt: a wrong one is refused before anything runs."""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from difflib import get_close_matches

LIKE = 0.8
HUNDRED_YEARS = 36_500.0


def parse(parser: ArgumentParser, arguments: Sequence[str] | None) -> tuple[Namespace, list[str]]:
    """The options of a parser, and what is left for Beam. Ends the process where an option is a misspelt one of these.

    What else is unknown may be an option of a runner, which neither this command nor Beam can tell.
    """
    given, rest = parser.parse_known_args(arguments)
    for word in rest:
        option, name = word.partition("=")[0], name_of(word)
        if name and (near := get_close_matches(name, vars(given), n=1, cutoff=LIKE)):
            parser.error(f"there is no option {option}; did you mean --{near[0].replace('_', '-')}?")
    return given, rest


def name_of(word: str) -> str:
    """The name of the option that a word of a command line begins, as Python writes it; empty where it is none."""
    option = word.partition("=")[0]
    return option[2:].replace("-", "_") if option.startswith("--") else ""


def count(text: str) -> int:
    """A whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r:.40} is no whole number of 1 or more")
    return number


def amount(text: str) -> float:
    """A number above 0, of seconds for example."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r:.40} is no number above 0")
    return number


def amount_or_zero(text: str) -> float:
    """A number of 0 or more."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"{text!r:.40} is no number of 0 or more")
    return number


def days(text: str) -> float:
    """A number of days, at most a hundred years of them."""
    number = _number(text)
    if not 0 < number <= HUNDRED_YEARS:
        raise ArgumentTypeError(f"{text!r:.40} is no number of days above 0 and up to {HUNDRED_YEARS:,.0f}")
    return number


def port(text: str) -> int:
    """A port to listen on."""
    number = count(text)
    if number > 65_535:
        raise ArgumentTypeError(f"{text!r:.40} is no port; ports go up to 65535")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
