"""Comparison of company names as people write them. These functions need no index.

The *core* of a name is the name without legal form, case, accents and punctuation. "The Coca-Cola Company" and
"coca cola co." have the same core: "coca cola".
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from similarity.company import DOMAIN_PATTERN, Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.formats.normal_forms import normalized, without_marks
from similarity.index.cjk import is_cjk
from similarity.preparation.masking import CJK_LEGAL_FORMS, without_legal_form

# Letters that Unicode does not decompose into a plain letter and an accent.
PLAIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "&": " and "})
MIN_LETTERS_WITH_TYPO, MIN_LETTERS_WITH_FIRST_LETTER_TYPO = 7, 8
WEBSITE_SIGNS = re.compile(r"[.-]")
MIN_JOINED_LETTERS = 4
SWEDISH_PUBLIC_COMPANY = re.compile(r"\(publ\)\s*$", re.IGNORECASE)
_REMOVED_PUNCTUATION = re.compile(r"[.'’`´/]")
_WORD_SEPARATORS = re.compile(r"[\W_]+")
_SEPARATE_LETTERS = re.compile(r"(?<!\S)\w(?: \w)+(?!\S)")


class How(StrEnum):
    """The kind of match between a text and a company."""

    DOMAIN = "domain"
    """The website is the company's."""
    NAME = "name"
    """The name is the company's, ignoring case."""
    ALIAS = "alias"
    """The name is one of the company's other names."""
    ID = "id"
    """The name is the company's id, ignoring case."""
    LEGAL_FORM = "legal_form"
    """The names have the same core: they differ in legal form, accents or punctuation."""
    WORDS = "words"
    """The names have the same words in another order, or with spaces elsewhere."""
    WEBSITE_NAME = "website_name"
    """The name is the first label of the company's domain: TSMC matches tsmc.com."""
    PREFIX = "prefix"
    """The name is the beginning of exactly one company's name."""
    PART = "part"
    """The name is a part of the name of exactly one company, which is prominent."""
    SIZE = "size"
    """Several companies fit equally well, and this one is the largest."""
    SPELLING = "spelling"
    """The name differs by one letter or space from the name of exactly one company."""


def core_of(name: str) -> str:
    """Return the core of a name. If the name consists only of legal forms, they are its core.

    >>> core_of("The Coca-Cola Company") == core_of("coca cola co.") == "coca cola"
    True
    """
    return " ".join(without_legal_form(_words_of(name)))


def has_legal_form(name: str) -> bool:
    """Return whether a name has a legal form beside its core."""
    return " ".join(_words_of(name)) != core_of(name)


def words_of(text: str) -> str:
    """Return the words of a text as a core has them: in small plain letters, separated by single spaces."""
    return " ".join(_words_of(text))


def cores_of(company: Company) -> list[str]:
    """Return the cores of a company's name and aliases (`Company.compared_names`).

    "AB Volvo (publ)" has two: "ab volvo" and "volvo". Amazon.com, Inc. with the domain amazon.com has two: "amazoncom"
    and "amazon".
    """
    cores: dict[str, None] = {}
    website_name = company.domain.partition(".")[0].replace("-", " ")
    for name in company.compared_names():
        core = core_of(name)
        cores[core] = None
        if SWEDISH_PUBLIC_COMPANY.search(name):
            cores[core.removeprefix("ab ")] = None
        if website_name and core.replace(" ", "") == WEBSITE_SIGNS.sub("", company.domain):
            cores[website_name] = None
    return list(cores)


def domain_of(text: str) -> str:
    """Return the host name in a domain, a URL or an e-mail address; for any other text, an empty string."""
    try:
        domain = normalize_domain(text)
    except InvalidCompany:
        return ""
    return domain if not any(character.isspace() for character in text.strip()) else ""


def is_domain(text: str) -> bool:
    """Return whether a text is a website and not a name: true for `nike.com` and `https://...`, false for `A.P.`."""
    domain = domain_of(text)
    suffix = domain.rpartition(".")[2]
    return bool(DOMAIN_PATTERN.fullmatch(domain)) and len(suffix) > 1 and not suffix.isdigit()


def exact_match(company: Company, name: str) -> How | None:
    """Return How.NAME or How.ALIAS if `name` is the company's, ignoring case and width of letters; else None."""
    key = name_key(name)
    if name_key(company.name) == key:
        return How.NAME
    return How.ALIAS if any(name_key(alias) == key for alias in company.aliases) else None


def extends_core(core: str, cores: Sequence[str]) -> bool:
    """Return whether one of `cores` has the words of `core` and then more words. Spaces are ignored, unless `core` has
    so few letters that it may be an id ("BF-B").

    Chinese, Japanese and Korean names have no spaces, so every beginning of two characters or more counts.

    >>> extends_core("jp morgan", ["jpmorgan chase"])
    True
    """
    letters = core.replace(" ", "")
    if is_cjk(letters):
        return len(letters) > 1 and any(other.startswith(letters) and other != letters for other in cores)
    if " " in core and len(letters) < MIN_JOINED_LETTERS:
        return any(other.startswith(f"{core} ") for other in cores)
    return any(letters == prefix for other in cores for prefix in _joined_prefixes(other))


