"""The queries by which companies of a similar name are found in an index, and the ids that a name may stand for."""

import re
from collections.abc import Iterator
from itertools import takewhile

from similarity.company import ID_PATTERN, Company, DeletedCompany, name_key
from similarity.index.protocol import CompanyIndex

MAX_SHORTER_QUERIES = 4
MAX_LISTINGS = 10
# "NASDAQ:AAPL", "AAPL US", "AAPL US Equity"
WITH_EXCHANGE = re.compile(r"[A-Za-z]{2,10}: ?(?P<after>[\w.-]+)|(?P<before>[A-Z0-9]{1,6}) [A-Z]{2}(?: Equity)?")
TICKER = re.compile(r"\d{3,7}|[A-Za-z]\w{1,4}")
WITH_CLASS = re.compile(r"([A-Za-z]{1,5})[.-][A-Za-z]{1,2}")
WITH_CLASS_LETTER = re.compile(r"([A-Z]{2,4})[A-Z]")
INNER_CAPITAL = re.compile(r"([a-z])([A-Z])")


def possible_ids(name: str) -> list[str]:
    """Return the ids that `name` may stand for: in capitals, in small letters, and in capitals without punctuation.

    Most ids are tickers or words, so an id rarely mixes capitals and small letters. The exchange beside a ticker is
    left out.

    >>> "AAPL" in possible_ids("NASDAQ:AAPL")
    True
    """
    typed = name.strip()
    if exchange := WITH_EXCHANGE.fullmatch(typed):
        typed = exchange["after"] or exchange["before"]
    plain = "".join(character for character in typed if character.isalnum())
    return [each for each in {typed.upper(), typed.lower(), plain.upper()} if ID_PATTERN.fullmatch(each)]


def queries(name: str, core: str) -> Iterator[str]:
    """Yield queries for companies with the words of a name: as written, in one word, or split before capitals."""
    yield core
    if name_key(name) != core:
        yield name
    if " " in core:
        yield core.replace(" ", "")
    elif (split := INNER_CAPITAL.sub(r"\1 \2", name)) != name:
        yield split


def shorter_queries(core: str) -> Iterator[str]:
    """Yield queries that find more candidates: the name without one of its words, or the first half of its only word.

    The longest words are left out first.
    """
    words = core.split()
    if len(words) == 1:
        yield core[: max(3, len(core) // 2 + 1)]
        return
    for omitted in sorted(words, key=len, reverse=True)[:MAX_SHORTER_QUERIES]:
        yield " ".join(word for word in words if word != omitted)


def listed_as(index: CompanyIndex, generation: str, name: str) -> list[Company]:
    """Return the companies whose id is `name`, a ticker, and the suffix of an exchange: 7203.T for "7203"."""
    ticker = name.strip().upper()
    return _with_prefix(index, generation, f"{ticker}.") if TICKER.fullmatch(ticker) else []


def other_classes(index: CompanyIndex, generation: str, name: str) -> list[Company]:
    """Return the companies whose id is `name`, a ticker, with another share class or none: BRK-A for BRK.B."""
    if ticker := WITH_CLASS_LETTER.fullmatch(name.strip()):
        return [document.company for document in index.get(generation, [ticker[1]]).values()]
    ticker = WITH_CLASS.fullmatch(name.strip())
    return _with_prefix(index, generation, f"{ticker[1].upper()}-") if ticker else []


def _with_prefix(index: CompanyIndex, generation: str, prefix: str) -> list[Company]:
    documents = next(index.scan(generation, after=prefix, batch_size=MAX_LISTINGS), [])
    same = takewhile(lambda document: document.id.startswith(prefix), documents)
    return [document.company for document in same if not isinstance(document, DeletedCompany)]
