"""Comparison of company names as people write them: functions without an index, used to match lists.

A name's *core* is what is left without legal form, case, accents and punctuation:
"The Coca-Cola Company" and "coca cola co." are both "coca cola".
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from similarity.company import DOMAIN_PATTERN, Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.preparation.masking import CJK_LEGAL_FORMS, without_legal_form

# Letters that Unicode does not decompose into a plain one and an accent.
PLAIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "&": " and "})
MIN_TYPO_LETTERS, MIN_TYPO_FIRST_LETTER = 7, 8
_WITHIN_WORDS = re.compile(r"[.'’`´/]")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_LONE_LETTERS = re.compile(r"(?<!\S)\w(?: \w)+(?!\S)")


class How(StrEnum):
    """How a text was matched with a company, in descending order of precision."""

    DOMAIN = "domain"
    """The website is the company's."""
    NAME = "name"
    """The name is the company's, but for case."""
    ALIAS = "alias"
    """The name is one of the company's other names."""
    ID = "id"
    """The text in place of the name is the company's id, but for case."""
    LEGAL_FORM = "legal_form"
    """The names have the same core: they differ in legal form, accents or punctuation."""
    WORDS = "words"
    """The names have the same words in another order, or with spaces elsewhere."""
    WEBSITE_NAME = "website_name"
    """The name is the first part of the company's domain: TSMC of tsmc.com."""
    PREFIX = "prefix"
    """The name is the beginning of exactly one company's name."""
    PART = "part"
    """The name stands inside the name of exactly one company, which is prominent."""
    SIZE = "size"
    """Several companies fit equally well, and this one is the largest."""
    SPELLING = "spelling"
    """A letter of a word differs, and exactly one company's name fits."""


def core_of(name: str) -> str:
    """Return the core of a name; if the name consists of legal forms only, all of its words.

    >>> core_of("The Coca-Cola Company") == core_of("coca cola co.") == "coca cola"
    True
    """
    return " ".join(without_legal_form(_words_of(name)))


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
    """Return whether one of `cores` begins with the words of `core`, with or without the spaces between them.

    >>> extends_core("jp morgan", ["jpmorgan chase"])
    True
    """
    joined = core.replace(" ", "")
    return any(joined == start for each in cores for start in _joined_starts(each))


def contains_core(core: str, cores: Sequence[str]) -> bool:
    """Return whether the words of `core` stand side by side in one of `cores`."""
    return any(f" {core} " in f" {each} " for each in cores)


def is_short(core: str) -> bool:
    """Return whether a core is a single word or initials ("j and j"): many names begin with it."""
    return " " not in core or all(len(word) == 1 or word == "and" for word in core.split())


def has_same_words(one: str, other: str) -> bool:
    """Return whether both cores have the same words in any order, or the same letters with other spaces."""
    return sorted(one.split()) == sorted(other.split()) or one.replace(" ", "") == other.replace(" ", "")


def differs_by_typo(name: str, company: Company, *, prominent: bool = False) -> bool:
    """Return whether a name is the company's or one of its aliases, but for one letter or space.

    The letter is added, dropped, changed, or swapped with the next. Few letters may differ in many names, so a single
    word needs MIN_TYPO_LETTERS (one less if the company is prominent), and MIN_TYPO_FIRST_LETTER if its first letter
    differs. A legal form must be the same.
    """
    least = MIN_TYPO_LETTERS - prominent
    core, words = core_of(name), " ".join(_words_of(name))
    return any(
        _is_one_edit(core, core_of(other), least)
        and (words == core or _is_one_edit(words, " ".join(_words_of(other)), least))
        for other in (company.name, *company.aliases)
    )


def name_similarity(one: str, other: str) -> float:
    """Return how similar two cores are, 0 to 1, in any order of their words.

    It is at least .9 if one has all words of the other.
    """
    return max(fuzz.token_sort_ratio(one, other), 0.9 * fuzz.token_set_ratio(one, other)) / 100


def _words_of(name: str) -> list[str]:
    """Return the words of a name in plain letters, without punctuation, and without a legal form in CJK letters."""
    for form in CJK_LEGAL_FORMS:
        name = name.replace(form, " ")
    decomposed = unicodedata.normalize("NFKD", name).casefold().translate(PLAIN_LETTERS)
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    # "S p A" is what some software makes of "S.p.A.".
    return _LONE_LETTERS.sub(_joined, _BETWEEN_WORDS.sub(" ", _WITHIN_WORDS.sub("", plain))).split()


def _is_one_edit(one: str, other: str, least: int) -> bool:
    if OSA.distance(one, other, score_cutoff=1) != 1:
        return False
    is_swap_or_double = sorted(one) == sorted(other) or _once(one) == _once(other)
    letters = least if one[:1] == other[:1] else MIN_TYPO_FIRST_LETTER
    return is_swap_or_double or " " in one or min(len(one), len(other)) >= letters


def _once(text: str) -> str:
    """Return the text with each run of one letter written once."""
    return "".join(letter for letter, _ in groupby(text))


def _joined_starts(core: str) -> Iterator[str]:
    """Yield the first word, the first two words, and so on, joined without spaces, but not the whole core."""
    words = core.split()
    return ("".join(words[:count]) for count in range(1, len(words)))


def _joined(letters: re.Match[str]) -> str:
    return letters[0].replace(" ", "")
