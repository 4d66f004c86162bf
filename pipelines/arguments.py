"""Parses the arguments of commands; an invalid or misspelt one is refused before anything runs."""

import math
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

LIKE = 0.8


def parse(parser: ArgumentParser, arguments: Sequence[str] | None) -> tuple[Namespace, list[str]]:
    """Return the parsed options and the remaining arguments for Beam. A misspelt option of `parser` ends the process.

    Other unknown options are kept: some runners have options that neither this command nor Beam knows.
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


@dataclass(frozen=True)
class Number:
    """Parses a number in a range, as `type` of an argument; `description` says which numbers are in it."""

    kind: type[int] | type[float]
    least: float
    most: float
    description: str

    def __call__(self, text: str) -> Any:
        """Return the number.

        Raises:
            ArgumentTypeError: the text is not a number in the range.
        """
        try:
            number = self.kind(text)
        except ValueError:
            number = math.nan
        if not self.least <= number <= self.most:
            raise ArgumentTypeError(f"{text!r:.40} is not {self.description}")
        return number


SMALLEST, LARGEST = math.nextafter(0, 1), sys.float_info.max
count = Number(int, 1, math.inf, "a whole number of 1 or more")
amount = Number(float, SMALLEST, LARGEST, "a number above 0")
amount_or_zero = Number(float, 0, LARGEST, "a number of 0 or more")
days = Number(float, SMALLEST, 36_500, "a number of days above 0 and up to 36,500")
port = Number(int, 1, 65_535, "a port from 1 to 65535")


def same_named(given: Namespace, record: type) -> dict[str, Any]:
    """Return the parsed options that have the names of fields of a dataclass."""
    return {field.name: getattr(given, field.name) for field in fields(record) if field.name in given}