def has_initials(core: str, cores: Sequence[str]) -> bool:
    """Return whether the words of `core` and of one of `cores` have the same first letters.

    >>> has_initials("j and j", ["johnson and johnson"])
    True
    """
    return any(_initials(core) == _initials(other) for other in cores)


def contains_core(core: str, cores: Sequence[str]) -> bool:
    """Return whether one of `cores` contains the words of `core`, next to each other and in the same order."""
    return any(f" {core} " in f" {other} " for other in cores)


def is_short(core: str) -> bool:
    """Return whether a core is one word or initials ("j and j"). Many names begin with a short core."""
    return " " not in core or all(len(word) == 1 or word == "and" for word in core.split())


def is_core(core: str, cores: Sequence[str]) -> bool:
    """Return whether `core` is one of `cores`."""
    return core in cores


def has_same_words(core: str, cores: Sequence[str]) -> bool:
    """Return whether one of `cores` has the words of `core` in any order, or differs only in its spaces."""
    words, letters = sorted(core.split()), core.replace(" ", "")
    return any(words == sorted(other.split()) or letters == other.replace(" ", "") for other in cores)


def is_joined(core: str, cores: Sequence[str]) -> bool:
    """Return whether one of `cores`, or the beginning of one, has the words of `core` with spaces elsewhere."""
    return has_same_words(core, cores) or extends_core(core, cores)


def differs_by_typo(name: str, company: Company, *, prominent: bool = False) -> bool:
    """Return whether a name differs by one letter or space from the company's name or from one of its aliases.

    The letter is added, missing, changed, or swapped with the next letter. Many short words differ by one letter, so a
    single word must have MIN_LETTERS_WITH_TYPO letters, one fewer if the company is prominent. If its first letter
    differs, it must have MIN_LETTERS_WITH_FIRST_LETTER_TYPO. Initials ("M&S") must be exact. A legal form in the name
    must be the company's, and so must its digits: Phillips 67 is not Phillips 66.
    """
    min_letters = MIN_LETTERS_WITH_TYPO - prominent
    core, words = core_of(name), " ".join(_words_of(name))
    if " " in core and is_short(core):
        return False
    return any(
        _digits(core) == _digits(core_of(other))
        and _is_one_edit(core, core_of(other), min_letters)
        and (words == core or _is_one_edit(words, " ".join(_words_of(other)), min_letters))
        for other in company.compared_names()
    )


def name_similarity(one: str, other: str) -> float:
    """Return the similarity of two cores, 0 to 1, ignoring the order of their words.

    If one core has all words of the other, it is at least 0.9.
    """
    return max(fuzz.token_sort_ratio(one, other), 0.9 * fuzz.token_set_ratio(one, other)) / 100


def _words_of(name: str) -> list[str]:
    """Return the words of a name in plain letters, without punctuation and without a legal form in CJK characters."""
    for form in CJK_LEGAL_FORMS:
        name = name.replace(form, " ")
    plain = without_marks(normalized("NFKD", name).casefold().translate(PLAIN_LETTERS))
    plain = plain.replace("kommanditgesellschaft auf aktien", "kgaa")
    words = _WORD_SEPARATORS.sub(" ", _REMOVED_PUNCTUATION.sub("", plain))
    # Some software writes "S.p.A." as "S p A".
    return _SEPARATE_LETTERS.sub(_without_spaces, words).split()


def _is_one_edit(one: str, other: str, min_letters: int) -> bool:
    """Return whether two texts differ by one edit that is likely a typing error.

    Swapped and doubled letters are likely in texts of any length, and so is any edit in a text of several words.
    Otherwise the shorter text must have `min_letters`; if the first letter differs, MIN_LETTERS_WITH_FIRST_LETTER_TYPO.
    """
    if OSA.distance(one, other, score_cutoff=1) != 1:
        return False
    is_swap_or_double = sorted(one) == sorted(other) or _without_doubles(one) == _without_doubles(other)
    required = min_letters if one[:1] == other[:1] else MIN_LETTERS_WITH_FIRST_LETTER_TYPO
    return is_swap_or_double or " " in one or min(len(one), len(other)) >= required


def _digits(text: str) -> list[str]:
    return [character for character in text if character.isdigit()]


def _initials(core: str) -> str:
    return "".join(word[0] for word in core.split())


def _without_doubles(text: str) -> str:
    """Return the text with one letter for each run of equal letters."""
    return "".join(letter for letter, _ in groupby(text))


def _joined_prefixes(core: str) -> Iterator[str]:
    """Yield the first word, the first two words, and so on, without spaces, but not the whole core."""
    words = core.split()
    return ("".join(words[:count]) for count in range(1, len(words)))


def _without_spaces(letters: re.Match[str]) -> str:
    return letters[0].replace(" ", "")
