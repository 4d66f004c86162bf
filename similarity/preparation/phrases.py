"""Splits a description into phrases of about three to eighteen words, each with its position.

The text is first split into sentences. A sentence that is too long is split in two at a pause, and its halves again:
at a semicolon rather than at a comma, at a comma rather than before an "and", and near the middle rather than near an
end. No parser is needed. In a language whose conjunctions are not listed here, only punctuation is used.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from similarity.preparation.masking import MASK, mask_names

MOST_WORDS = 18
FEWEST_WORDS = 3
# Text beyond the encoder's token limit does not affect the vector; 6,000 characters are more than 1,000 tokens.
MOST_CHARACTERS = 6_000
MOST_PHRASES = 40
# Names that are removed from the ends of a phrase; without a limit, a phrase of repeated names would take seconds.
MOST_NAMES = 4

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# A CJK character counts as half a word.
_WORD = re.compile(rf"[{_CJK}]{{1,2}}|[^\W{_CJK}][^\s{_CJK}]*")
_ABBREVIATIONS = ("Inc", "Ltd", "Co", "Corp", "No", "St", "Mr", "Dr", "vs", "e\\.g", "i\\.e", "[A-Z]")
_NOT_ABBREVIATED = "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
_SENTENCE_END = re.compile(rf"(?<=[.!?…]){_NOT_ABBREVIATED}[\"”’)]*\s+|(?<=[。！？])|\n\s*|(?<=\s)[•·▪]\s*")

# Words that begin a clause: after a comma, and (the second list, also of other languages) after a blank.
_CLAUSE_OPENERS = (
    r"(?:as well as|along with|together with|including|such as|which|who|whose|where|while|but|"
    r"with|to|for|through|from)\b"
)
_OPENERS = (
    r"(?:which|who|where|that|as well as|including|such as|comprising|with|for|to|through|from|by|"
    r"qui|avec|pour|que|con|para|che|per|die|für|mit)"
)
# No "and" before a name: "Predator and Nitro computers".
_JOINTS = r"(?:(?:and|or)(?!\s+[A-Z])|und|oder|sowie|et|ou|y|o|e|in|on|at|across|under|into|via|using)"
# "and provides loans", not "and services for ships" or "and other loans".
_LIKELY_VERB = r"(?!other|various|others|services|products|systems)[a-z]{2,}(?:s|ed)\s+(?!and\b|for\b|of\b)\w"
_NAME = r"(?:(?:and|the)\s+)*[A-Z\d]"
_SHORT_ITEM = r"(?:[^\s,;]+\s+)?[^\s,;]+(?:,|\s+(?:and|or)\b)"
_LEGAL_FORM = r"(?:Inc|Incorporated|Ltd|Limited|LLC|L\.L\.C|L\.P|LP|S\.A|Corp|Co|N\.V|AG|SE)\b"

# (cost, pattern) of the pauses at which a long sentence may be split. The cost is a share of the sentence's length: a
# plain comma in the middle is as good as a semicolon a fifth of the length away from the middle.
_PAUSES = tuple(
    (cost, re.compile(pause))
    for cost, pause in (
        (0.0, r"(?<=[;；:：])\s*|(?<=\s)[—–-]+\s+|—"),
        # A clause, or a list of places.
        (0.1, rf",\s+(?={_CLAUSE_OPENERS})|,\s+and\s+(?:also\s+)?(?={_LIKELY_VERB})"),
        (0.1, r"(?<=\s)(?=(?:in|across|throughout) (?:the )?[A-Z][\w.]*(?: [A-Z][\w.]*)*, )"),
        (0.2, rf"(?<=[，、])|,\s+(?!{_LEGAL_FORM}|{_NAME}|{_SHORT_ITEM}|and\s)"),
        (0.3, rf"(?<=\s)(?<!\bup )(?<!\baccording )(?<!\bdue )(?={_OPENERS}\s)"),
        # Inside a list of short items or of names: the highest cost outside brackets.
        (0.45, rf",\s+(?={_NAME}|{_SHORT_ITEM}|and\s)(?!{_LEGAL_FORM})|(?<=\s)(?={_JOINTS}\s)"),
    )
)
_INSIDE_BRACKETS = 0.5
_BRACKETED = re.compile(r"[(（][^()（）]*[)）]")

_CONNECTING = (
    r"and|or|but|as well as|in addition|additionally|furthermore|moreover|further|also|then|"
    r"such as|including|comprising|und|sowie|et|y|e"
)
# "'s" is left where a name was taken from the beginning: "Apple's services".
_LEADING = re.compile(
    rf"(?:[\s,;:，；、：。.•·–—-]+|['’]s?(?=\s)|(?:{_CONNECTING})\b[\s,:]+|"
    r"(?:it|we|they|the (?:company|firm|group))\b(?:\s+also\b)?\s+(?!['’])|"
    r"(?:along with|together with|through) its (?:\w+ )?subsidiaries\b)+",
    re.IGNORECASE,
)
# Words at the end of a phrase whose complement was cut off: "form the core of", "a program with".
_DANGLING = re.compile(
    r"[\s,](?:and|and also|or|as well as|of|by|from|with|through|via|under|to|for|in|on|at|as|the|an?)$", re.IGNORECASE
)
LONGEST_DANGLING = 16
"""How many characters at the end are searched: to search a long text of such words would be quadratic."""
_PUNCTUATION = " \t\r\n\u00a0\u3000,;:，；、：。.!?！？–—-"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase: `text` is at `[start, end)` of the description, in characters."""

    text: str
    start: int
    end: int


