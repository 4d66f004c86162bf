"""Takes a description apart into phrases of some three to eighteen words, each with its place in it.

Sentences first. A sentence that is too long is halved where a reader would pause, and its halves again:
at a semicolon rather than at a comma, at a comma rather than before an "and", and rather near the middle
than near an end. No parser and no list of words of one language has to fit: where a language has none
of the connecting words known here, its punctuation decides.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from similarity.preparation.masking import MASK, mask_names

MOST_WORDS = 18
FEWEST_WORDS = 3
# What an encoder does not read carries nothing: 6,000 characters are more than 1,000 tokens.
MOST_CHARACTERS = 6_000
MOST_PHRASES = 40

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# A CJK character is counted for half a word.
_WORD = re.compile(rf"[{_CJK}]{{1,2}}|[^\W{_CJK}][^\s{_CJK}]*")
_ABBREVIATIONS = ("Inc", "Ltd", "Co", "Corp", "No", "St", "Mr", "Dr", "vs", "e\\.g", "i\\.e", "[A-Z]")
_NOT_ABBREVIATED = "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
_SENTENCE_END = re.compile(rf"(?<=[.!?…]){_NOT_ABBREVIATED}[\"”’)]*\s+|(?<=[。！？])|\n\s*|(?<=\s)[•·▪]\s*")

# After a comma, a clause begins with one of these; some languages' prepositions and conjunctions help as well.
_CLAUSE_OPENERS = (
    r"(?:as well as|along with|together with|including|such as|which|who|whose|where|while|but|"
    r"with|to|for|through|from)\b"
)
_OPENERS = (
    r"(?:which|who|where|that|as well as|including|such as|comprising|with|for|to|through|from|by|"
    r"qui|avec|pour|que|con|para|che|per|die|für|mit)"
)
# Not between two names: "Predator and Nitro computers".
_JOINTS = r"(?:(?:and|or)(?!\s+[A-Z])|und|oder|sowie|et|ou|y|o|e|in|on|at|across|under|into|via|using)"
# "and provides loans", not "and services for ships" or "and other loans".
_LIKELY_VERB = r"(?!other|various|others|services|products|systems)[a-z]{2,}(?:s|ed)\s+(?!and\b|for\b|of\b)\w"
_NAME = r"(?:(?:and|the)\s+)*[A-Z\d]"
_SHORT_ITEM = r"(?:[^\s,;]+\s+)?[^\s,;]+(?:,|\s+(?:and|or)\b)"
_LEGAL_FORM = r"(?:Inc|Incorporated|Ltd|Limited|LLC|L\.L\.C|L\.P|LP|S\.A|Corp|Co|N\.V|AG|SE)\b"

# Where a long sentence may be halved, and what a cut there costs, in shares of the sentence's length: a
# plain comma in the middle is as good as a semicolon a fifth of the length away from it.
_PAUSES = tuple(
    (cost, re.compile(pause))
    for cost, pause in (
        (0.0, r"(?<=[;；:：])\s*|(?<=\s)[—–-]+\s+|—"),
        # A clause, or the places after what is done there.
        (0.1, rf",\s+(?={_CLAUSE_OPENERS})|,\s+and\s+(?:also\s+)?(?={_LIKELY_VERB})"),
        (0.1, r"(?<=\s)(?=(?:in|across|throughout) (?:the )?[A-Z][\w.]*(?: [A-Z][\w.]*)*, )"),
        (0.2, rf"(?<=[，、])|,\s+(?!{_LEGAL_FORM}|{_NAME}|{_SHORT_ITEM}|and\s)"),
        (0.3, rf"(?<=\s)(?<!\bup )(?<!\baccording )(?<!\bdue )(?={_OPENERS}\s)"),
        # Inside a list of short items or of names; worse than anywhere else.
        (0.45, rf",\s+(?={_NAME}|{_SHORT_ITEM}|and\s)(?!{_LEGAL_FORM})|(?<=\s)(?={_JOINTS}\s)"),
    )
)
_INSIDE_BRACKETS = 0.5
_BRACKETED = re.compile(r"[(（][^()（）]*[)）]")

_CONNECTING = (
    r"and|or|but|as well as|in addition|additionally|furthermore|moreover|further|also|then|"
    r"such as|including|comprising|und|sowie|et|y|e"
)
_LEADING = re.compile(
    rf"(?:[\s,;:，；、：。.•·–—-]+|(?:{_CONNECTING})\b[\s,:]+|"
    r"(?:it|we|they|the (?:company|firm|group))\b(?:\s+also\b)?\s+(?!['’])|"
    r"(?:along with|together with|through) its (?:\w+ )?subsidiaries\b)+",
    re.IGNORECASE,
)
_DANGLING = (" and", " and also", " or", " as well as", ",and", ",or")
_PUNCTUATION = " \t\r\n\u00a0\u3000,;:，；、：。.!?！？–—-"


@dataclass(frozen=True, slots=True)
class Phrase:
    """`text` stands in the description at `[start, end)`, in characters."""

    text: str
    start: int
    end: int


def split_phrases(description: str, names: Iterable[str] = ()) -> tuple[Phrase, ...]:
    """The phrases of a description, in order, none overlapping another, at most `MOST_PHRASES`.

    What only connects them ("and", "It also", ";") belongs to none, nor does one of the company's
    own `names` where a phrase begins with it.
    """
    text = _Text(description[:MOST_CHARACTERS])
    names = tuple(names)
    spans = (span for sentence in text.sentences() for span in text.halved(*sentence))
    phrases = (_without_name(_trimmed(description, start, end), names) for start, end in spans)
    return tuple(phrase for phrase in phrases if _WORD.search(phrase.text))[:MOST_PHRASES]


def sentence_spans(description: str) -> list[tuple[int, int]]:
    """Where the sentences stand that phrases are made of, as `[start, end)`, in order."""
    return list(_Text(description[:MOST_CHARACTERS]).sentences())


class _Text:
    """A text whose words are counted once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [match.start() for match in _WORD.finditer(text)]
        self._brackets = [match.span() for match in _BRACKETED.finditer(text)]

    def sentences(self) -> Iterator[tuple[int, int]]:
        """Spans of sentences; one that is too short stays with the next."""
        start = 0
        for match in _SENTENCE_END.finditer(self._text):
            if self._count(start, match.start()) >= FEWEST_WORDS:
                yield start, match.start()
                start = match.end()
        yield start, len(self._text)

    def halved(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The span, or if it is too long its halves, halved again."""
        cut = self._best_cut(start, end) if self._count(start, end) > MOST_WORDS else None
        if cut is None:
            yield start, end
        else:
            yield from self.halved(start, cut)
            yield from self.halved(cut, end)

    def _best_cut(self, start: int, end: int) -> int | None:
        """Where a pause is worth most: of a strong kind, and near the middle. None without a pause."""
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
    while body.endswith(_DANGLING):
        body = body.rsplit(maxsplit=1)[0].rstrip(_PUNCTUATION)
    return Phrase(body, start, start + len(body))


def _without_name(phrase: Phrase, names: tuple[str, ...]) -> Phrase:
    """`phrase` without a name at its start, if enough is left to read."""
    start = _end_of_name(phrase.text, names)
    shorter = _trimmed(phrase.text, start, len(phrase.text))
    if len(_WORD.findall(shorter.text)) < FEWEST_WORDS:
        return phrase
    return Phrase(shorter.text, phrase.start + shorter.start, phrase.start + shorter.end)


def _end_of_name(text: str, names: tuple[str, ...]) -> int:
    """Where a name that `text` begins with ends; 0 where it begins with none."""
    masked = mask_names(text, names)
    if masked == text or not masked.startswith(MASK):
        return 0
    next_words, _, _ = masked.removeprefix(MASK).partition(MASK)
    end = text.find(next_words, 1) if next_words else 0
    # A legal form's full stop ends a sentence where nothing follows, and then stays.
    return end if end > 0 and mask_names(text[:end], names).rstrip(".") == MASK else 0
