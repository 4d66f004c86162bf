"""Types that users declare for attributes, and which attribute is the size of a company.

`NAME:number` and `NAME:ordinal=LOW,...,HIGH` are the text forms: `employees:number`,
`market_cap:ordinal=nano,micro,small,mid,large,mega`. `NAME:text` withdraws a type.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from shlex import quote

from similarity.company import ATTRIBUTE_NAME_PATTERN, AttributeValue, Company
from similarity.errors import InvalidInput
from similarity.index.numbers import is_finite, number_of

WORD_BREAKS = re.compile(r"(?<=[^\W\d_])[-_\u2010\u2011\u2013]+")
SIZE_STEP = 3.0
"""The factor between two numbers that counts as one step of size, as one level of an ordinal attribute does."""
PROMINENT_SHARE = 1 / 3
"""The upper share of an ordinal's levels whose companies are prominent."""
TEXT = "text"
"""Instead of a type: the attribute has none, and its values are kept as they are."""


@dataclass(frozen=True, slots=True)
class AttributeType:
    """The type of an attribute: a number, or one of `levels` (ascending), which is an ordinal."""

    levels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text form, which `parse_type` reads."""
        return f"ordinal={','.join(self.levels)}" if self.levels else "number"

    def includes(self, value: AttributeValue) -> bool:
        """Return whether a stored value is of this type. A number that is stored as text is not."""
        if self.levels:
            return self.step(value) is not None
        return isinstance(value, int | float) and not isinstance(value, bool)

    def step(self, value: AttributeValue | None) -> float | None:
        """Return the position of a value on a scale where 1 is one step; None for another type or a number up to 0.

        Ordinals: the number of the level, from 0. A value also matches a level by its first word ("Large Cap" and
        "large-cap" are the level "large"): case does not matter, and a hyphen or an underscore after a letter counts
        as a blank. Numbers above 0: the logarithm to the base SIZE_STEP.
        """
        if self.levels:
            return _level(str(value), self.levels) if value is not None else None
        number = number_of(value) if isinstance(value, str) else value
        if number is None or isinstance(number, bool) or not is_finite(number) or number <= 0:
            return None
        return math.log(number, SIZE_STEP)


@dataclass(frozen=True, slots=True)
class AttributeSchema:
    """The declared types of attributes by name, and the name of the attribute that is the size ("" if none is).

    `withdrawn`: the attributes whose earlier type a declaration removes; an index stores none.
    """

    types: Mapping[str, AttributeType] = field(default_factory=dict)
    size: str = ""
    withdrawn: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """All declarations in one line: each `NAME:TYPE`, and the size."""
        declared = "; ".join(f"{name}:{each.text}" for name, each in sorted(self.types.items()))
        return f"{declared}; size {self.size}" if self.size else declared

    @property
    def options(self) -> str:
        """The options of `similarity ingest` that declare this; empty if nothing is declared."""
        declared = [f"--attribute {quote(f'{name}:{each.text}')}" for name, each in sorted(self.types.items())]
        return " ".join([*declared, *([f"--size {self.size}"] if self.size else [])])

    def updated(self, other: "AttributeSchema") -> "AttributeSchema":
        """Return this schema with the declarations of `other`, which replace those of the same attributes.

        Raises:
            InvalidInput: the size has no declared type, or `other` withdraws it.
        """
        types = {name: each for name, each in {**self.types, **other.types}.items() if name not in other.withdrawn}
        if self.size in other.withdrawn and not other.size:
            raise InvalidInput(
                f"{self.size!r} is the size of a company, so its type cannot be withdrawn; name another size with it: "
                "--attribute NAME:number --size NAME"
            )
        size = other.size or self.size
        if size and size not in types:
            raise InvalidInput(
                f"the size {size!r} must be declared with it as a number or an ordinal (declared: "
                f"{', '.join(types) or 'none'}); for example --attribute {size}:number --size {size} "
                f"(for a service: SIMILARITY_SERVICE_ATTRIBUTES={size}:number)"
            )
        return AttributeSchema(types, size)

    def retyped_by(self, other: "AttributeSchema", stored: Iterable[Company] = ()) -> list[str]:
        """Return a warning for each change by `other` that concerns all companies of the index.

        Such changes are another type or no type, the first type of an attribute that has other values in `stored`, and
        another size.
        """
        changed = [
            f"the type of the attribute {name!r} changes from {self.types[name].text} to {new.text}, for all companies "
            "of the index; stored values that are not of the new type match no range, and a load ignores such values"
            for name, new in other.types.items()
            if name in self.types and self.types[name] != new
        ]
        changed += [
            f"the type {self.types[name].text} of the attribute {name!r} is withdrawn, for all companies of the index; "
            "their stored values stay as they are, and new ones are kept as they are written"
            for name in sorted(other.withdrawn & self.types.keys())
        ]
        first = {name: new for name, new in other.types.items() if name not in self.types}
        examples: dict[str, AttributeValue] = {}
        for company in stored if first else ():
            for name in first.keys() & company.attributes.keys():
                if not first[name].includes(company.attributes[name]):
                    examples.setdefault(name, company.attributes[name])
        mistyped = [
            f"stored companies have values of the attribute {name!r} that are not of its new type {first[name].text}, "
            f"such as {value!r:.40}, and match no range; load these companies again"
            for name, value in examples.items()
        ]
        moved = self.size and other.size and other.size != self.size
        size = [f"the size of a company is now the attribute {other.size!r}, not {self.size!r}, for all companies"]
        return [*changed, *mistyped, *(size if moved else [])]

    def size_of(self, company: Company) -> float | None:
        """Return the size of a company in steps (see `AttributeType.step`); None if it is unknown."""
        return self.types[self.size].step(company.attributes.get(self.size)) if self.size else None

    def is_prominent(self, company: Company) -> bool:
        """Return whether the size is an ordinal and the company is in its upper levels."""
        levels = self.types[self.size].levels if self.size else ()
        size = self.size_of(company) if levels else None
        return size is not None and size >= len(levels) * (1 - PROMINENT_SHARE)


def parse_type(name: str, text: str) -> AttributeType:
    """Return the type from its text form: `number`, or `ordinal=LOW,...,HIGH`.

    >>> parse_type("market_cap", "ordinal=small,mid,large").levels
    ('small', 'mid', 'large')

    Raises:
        InvalidInput: the name or the text is not valid.
    """
    if not ATTRIBUTE_NAME_PATTERN.fullmatch(name):
        raise InvalidInput(f"{name!r:.80} is not an attribute name of letters, digits and '_'")
    kind, equals, listed = text.partition("=")
    if kind == "number" and not equals:
        return AttributeType()
    levels = tuple(level.strip().casefold() for level in listed.split(","))
    if kind != "ordinal" or len(levels) < 2 or not all(levels) or len(set(levels)) < len(levels):
        raise InvalidInput(
            f"the type of {name!r} is {text!r:.80}; it must be number, text, or ordinal=LOW,...,HIGH with different "
            "levels; number takes the year of a date"
        )
    return AttributeType(levels)


def parse_schema(declarations: Iterable[str], size: str = "") -> AttributeSchema:
    """Return the schema of declarations `NAME:TYPE` (see `parse_type`); the type `text` withdraws an earlier one.

    Raises:
        InvalidInput: a declaration is not valid.
    """
    named = dict(declaration.strip().partition(":")[::2] for declaration in declarations)
    parsed = {name: parse_type(name, "number" if text == TEXT else text) for name, text in named.items()}
    types = {name: each for name, each in parsed.items() if named[name] != TEXT}
    return AttributeSchema(types, size, frozenset(parsed.keys() - types.keys()))


def level_key(value: str) -> str:
    """Return a value without case, its words separated by one blank: "Mid-Cap" and "mid  cap" are "mid cap".

    A hyphen after a digit or at the beginning stays: "10-49" and "-5" are levels of their own.
    """
    return " ".join(WORD_BREAKS.sub(" ", value.casefold()).split())


@lru_cache(maxsize=10_000)
def _level(value: str, levels: tuple[str, ...]) -> float | None:
    text = value.strip().casefold()
    if text in levels:
        return float(levels.index(text))
    keys = [level_key(level) for level in levels]
    for key in (level_key(value), level_key(value).partition(" ")[0]):
        if key in keys:
            return float(keys.index(key))
    return None
