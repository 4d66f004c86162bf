"""Keyed hashes of a company's names, with which an erasure finds the names; a name cannot be read from its hash.

A name becomes a **phrase**: its case-folded words; in scripts without spaces each character is a word. A phrase is
stored as `LENGTH:HMAC`. A text is searched by hashing each sequence of `LENGTH` words in it.

Some names would be found in every text: one letter, a short number, ordinary words such as "Energy". They are stored
with length 0: they are compared with whole values only, and not searched in texts.

Legal forms may be missing in a text (`preparation.legal_forms`). "KelvoDrimpax" is also stored as "Kelvo Drimpax",
not case-folded: "Linked In" means the company, "linked in" does not. In a text, such a word is also split.
"""

import hmac
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache

from similarity.company import DOMAIN_PATTERN, SHARED_HOSTS, Company, normalize_domain
from similarity.errors import InvalidCompany
from similarity.preparation.legal_forms import COMMON_WORDS, without_legal_forms
from similarity.preparation.masking import forms_of_name
from similarity.preparation.words import words_of

NOT_IN_TEXTS = 0
MAX_WORDS = 16
"""Of longer phrases only so many words are hashed: each length of a phrase costs a search of every text."""
SHORT_NUMBER_CHARACTERS = 5
SHORT_WORD_CHARACTERS = 3
HASH_CHARACTERS = 32
PSEUDONYM_CHARACTERS = 12
WORDS_FOR_AND = ("and", "und", "et", "y")
"""Words that texts have instead of the "&" of a name."""

# Between the words of "KelvoDrimpax".
_CAMEL_CASE = re.compile("(?<=[a-zа-я])(?=[A-ZА-Я])")
# The characters within "T-Mobile", "E.ON" and "AT&T".
_WITHIN_WORD = re.compile("(?<=\\w)[-.·&](?=\\w)")
_ANY_APOSTROPHE = re.compile("(?<=\\w)['\u2019\u02bc](?=\\w)")
# The apostrophe of "O'Neill", which is also written "ONeill"; not that of "Hill's".
_APOSTROPHE = re.compile("(?<=\\b\\w)['\u2019\u02bc](?=\\w\\w)")


def names_of(company: Company) -> set[str]:
    """Return the company's name, aliases and domain; a shared host such as gmail.com is no name of it."""
    domain = "" if company.domain in SHARED_HOSTS else company.domain
    return {name for name in (company.name, *company.aliases, domain, _decoded(domain)) if name}


def _decoded(domain: str) -> str:
    """Return an internationalised domain as people write it; empty for any other domain."""
    try:
        return domain.encode("ascii").decode("idna") if "xn--" in domain else ""
    except UnicodeError:
        return ""


def hashes_of(key: bytes, names: Iterable[str]) -> frozenset[str]:
    """Return the hashes of names, and of their short forms ("Acme" of "Acme, Inc.")."""
    return frozenset(_hash(key, length, phrase) for name in names for length, phrase in _phrases_of(name))


class ErasedCompanies:
    """Companies that are erased together; finds their ids and names in references and texts.

    Each reference and text is hashed once for all companies, and the hashes found are remembered, because an erasure
    looks at each several times, at last with a lock (`feedback.sqlite`).

    `hashes`: the hashes of each company's names from `hashes_of` with `key`, by the company's id.
    `belongs_to_another`: returns whether another company than the one of this id has a name, too.
    `require`: called with the ids of the companies that a change removes, just before it; raises an error if they may
    not be removed any more.
    """

    def __init__(
        self,
        key: bytes,
        hashes: Mapping[str, frozenset[str]],
        belongs_to_another: Callable[[str, str], bool] = lambda _id, _name: False,
        require: Callable[[Collection[str]], None] = lambda ids: None,
    ) -> None:
        self.require = require
        self.ids = frozenset(hashes)
        self._key = key
        self._belongs_to_another = cache(belongs_to_another)
        self._named = _ids_by_hash(hashes)
        # If nothing is known of a company, such as one with a mistyped id, texts are not searched for its id.
        self._searched = _ids_by_hash({each: names | hashes_of(key, [each]) for each, names in hashes.items() if names})
        self._lengths = {int(each.partition(":")[0]) for each in self._searched}.intersection(range(1, MAX_WORDS + 1))
        self._meant: dict[str, frozenset[str]] = {}
        self._contained: dict[str, frozenset[str]] = {}

    @property
    def compared(self) -> int:
        """Number of references and texts whose results are remembered."""
        return len(self._meant) + len(self._contained)

    def matches(self, reference: object) -> frozenset[str]:
        """Return the ids of companies that a reference means: its own id, or those with this name.

        Left out are companies whose name another company has, too. Only ids are case-sensitive.
        """
        if not isinstance(reference, str) or reference in self.ids:
            return frozenset([reference] if isinstance(reference, str) else [])
        return self._without_anothers(self._with_name(reference), reference)

    def occur_in(self, value: object) -> frozenset[str]:
        """Return the ids of companies that a reference means, or whose names it contains, if no other has that name."""
        if not isinstance(value, str) or value in self.ids:
            return frozenset([value] if isinstance(value, str) else [])
        return self._without_anothers(self._with_name(value) | self.contained_in(value), value)

    def contained_in(self, text: str, *, unless_anothers: bool = False) -> frozenset[str]:
        """Return the ids of companies whose id or name a text contains, ignoring case.

        A name of one word with up to three letters must have a capital in the text: "On" is a company, "on" is not.
        `unless_anothers`: without companies if the whole text is the name of another company, too.
        """
        if text not in self._contained:
            spellings = {text, _WITHIN_WORD.sub("", text), _ANY_APOSTROPHE.sub("", text)}
            hashes = (
                _hash(self._key, len(phrase), phrase)
                for spelling in spellings
                for phrase in _phrases_in(words_of(spelling), self._lengths)
            )
            self._contained[text] = _found(self._searched, hashes)
        found = self._contained[text]
        return self._without_anothers(found, text) if unless_anothers else found

    def _with_name(self, reference: str) -> frozenset[str]:
        if reference not in self._meant:
            phrases = [_phrase(form) for form in _references(reference)]
            hashes = (_hash(self._key, length, phrase) for phrase in phrases for length in (NOT_IN_TEXTS, len(phrase)))
            self._meant[reference] = _found(self._named, hashes)
        return self._meant[reference]

    def _without_anothers(self, ids: frozenset[str], name: str) -> frozenset[str]:
        return frozenset(each for each in ids if not self._belongs_to_another(each, name))

    def pseudonym(self, text: str) -> str:
        """Return a replacement for a text, always the same for the same text.

        It depends on the secret of the name hashes. This function must never change: stored queries name lists by it.
        """
        return _digest(self._key, text)[:PSEUDONYM_CHARACTERS]


