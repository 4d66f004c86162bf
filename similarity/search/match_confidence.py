"""How sure a match of each kind is: its precision, as `python -m benchmarks.matching` measured it."""

from collections.abc import Mapping

from similarity.search.name_matching import How

# The lower of seeds 2 and 3 with 600 rows of each kind of asking, rounded down, and never above .99.
CONFIDENCE: Mapping[How, float] = {
    How.DOMAIN: 0.98,
    How.NAME: 0.99,
    How.ALIAS: 0.99,
    How.ID: 0.97,
    How.LEGAL_FORM: 0.98,
    How.WORDS: 0.98,
    How.PREFIX: 0.91,
    How.SPELLING: 0.94,
}
OF_ONE_WORD: Mapping[How, float] = {How.NAME: 0.97, How.LEGAL_FORM: 0.93}


def confidence_of(how: How, core: str) -> float:
    """The share of matches of this kind that were right; `core` is that of the name which was asked.

    A name of one word is another company's more often. "Right" was judged where half of what was asked
    is not in the index at all, and on names as people write them; see `benchmarks/matching.py`.
    """
    one_word = " " not in core
    return OF_ONE_WORD[how] if one_word and how in OF_ONE_WORD else CONFIDENCE[how]
