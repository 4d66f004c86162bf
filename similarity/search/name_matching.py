"""Comparing how people write a company's name with how the index does: the pure part of matching lists.

A name's *core* is what is left without legal form, case, accents and punctuation:
"The Coca-Cola Company" and "coca cola co." are both "coca cola".
"""

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum

from similarity.company import DOMAIN_PATTERN, Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.preparation.masking import CJK_LEGAL_FORMS, without_legal_form

# Letters that Unicode does not decompose into a plain one and an accent.
PLAIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "&": " and "})
LETTERS_OF_A_WORD, LETTERS_OF_AN_ONLY_WORD = 4, 8
_WITHIN_WORDS = re.compile(r"[.'’`´/]")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_LONE_LETTERS = re.compile(r"(?<!\S)\w(?: \w)+(?!\S)")


class How(StrEnum):
    """By what a row was matched, the surest first."""

    DOMAIN = "domain"
    """The website is the company's."""
    NAME = "name"
    """The name is the company's, but for case."""
    ALIAS = "alias"
    """The name is one of the company's other names."""
    ID = "id"
    """It is no name, but the company's id."""
    LEGAL_FORM = "legal_form"
    """The names have the same core: they differ in legal form, accents or punctuation."""
    PREFIX = "prefix"
    """The name is the beginning of one company's name, and of no other's."""
    WORDS = "words"
    """The names have the same words in another order, or with spaces elsewhere."""
    SPELLING = "spelling"
    """One letter is mistyped, in a word long enough, and no other company's name is as near."""


def core_of(name: str) -> str:
    """The core of a name; the whole name, made plain, where it consists of legal forms only."""
    for form in CJK_LEGAL_FORMS:
        name = name.replace(form, " ")
    decomposed = unicodedata.normalize("NFKD", name).casefold().translate(PLAIN_LETTERS)
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    # "S p A" is what some software makes of "S.p.A.".
    words = _LONE_LETTERS.sub(_joined, _BETWEEN_WORDS.sub(" ", _WITHIN_WORDS.sub("", plain))).split()
    return " ".join(without_legal_form(words))


def cores_of(company: Company) -> list[str]:
    """The cores of a company's name and aliases."""
    return list(dict.fromkeys(core_of(name) for name in (company.name, *company.aliases)))


def domain_of(text: str) -> str:
    """The bare host name that a cell holds, also of an address or an e-mail; empty if it holds none."""
    try:
        domain = normalize_domain(text)
    except InvalidCompany:
        return ""
    return domain if not any(character.isspace() for character in text.strip()) else ""


def is_domain(text: str) -> bool:
    """Whether a cell without a heading reads as a website and not as a name: `nike.com`, `https://...`, not `A.P.`."""
    domain = domain_of(text)
    suffix = domain.rpartition(".")[2]
    return bool(DOMAIN_PATTERN.fullmatch(domain)) and len(suffix) > 1 and not suffix.isdigit()


def goes_by(company: Company, name: str) -> How | None:
    """Whether `name` is exactly this company's name or alias, but for case and width of letters."""
    key = name_key(name)
    if name_key(company.name) == key:
        return How.NAME
    return How.ALIAS if any(name_key(alias) == key for alias in company.aliases) else None


def begins(core: str, cores: Sequence[str]) -> bool:
    """Whether one of `cores` begins with `core`, several words, and goes on; a single word begins too many names."""
    return " " in core and any(each.startswith(f"{core} ") for each in cores)


def has_the_words_of(one: str, other: str) -> bool:
    """Whether both cores are the same words in any order, or the same letters with other spaces."""
    return sorted(one.split()) == sorted(other.split()) or one.replace(" ", "") == other.replace(" ", "")


def is_mistyped(one: str, other: str) -> bool:
    """Whether both cores are the same words in any order but for one letter, added, dropped, changed or swapped.

    Not in a word of less than 4 letters, and if it is the only one, of less than 8: too many companies
    differ by no more than that.
    """
    words, others = one.split(), other.split()
    for word in [each for each in words if each in others]:
        words.remove(word)
        if word in others:
            others.remove(word)
    if len(words) != 1 or len(others) != 1:
        return False
    least = LETTERS_OF_AN_ONLY_WORD if " " not in one else LETTERS_OF_A_WORD
    return min(len(words[0]), len(others[0])) >= least and _is_one_edit(words[0], others[0])


def alikeness(one: str, other: str) -> float:
    """How alike two cores look, 0 to 1: the share of three-letter pieces that they have in common (Dice)."""
    pieces, others = _pieces(one), _pieces(other)
    return 2 * len(pieces & others) / (len(pieces) + len(others))


def _pieces(core: str) -> set[str]:
    padded = f"  {core} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _is_one_edit(one: str, other: str) -> bool:
    if one == other:
        return False
    start = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return abs(len(one) - len(other)) == 1
    rest, opposite = one[start:], other[start:]
    swapped = rest[1::-1] + rest[2:] if len(rest) > 1 else ""
    return rest[1:] == opposite[1:] or rest[1:] == opposite or rest == opposite[1:] or swapped == opposite


def _joined(letters: re.Match[str]) -> str:
    return letters[0].replace(" ", "")
