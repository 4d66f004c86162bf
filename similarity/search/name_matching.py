"""Comparison of company names as people write them: functions without an index, used to match lists.

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
MIN_TYPO_WORD, MIN_TYPO_SINGLE_WORD = 4, 8
_WITHIN_WORDS = re.compile(r"[.'’`´/]")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_LONE_LETTERS = re.compile(r"(?<!\S)\w(?: \w)+(?!\S)")


class How(StrEnum):
    """How a row was matched, in descending order of precision."""

    DOMAIN = "domain"
    """The website is the company's."""
    NAME = "name"
    """The name is the company's, but for case."""
    ALIAS = "alias"
    """The name is one of the company's other names."""
    ID = "id"
    """The text in place of the name is the company's id."""
    LEGAL_FORM = "legal_form"
    """The names have the same core: they differ in legal form, accents or punctuation."""
    PREFIX = "prefix"
    """The name is the beginning of exactly one company's name."""
    WORDS = "words"
    """The names have the same words in another order, or with spaces elsewhere."""
    SPELLING = "spelling"
    """One letter of a long word differs, and exactly one company's name fits."""


def core_of(name: str) -> str:
    """Return the core of a name; if the name consists of legal forms only, all of its words.

    >>> core_of("The Coca-Cola Company") == core_of("coca cola co.") == "coca cola"
    True
    """
    for form in CJK_LEGAL_FORMS:
        name = name.replace(form, " ")
    decomposed = unicodedata.normalize("NFKD", name).casefold().translate(PLAIN_LETTERS)
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    # "S p A" is what some software makes of "S.p.A.".
    words = _LONE_LETTERS.sub(_joined, _BETWEEN_WORDS.sub(" ", _WITHIN_WORDS.sub("", plain))).split()
    return " ".join(without_legal_form(words))


def cores_of(company: Company) -> list[str]:
    """Return the cores of a company's name and aliases."""
    return list(dict.fromkeys(core_of(name) for name in (company.name, *company.aliases)))


def domain_of(text: str) -> str:
    """Return the host name in a cell that holds a domain, a URL or an e-mail address; otherwise an empty text."""
    try:
        domain = normalize_domain(text)
    except InvalidCompany:
        return ""
    return domain if not any(character.isspace() for character in text.strip()) else ""


def is_domain(text: str) -> bool:
    """Return whether a cell is a website and not a name: `nike.com` and `https://...` are, `A.P.` is not."""
    domain = domain_of(text)
    suffix = domain.rpartition(".")[2]
    return bool(DOMAIN_PATTERN.fullmatch(domain)) and len(suffix) > 1 and not suffix.isdigit()


def exact_match(company: Company, name: str) -> How | None:
    """Return whether `name` is the company's name or alias, ignoring case and width of letters; None if neither."""
    key = name_key(name)
    if name_key(company.name) == key:
        return How.NAME
    return How.ALIAS if any(name_key(alias) == key for alias in company.aliases) else None


def extends_core(core: str, cores: Sequence[str]) -> bool:
    """Return whether one of `cores` is `core` and further words. A single word is not enough: it starts many names."""
    return " " in core and any(each.startswith(f"{core} ") for each in cores)


def has_same_words(one: str, other: str) -> bool:
    """Return whether both cores have the same words in any order, or the same letters with other spaces."""
    return sorted(one.split()) == sorted(other.split()) or one.replace(" ", "") == other.replace(" ", "")


def differs_by_one_typo(one: str, other: str) -> bool:
    """Return whether the cores have the same words except for one letter: added, dropped, changed or swapped.

    False if the word has fewer than 4 letters, or fewer than 8 if it is the only one: too many companies differ
    by no more than that.

    >>> differs_by_one_typo("bank of america", "bank of amreica")
    True
    """
    words, others = one.split(), other.split()
    for word in [each for each in words if each in others]:
        words.remove(word)
        if word in others:
            others.remove(word)
    if len(words) != 1 or len(others) != 1:
        return False
    least = MIN_TYPO_SINGLE_WORD if " " not in one else MIN_TYPO_WORD
    return min(len(words[0]), len(others[0])) >= least and _is_one_edit(words[0], others[0])


def trigram_similarity(one: str, other: str) -> float:
    """Return the Dice coefficient of the cores' trigrams, 0 to 1."""
    trigrams, others = _trigrams(one), _trigrams(other)
    return 2 * len(trigrams & others) / (len(trigrams) + len(others))


def _trigrams(core: str) -> set[str]:
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
