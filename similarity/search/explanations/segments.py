"""The lines of business in a company's description, so that a search can be about one of them.

    for segment in explainer.segments(siemens):
        print(segment.number, segment.text)  # 3 Its Mobility segment provides passenger and freight transportation ...

Phrases about the same business are near each other as vectors. They are joined by average linkage (UPGMA; Sokal and
Michener, 1958): the two groups with the highest mean cosine are merged, until none is above `SAME_BUSINESS`.
"""

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from similarity.preparation.phrases import Phrase
from similarity.search.explanations.explanation import Occlusions
from similarity.search.explanations.phrase_pairs import PhraseTraits, content_words, is_general, is_history

SAME_BUSINESS = 0.65
"""Two groups of phrases with at least this mean cosine are one line of business."""
FEWEST_PHRASES = 10
"""The least number of phrases that name a business in a description with segments. In a shorter description, the
phrases beside the main business are about customers, places and brands."""
FEWEST_WORDS = 6
"""The least number of distinct content words of a segment: "directly to users" is only the rest of a sentence."""
MOST_SEGMENTS = 9
_QUANTITY = re.compile(r"\b\d[\d.,]*\d\b|\b(?:million|billion)\b")
"""In "operates 4,915 stores worldwide": the phrase says how much, not what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A line of business. `number`: from 1, in the order of the text. `text`: its phrases, as they are written.

    `phrases`: their numbers among the phrases of the description.
    """

    number: int
    text: str
    phrases: tuple[int, ...]


def segments_of(occlusions: Occlusions) -> tuple[Segment, ...]:
    """Return the segments of a description, at most `MOST_SEGMENTS`; none if it is short or about one business.

    Phrases that name no business belong to no segment: history, quantities, general words, and sentences that
    preparation drops.
    """
    useful = [number for number, phrase in enumerate(occlusions.phrases) if _names_business(number, phrase, occlusions)]
    if len(useful) < FEWEST_PHRASES:
        return ()
    groups = [[useful[each] for each in group] for group in _linked(occlusions.traits.alone[useful])]
    texts = ["; ".join(occlusions.phrases[each].text for each in group) for group in groups]
    found = [each for each in zip(groups, texts, strict=True) if content_words(each[1]) >= FEWEST_WORDS]
    if len(found) == 1:
        return ()
    return tuple(
        Segment(number=number, text=text, phrases=tuple(group))
        for number, (group, text) in enumerate(found[:MOST_SEGMENTS], start=1)
    )


def part_of(occlusions: Occlusions, segment: Segment | None) -> Occlusions:
    """Return the occlusions with the phrases of `segment` only; unchanged if it is None."""
    if segment is None:
        return occlusions
    rows, traits = list(segment.phrases), occlusions.traits
    return replace(
        occlusions,
        phrases=tuple(occlusions.phrases[row] for row in rows),
        without=occlusions.without[rows],
        traits=PhraseTraits(alone=traits.alone[rows], salience=traits.salience[rows], stance=traits.stance[rows]),
    )


def _names_business(number: int, phrase: Phrase, occlusions: Occlusions) -> bool:
    is_read = bool(np.isfinite(occlusions.traits.salience[number]))
    return is_read and not (is_general(phrase.text) or is_history(phrase.text) or _QUANTITY.search(phrase.text))


def _linked(vectors: NDArray[np.float32]) -> list[list[int]]:
    """Return the groups of rows, each in order, ordered by their first row."""
    groups = [[row] for row in range(len(vectors))]
    sums = vectors @ vectors.T  # of the cosines between two groups
    while len(groups) > 1:
        sizes = [len(group) for group in groups]
        means = sums / np.outer(sizes, sizes)
        np.fill_diagonal(means, -1)
        first, second = divmod(int(means.argmax()), len(groups))  # first < second: the matrix is symmetric
        if means[first, second] < SAME_BUSINESS:
            break
        sums[first] += sums[second]
        sums[:, first] += sums[:, second]
        sums = np.delete(np.delete(sums, second, axis=0), second, axis=1)
        groups[first] = sorted(groups[first] + groups.pop(second))
    return groups
