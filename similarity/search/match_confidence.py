"""The confidence of each kind of match: its precision, measured by `python -m benchmarks.matching`."""

from collections.abc import Mapping

from similarity.search.name_matching import How

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
OF_ONE_WORD: Mapping[How, float] = {How.NAME: 0.97, How.LEGAL_FORM: 0.93}


def confidence_of(how: How, core: str) -> float:
    """Return the share of correct matches of this kind; `core` is the core of the name in the row.

    It is lower for names of one word, which other companies have more often. It was measured with half of the
    companies missing from the index, and on names as people write them; see `benchmarks/matching.py`.
    """
    one_word = " " not in core
    return OF_ONE_WORD[how] if one_word and how in OF_ONE_WORD else CONFIDENCE[how]