def _ids_by_hash(hashes: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    ids = defaultdict[str, list[str]](list)
    for company_id, names in hashes.items():
        for each in names:
            ids[each].append(company_id)
    return ids


def _found(ids: Mapping[str, list[str]], hashes: Iterable[str]) -> frozenset[str]:
    return frozenset(company_id for each in hashes if each in ids for company_id in ids[each])


def _phrases_of(name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the phrases by which a name is searched, each with its stored length."""
    forms = _forms_of(name)
    for form, is_distinctive in forms.items():
        several = _ANY_APOSTROPHE.sub("", form) if " " in form else form
        joined = form if DOMAIN_PATTERN.fullmatch(form) else _WITHIN_WORD.sub("", form)
        for spelling in {form, several, joined, _APOSTROPHE.sub("", form)}:
            if phrase := _phrase(spelling):
                yield _stored_length(phrase, is_distinctive=is_distinctive), phrase
        words = words_of(form)
        for word in WORDS_FOR_AND if " & " in form and len(words) > 1 else ():
            spelled = words_of(form.replace(" & ", f" {word} "))
            # "H and M" in a text means H & M, but "h and m" does not, and is compared with whole values only.
            has_letter = is_distinctive and min(map(len, words)) == 1
            folded = [each.casefold() for each in spelled]
            yield NOT_IN_TEXTS if has_letter else _stored_length(folded, is_distinctive=is_distinctive), folded
            if has_letter:
                yield len(spelled), spelled
    shortest = words_of(min((form for form, is_distinctive in forms.items() if is_distinctive), key=len, default=""))
    parts = [part for word in shortest for part in _parts(word)]
    if len(parts) > len(shortest):
        yield len(parts), parts


def _forms_of(name: str) -> dict[str, bool]:
    """Return the name with and without legal forms; True for forms that identify the company."""
    if DOMAIN_PATTERN.fullmatch(name):
        return {name: True}
    forms = forms_of_name(name)
    short = {without_legal_forms(form) for form in forms} - forms.keys()
    further = (each for form in short for each in forms_of_name(form).items())
    return {form: is_distinctive and form.casefold() not in COMMON_WORDS for form, is_distinctive in further} | forms


def _parts(word: str) -> list[str]:
    """Return the parts of a word like "KelvoDrimpax"; "eBay" is one part."""
    parts = _CAMEL_CASE.split(word)
    return parts if all(len(part) > 1 and part[0].isupper() for part in parts) else [word]


def _phrases_in(words: list[str], lengths: Iterable[int]) -> Iterator[list[str]]:
    """Yield the phrases of a text that may be names."""
    for length in lengths:
        for run in (words[start : start + length] for start in range(len(words) - length + 1)):
            if length == 1 and len(run[0]) <= SHORT_WORD_CHARACTERS and run[0].islower():
                continue
            folded = [word.casefold() for word in run]
            yield folded
            if length > 1 and sum(word[0].isupper() for word in run) > 1:
                yield run
    for word in words:
        if not word.islower() and len(parts := _parts(word)) > 1:
            yield [part.casefold() for part in parts]


def _references(reference: str) -> Iterator[str]:
    """Yield the forms in which a reference is compared: as a name, and as the bare host name of a website."""
    yield reference
    try:
        yield normalize_domain(reference)
    except InvalidCompany:
        return


def _phrase(name: str) -> list[str]:
    """Return the case-folded words of a name; a name without words is split at spaces."""
    return [word.casefold() for word in words_of(name)] or name.split()


def _stored_length(phrase: list[str], *, is_distinctive: bool = True) -> int:
    """Return the number of words; NOT_IN_TEXTS if the phrase would be found in every text."""
    text = "".join(phrase)
    is_short_number = text.isdecimal() and len(text) <= SHORT_NUMBER_CHARACTERS
    return len(phrase) if is_distinctive and len(text) > 1 and not is_short_number else NOT_IN_TEXTS


def _hash(key: bytes, length: int, phrase: list[str]) -> str:
    return f"{min(length, MAX_WORDS)}:{_digest(key, ' '.join(phrase[:MAX_WORDS]))}"


def _digest(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(errors="surrogatepass"), "sha256").hex()[:HASH_CHARACTERS]