def split_phrases(description: str, names: Iterable[str] = ()) -> tuple[Phrase, ...]:
    """Return the phrases of a description in order, without overlap, at most `MOST_PHRASES`.

    No phrase begins with connecting words ("and", "It also") or punctuation, or ends with a word such as "and" or "of".
    The company's `names` are removed from both ends of a phrase if enough words remain.
    """
    text = _Text(description[:MOST_CHARACTERS])
    names = tuple(names)
    spans = (span for sentence in text.sentences() for span in text.halved(*sentence))
    phrases = (_without_names(_trimmed(description, start, end), names) for start, end in spans)
    return tuple(islice((phrase for phrase in phrases if _WORD.search(phrase.text)), MOST_PHRASES))


def sentence_spans(description: str) -> list[tuple[int, int]]:
    """Return the positions `[start, end)` of the sentences from which phrases are made, in order."""
    return list(_Text(description[:MOST_CHARACTERS]).sentences())


class _Text:
    """A text with the positions of its words and brackets."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [match.start() for match in _WORD.finditer(text)]
        self._brackets = [match.span() for match in _BRACKETED.finditer(text)]

    def sentences(self) -> Iterator[tuple[int, int]]:
        """Yield the spans of sentences; a sentence that is too short is joined with the next."""
        start = 0
        for match in _SENTENCE_END.finditer(self._text):
            if self._count(start, match.start()) >= FEWEST_WORDS:
                yield start, match.start()
                start = match.end()
        yield start, len(self._text)

    def halved(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the span or, if it is too long, the spans of its halves, split recursively."""
        cut = self._best_cut(start, end) if self._count(start, end) > MOST_WORDS else None
        if cut is None:
            yield start, end
        else:
            yield from self.halved(start, cut)
            yield from self.halved(cut, end)

    def _best_cut(self, start: int, end: int) -> int | None:
        """Return the pause with the lowest cost, distance from the middle included; None if there is no pause."""
        middle, length = (start + end) / 2, end - start
        cuts = [
            (cost + abs(match.end() - middle) / length + self._inside_brackets(match.end()), match.end())
            for cost, pause in _PAUSES
            for match in pause.finditer(self._text, start, end)
            if self._count(start, match.start()) >= FEWEST_WORDS and self._count(match.end(), end) >= FEWEST_WORDS
        ]
        return min(cuts)[1] if cuts else None

    def _inside_brackets(self, position: int) -> float:
        nearest = bisect_left(self._brackets, (position, 0)) - 1
        return _INSIDE_BRACKETS if nearest >= 0 and position < self._brackets[nearest][1] else 0

    def _count(self, start: int, end: int) -> int:
        return bisect_left(self._words, end) - bisect_left(self._words, start)


def _trimmed(text: str, start: int, end: int) -> Phrase:
    leading = _LEADING.match(text, start, end)
    start = leading.end() if leading else start
    body = text[start:end].rstrip(_PUNCTUATION)
    while dangling := _DANGLING.search(body, max(0, len(body) - LONGEST_DANGLING)):
        body = body[: dangling.start()].rstrip(_PUNCTUATION)
    return Phrase(body, start, start + len(body))


def _without_names(phrase: Phrase, names: tuple[str, ...]) -> Phrase:
    """Return the phrase without names at its start and end, at most MOST_NAMES, if FEWEST_WORDS words remain."""
    for _ in range(MOST_NAMES):
        shorter = _without_name(phrase, names)
        if shorter == phrase:
            break
        phrase = shorter
    return phrase


def _without_name(phrase: Phrase, names: tuple[str, ...]) -> Phrase:
    """Return the phrase without one name at its start or end."""
    masked = mask_names(phrase.text, names)
    if masked == phrase.text:
        return phrase
    for start, end in (
        (_end_of_name(phrase.text, masked, names), len(phrase.text)),
        (0, _start_of_name(phrase.text, masked, names)),
    ):
        shorter = _trimmed(phrase.text, start, end)
        if len(_WORD.findall(shorter.text)) >= FEWEST_WORDS and (start or end < len(phrase.text)):
            return Phrase(shorter.text, phrase.start + shorter.start, phrase.start + shorter.end)
    return phrase


def _end_of_name(text: str, masked: str, names: tuple[str, ...]) -> int:
    """Return the end of the name that `text` begins with; 0 if it does not begin with a name."""
    if not masked.startswith(MASK):
        return 0
    next_words, _, _ = masked.removeprefix(MASK).partition(MASK)
    end = text.find(next_words, 1) if next_words else 0
    # At the end of a text, masking keeps the full stop of a legal form, which also ends the sentence.
    return end if end > 0 and mask_names(text[:end], names).rstrip(".") == MASK else 0


def _start_of_name(text: str, masked: str, names: tuple[str, ...]) -> int:
    """Return the start of the name that `text` ends with; the length of `text` if it does not end with a name."""
    if not masked.endswith(MASK):
        return len(text)
    _, _, words_before = masked.removesuffix(MASK).rpartition(MASK)
    start = text.rfind(words_before) + len(words_before) if words_before else 0
    return start if start > 0 and mask_names(text[start:], names).rstrip(".") == MASK else len(text)
