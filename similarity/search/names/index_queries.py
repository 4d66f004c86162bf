"""The queries by which companies of a similar name are found in an index, and the ids that a name may stand for."""

import re
from collections.abc import Iterator

from similarity.company import ID_PATTERN, name_key

MAX_SHORTER_QUERIES = 4
INNER_CAPITAL = re.compile(r"([a-z])([A-Z])")


def possible_ids(name: str) -> list[str]:
    """Return the ids that `name` may stand for: in capitals, in small letters, and in capitals without punctuation.

    Most ids are tickers or words, so an id rarely mixes capitals and small letters.
    """
    typed = name.strip()
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
