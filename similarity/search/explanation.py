"""Why a hit is a hit: the facts it shares with the anchors, and the phrases that carry the match.

Phrases are weighed by occlusion: leave one out of its description, prepare and encode the rest as a
description is prepared and encoded, and see how far the cosine of the two companies falls. Nothing
is estimated, so anybody can repeat it: delete the phrase, encode again, compare.

What a phrase loses when it goes depends on what stays. Where two sentences say the same, either
alone can go at little loss, and both weigh little.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company, Vector, name_key
from similarity.index.filters import filter_values
from similarity.preparation.phrases import Phrase, sentence_spans, split_phrases
from similarity.text import TextSettings, embedding_text

Described: TypeAlias = Company | str
"""What an anchor can be: a company, or a description in free words."""
Facts: TypeAlias = Mapping[str, Collection[str]]
"""Values by field, as filters compare them."""
Encode: TypeAlias = Callable[[list[str]], NDArray[np.float32]]
"""Texts to unit vectors, float32 `[len(texts), dimension]`."""

PHRASES_SHOWN = 3
SMALLEST_WEIGHT = 0.01
# A company's description is prepared some eighty times, so of a longer one no more is prepared than this.
# Phrases are of its first 6,000 characters, and even an encoder of 8,000 tokens reads nothing beyond it.
MOST_CHARACTERS_PREPARED = 50_000
# The shortest record of a company that preparation accepts.
_ID = "occluded"
_SAYS_SOMETHING = re.compile(r"\w")


class Side(StrEnum):
    """Whose description a phrase is of."""

    ANCHOR = "anchor"
    HIT = "hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryingPhrase:
    """A phrase without which the two descriptions would be less alike.

    It stands at `[start, end)` of the hit's description, or of anchor number `anchor`'s (from 0).
    `anchor` is set on both sides: the anchor of the highest cosine, against which the hit is
    explained. `weight` is the drop of that cosine when the phrase is left out, above 0.
    """

    text: str
    of: Side
    anchor: int
    start: int
    end: int
    weight: float


class SharedFact(NamedTuple):
    """The values of `field` (a filter's field) that a hit and at least one anchor have, as the hit writes them."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occlusions:
    """The vectors of one description: as it is, `full` `[dimension]`, and `without` each of its phrases.

    `without` is float32 `[len(phrases), dimension]`. A phrase of a sentence that preparation drops has
    the vector of the full text: the encoder never sees it.
    """

    phrases: tuple[Phrase, ...]
    full: Vector
    without: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class OcclusionTexts:
    """What to encode for one description: the `full` text, and the text `without` each of its phrases."""

    phrases: tuple[Phrase, ...]
    full: str
    without: tuple[str, ...]

    def distinct(self) -> list[str]:
        """Each text once: a phrase of a sentence that preparation drops leaves the full text."""
        return list(dict.fromkeys((self.full, *self.without)))


def occlusion_texts(described: Described, settings: TextSettings) -> OcclusionTexts:
    """The texts of a company's description, prepared with `settings`; free words are encoded as they are."""
    description, names = _words_of(described)
    phrases = split_phrases(description, names)

    def without(start: int, end: int) -> str:
        return _prepared(described, description[:start] + description[end:], settings)

    full = without(0, 0)
    # Only sentences of phrases: there may be a thousand others, and each is a preparation of the whole text.
    concerned = [span for span in sentence_spans(description) if any(_within(phrase, [span]) for phrase in phrases)]
    unread = [span for span in concerned if without(*span) == full]
    return OcclusionTexts(
        phrases=phrases,
        full=full,
        without=tuple(full if _within(phrase, unread) else without(phrase.start, phrase.end) for phrase in phrases),
    )


def encode_occlusions(subjects: Sequence[OcclusionTexts], encode: Encode) -> list[Occlusions]:
    """The occlusions of each subject, by one call of `encode` with every distinct text once; none for no subject."""
    texts = list(dict.fromkeys(text for subject in subjects for text in subject.distinct()))
    if not texts:
        return []
    row_of = {text: row for row, text in enumerate(texts)}
    vectors = encode(texts)
    return [
        Occlusions(
            phrases=subject.phrases,
            # Copies, so that a description that is kept does not keep the vectors of all others.
            full=vectors[row_of[subject.full]].copy(),
            without=vectors[[row_of[text] for text in subject.without]],
        )
        for subject in subjects
    ]


def carrying_phrases(anchors: Sequence[Occlusions], hit: Occlusions) -> tuple[CarryingPhrase, ...]:
    """The phrases that carry the match of `hit` with its nearest anchor, strongest first.

    At most `PHRASES_SHOWN` of each side, and only those of at least `SMALLEST_WEIGHT`.
    """
    cosines = [float(anchor.full @ hit.full) for anchor in anchors]
    nearest = int(np.argmax(cosines))
    anchor, cosine = anchors[nearest], cosines[nearest]
    sides = (
        (Side.ANCHOR, anchor.phrases, cosine - anchor.without @ hit.full),
        (Side.HIT, hit.phrases, cosine - hit.without @ anchor.full),
    )
    carrying = [
        CarryingPhrase(
            text=phrase.text, of=side, anchor=nearest, start=phrase.start, end=phrase.end, weight=float(weight)
        )
        for side, phrases, weights in sides
        for phrase, weight in _strongest(phrases, weights)
    ]
    return tuple(sorted(carrying, key=lambda phrase: -phrase.weight))


def facts_of(anchors: Sequence[Described]) -> Facts:
    """What `anchors` together say of country, industry, tags and attributes; free text says none of it."""
    held: dict[str, set[str]] = {}
    for anchor in anchors:
        if isinstance(anchor, Company):
            for field, values in filter_values(anchor).items():
                held.setdefault(field, set()).update(map(name_key, values))
    return held


def shared_facts(facts: Facts, hit: Company) -> tuple[SharedFact, ...]:
    """Return those of the anchors' `facts` that hold for `hit` too.

    Values compare as filters compare them: a fact that is shared can be filtered by.
    """
    shared = []
    for field, values in filter_values(hit).items():
        held = facts.get(field)
        # Plain loops: this runs for every field of every hit of every question.
        if held and (common := [value for value in values if name_key(value) in held]):
            shared.append(SharedFact(field=field, values=tuple(common)))
    return tuple(shared)


def _strongest(phrases: Iterable[Phrase], weights: NDArray[np.float32]) -> list[tuple[Phrase, float]]:
    """Strongest first; of equal ones the earlier."""
    weighed = [
        (phrase, float(weight)) for phrase, weight in zip(phrases, weights, strict=True) if weight >= SMALLEST_WEIGHT
    ]
    return sorted(weighed, key=lambda pair: -pair[1])[:PHRASES_SHOWN]


def _words_of(described: Described) -> tuple[str, tuple[str, ...]]:
    """As much of the description as is prepared, and own names."""
    if isinstance(described, str):
        return described, ()
    return described.description[:MOST_CHARACTERS_PREPARED], (described.name, *described.aliases)


def _within(phrase: Phrase, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= phrase.start and phrase.end <= end for start, end in spans)


def _prepared(described: Described, description: str, settings: TextSettings) -> str:
    """What the encoder reads where `described` has this description."""
    if isinstance(described, str):
        return description
    # A company's description is never empty; without its only phrase nothing is left to prepare.
    if not _SAYS_SOMETHING.search(description):
        return ""
    return embedding_text(
        Company(id=_ID, name=described.name, aliases=described.aliases, description=description), settings
    )
