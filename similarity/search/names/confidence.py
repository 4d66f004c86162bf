"""The confidence of each kind of match: its precision, measured by `python -m benchmarks.matching`."""

from collections.abc import Mapping, Sequence

from similarity.search.names.comparison import How, is_short
from similarity.search.names.words import coverage, names_with

# The lower value of seeds 2 and 3 with 600 rows of each kind, rounded down, at most .99. PART and SIZE are for names of
# well-known companies, which `benchmarks.resolving` measures.
CONFIDENCE: Mapping[How, float] = {
    How.DOMAIN: 0.98,
    How.NAME: 0.99,
    How.ALIAS: 0.99,
    How.ID: 0.96,
    How.LEGAL_FORM: 0.98,
    How.WORDS: 0.98,
    How.WEBSITE_NAME: 0.76,
    How.PART: 0.9,
    How.SIZE: 0.9,
    How.PREFIX: 0.90,
    How.SPELLING: 0.94,
}
COVERED_BY_WORDS = 0.55
"""The least `coverage` of a name by several words at its start. With less, at most 0.6 of the matches were right, with
more at least 0.9, by the method of `benchmarks.matching`."""
MAX_ABBREVIATION = 3
RARE_AT_START, RARE_IN_PART = 20, 10
"""A word in fewer names than this is enough, at the start of a name or in any place. Of the matches by more frequent
words, 0.1 to 0.7 were right."""
OF_ONE_WORD: Mapping[How, float] = {How.NAME: 0.97, How.LEGAL_FORM: 0.92}


def confidence_of(how: How, core: str) -> float:
    """Return the share of correct matches of this kind; `core` is the core of the name in the row.

    It is lower for names of one word, which other companies have more often. It was measured with half of the
    companies missing from the index, and on names as people write them; see `benchmarks/matching.py`.
    """
    one_word = " " not in core
    return OF_ONE_WORD[how] if one_word and how in OF_ONE_WORD else CONFIDENCE[how]


def is_sure_part(how: How, core: str, cores: Sequence[str]) -> bool:
    """Return whether a part of a name is enough to choose the company; `cores` are the cores of its names.

    Several words must cover most of a name that begins with them; initials at the beginning are always enough. One
    word must be rare, and so must a part that is not the beginning: "exxon" means Exxon Mobil, but "bank of china" does
    not mean Industrial and Commercial Bank of China. There a short word is an abbreviation: "bca" in "Finecobank bca".
    """
    rarest = min(map(names_with, core.split()), default=0)
    if how is How.PART:
        return rarest < RARE_IN_PART and len(core) > MAX_ABBREVIATION
    if " " in core and not is_short(core):
        return coverage(core, cores) >= COVERED_BY_WORDS
    return rarest < RARE_AT_START or " " in core
