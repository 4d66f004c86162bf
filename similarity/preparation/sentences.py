"""Removes sentences on the origin of a company (head office, founding, renaming, listing), and ticker symbols.

`drop_places` removes phrases on the places where the company works.
"""

import re

# A full stop after one of these, or after a single capital, does not end a sentence.
_ABBREVIATIONS = ("Inc", "Ltd", "Co", "Corp", "No", "St", "Mr", "Dr", "[A-Z]")
_NOT_ABBREVIATED = "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
_SENTENCE_END = re.compile(rf"(?<=[.!?]){_NOT_ABBREVIATED}\s+(?=[\"“(]?[A-Z0-9])")

_OFFICE = r"(?:(?:corporate|registered|principal|executive|head) ?)*(?:headquarters|offices?|seat)"
_PARTICIPLE = (
    r"(?:co-?founded|founded|incorporated|established|formed|organi[sz]ed|started|registered|created|launched|"
    r"domiciled|headquartered|based|located)"
    r"\s+(?:in|at|by|as|under|near|outside|out of|back in|on (?-i:(?=[A-Z\d]))|\d{4})|"
    r"(?:formerly|previously) (?:known|called|named)|known as|renamed|rebranded"
)
_PREDICATE = (
    rf"has (?:its|an?) {_OFFICE}|{_OFFICE} (?:is|are|stands?)|changed (?:its|their) (?:corporate )?name|"
    r"(?:adopted|took) (?:its|the) (?:current|present) name|went public|(?:sits|resides) in|works from|"
    r"dates (?:back )?(?:to|from)|came into being|(?:was|were) (?:listed|floated)|under the (?:ticker|stock) |"
    r"(?:listed|traded|trades?|quoted) (?:on the|on|in)\b|roots (?:are|lie)|origins (?:are|lie)"
)
_SUBJECT = (
    "(?:"
    + "|".join(
        (
            r"the (?:company|firm|group|bank|corporation|brand|business|head office)|it|headquarters|its shares?",
            rf"(?:its|the company's) (?:{_OFFICE}|stock|common stock|ordinary shares)",
            r"its (?:roots|origins|american depositary receipts)",
            r"[A-Z][\w&.,'’\- ]{0,60}?",
        )
    )
    + ")"
)
_ADVERB = r"(?:(?:originally|first|also|currently|now|officially|initially)\s+)?"
_ORIGIN_SENTENCE = re.compile(
    rf"^{_SUBJECT},?\s++(?:(?:was|is|were|are|has been|had been)\s+{_ADVERB}(?:{_PARTICIPLE})|{_PREDICATE})",
    re.IGNORECASE,
)
# "Ada Byron and Jane Doe founded the firm in London in 1840." A sentence with further content is kept.
_FOUNDERS = re.compile(
    r"^[^;]{2,100}?\b(?:co-?founded|founded|started|launched|established|set up|began|opened|created)\s+"
    r"(?:it|the (?:[\w.'’\-]+ ){0,2}?(?:company|firm|business|group|brand|chain|bank|service|agency|maker|start-?up))"
    r"(?: (?:in|with|at|as|on|there|back|together)\b[^,;]*(?:, [A-Z][\w ]+,? ?(?:in \d{4})?)?)?\.?$",
    re.IGNORECASE,
)
_HEADLINE = re.compile(
    r"^(?:founded|listed|head office|headquarters|headquartered|based)\b[^;]{0,60}\.?$", re.IGNORECASE
)
# Former names may contain "and", so these sentences are not split into parts.
_RENAMING = re.compile(r"^the company (?:was )?(?:formerly known|previously known|changed its name)", re.IGNORECASE)
_ORIGIN_PART = re.compile(rf"\b(?:{_PARTICIPLE}|{_PREDICATE})", re.IGNORECASE)
# A separator before each further word is required. If it were optional, a run of n capitals could be divided into
# words in n^5 ways, and one text would take hours.
_PLACE_WORD = r"[A-Z0-9][\w.'’\-]*"
_PLACE_PART = re.compile(rf"^(?:the )?{_PLACE_WORD}(?:[\s,]+{_PLACE_WORD}){{0,5}}[\s,]*[.]?$")
_LEADING_ORIGIN = re.compile(
    r"^(?:Co-?founded|Founded|Established|Incorporated|Formed|Headquartered|Based)\b[^.;]{0,100}?,"
    r"\s+(?=(?:the company|it|the firm)\b)",
    re.IGNORECASE,
)
# `(?<!\s)`, here and below: a match begins only at the first of several spaces. If it could begin at each of n spaces,
# a search would take n^2 steps.
_JOIN = re.compile(r"(?:(?<!\s)\s+)?;\s*|(?:,|(?<!\s))\s+\band\b\s+|,\s+(?=with\b|where\b|which\b)")

_EXCHANGE = (
    "NYSE|NASDAQ|Nasdaq|LSE|AMEX|TSX|TSXV|TSE|OTC\\w*|ASX|HKEX|SEHK|SGX|KOSPI|KOSDAQ|NSE|BSE|Euronext|FWB|XETRA|SIX|JSE|"
    "B3|SSE|SZSE|TYO|EPA|ETR|AIM|BMV|[Tt]icker"
)
_TICKER = re.compile(rf"(?<!\s)\s*\([^()]{{0,40}}\b(?:{_EXCHANGE})\b[^()]{{0,60}}\)")

_PLACE = r"(?:the\s+)?(?:[A-Z][\w.'’\-]+)(?:(?:\s+(?:of|and|the))*\s+[A-Z][\w.'’\-]+)*"
_PLACES = re.compile(
    r"(?<!\s)(?:\s*,)?\s+(?:primarily |principally |mainly )?(?:in|across|throughout|within)\s+"
    rf"{_PLACE}(?:,\s+(?:and\s+)?{_PLACE})*"
    r"(?:,?\s+(?:and|as well as)\s+(?:internationally|worldwide|globally|overseas))?"
    r"|(?<!\s)\s+(?:both\s+)?internationally\b"
)


def drop_origin_sentences(text: str) -> str:
    """Return `text` without sentences that are only about head office, founding, renaming or listing.

    A sentence that also describes the business is kept; from "Founded in 1998, the company ..." the first part is
    removed. The company's names must be masked already.
    """
    sentences = (_LEADING_ORIGIN.sub("", sentence) for sentence in split_sentences(text))
    return " ".join(sentence for sentence in sentences if not _tells_origin_only(sentence))


def drop_tickers(text: str) -> str:
    """Return `text` without ticker symbols in parentheses such as "(NASDAQ: MSFT)"."""
    return _TICKER.sub("", text)


def drop_places(text: str) -> str:
    """Return `text` without phrases such as "in Japan and internationally". A heuristic on capital letters."""
    return _PLACES.sub("", text)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a profile; abbreviations such as "Co." and "Inc." do not end a sentence."""
    return _SENTENCE_END.split(text.strip())


def _tells_origin_only(sentence: str) -> bool:
    if _FOUNDERS.match(sentence) or _HEADLINE.match(sentence):
        return True
    if not _ORIGIN_SENTENCE.match(sentence):
        return False
    if _RENAMING.match(sentence):
        return True
    return all(_ORIGIN_PART.search(part) or _PLACE_PART.match(part) for part in _JOIN.split(sentence) if part)
