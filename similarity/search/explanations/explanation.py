"""Explanation of a hit: the facts it shares with the anchors, and the phrases with the largest effect.

Phrases are weighted by occlusion: remove one from its description, prepare and encode the rest like any
description, and measure how far the cosine of the two companies falls. Anybody can repeat the measurement:
delete the phrase, encode again, compare.

First come the two phrases, one of each side, that match each other best (`phrase_pairs`). They are chosen by their own
vectors, not by their weights.

The weight depends on the remaining text. If two sentences say the same, removing only one changes little, so
both have a small weight.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company, Vector
from similarity.index.filters import filter_values, value_key
from similarity.preparation.masking import mask_names
from similarity.preparation.phrases import Phrase, sentence_spans, split_phrases
from similarity.search.countries import country_key
from similarity.search.explanations.phrase_pairs import PhraseTraits, best_pair, salience, stance
from similarity.text import CHARACTERS_PREPARED, TextSettings, beginning_of, embedding_text

Described: TypeAlias = Company | str
"""An anchor: a company, or a description in free text."""
Facts: TypeAlias = Mapping[str, Collection[str]]
"""Values by field, as filters compare them."""
Encode: TypeAlias = Callable[[list[str]], NDArray[np.float32]]
"""Texts to unit vectors, float32 `[len(texts), dimension]`."""

MAX_PHRASES_PER_SIDE = 3
MIN_WEIGHT = 0.01
# A description is prepared about eighty times, so a longer one is cut, even if preparation would read more of it.
MAX_PREPARED_CHARACTERS = 50_000
# The id of the record that is prepared: preparation needs a company, and does not read its id.
_ID = "occluded"
_SAYS_SOMETHING = re.compile(r"\w")


class Side(StrEnum):
    """The company in whose description a phrase stands."""

    ANCHOR = "anchor"
    HIT = "hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainingPhrase:
    """A phrase that says why the two companies are alike.

    It stands at `[start, end)` in the description of the hit or of the anchor. `anchor`: number (from 0) of the
    anchor with the highest cosine, with which the hit is compared; set on both sides. `weight`: decrease of that
    cosine without the phrase; in the first pair it may be below `MIN_WEIGHT`, even negative.
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
    """The vectors of one description: `full` `[dimension]`, and `without` each phrase. `traits`: of the phrases.

    `without` is float32 `[len(phrases), dimension]`. A phrase in a sentence that preparation drops has the vector
    of the full text, because the encoder never sees it.
    """

    phrases: tuple[Phrase, ...]
    full: Vector
    without: NDArray[np.float32]
    traits: PhraseTraits


@dataclass(frozen=True, slots=True, kw_only=True)
class OcclusionTexts:
    """The texts to encode for one description: the `full` text, the text `without` each phrase, each phrase `alone`.

    A phrase alone has the company's names masked if `TextSettings.mask_names` is true. A phrase that preparation drops
    is replaced by the full text.
    """

    phrases: tuple[Phrase, ...]
    full: str
    without: tuple[str, ...]
    alone: tuple[str, ...]

    def distinct(self) -> list[str]:
        """Return the distinct texts. Removing a phrase that preparation drops anyway leaves the full text."""
        return list(dict.fromkeys((self.full, *self.without, *self.alone)))


def occlusion_texts(described: Described, settings: TextSettings) -> OcclusionTexts:
    """Return the texts of a company's description, prepared with `settings`; free text is not prepared."""
    description, names = _words_of(described, settings)
    phrases = split_phrases(description, names)

    def without(start: int, end: int) -> str:
        return _prepared(described, description[:start] + description[end:], settings)

    full = without(0, 0)
    # Only sentences with phrases: there may be a thousand others, and each costs a preparation of the whole text.
    concerned = [span for span in sentence_spans(description) if any(_within(phrase, [span]) for phrase in phrases)]
    unread = [span for span in concerned if without(*span) == full]
    is_masked = settings.mask_names and bool(names)
    return OcclusionTexts(
        phrases=phrases,
        full=full,
        without=tuple(full if _within(phrase, unread) else without(phrase.start, phrase.end) for phrase in phrases),
        alone=tuple(
            full if _within(phrase, unread) else mask_names(phrase.text, names) if is_masked else phrase.text
            for phrase in phrases
        ),
    )


def encode_occlusions(subjects: Sequence[OcclusionTexts], encode: Encode) -> list[Occlusions]:
    """Return the occlusions of each subject, with one call of `encode` for all distinct texts."""
    texts = list(dict.fromkeys(text for subject in subjects for text in subject.distinct()))
    if not texts:
        return []
    row_of = {text: row for row, text in enumerate(texts)}
    vectors = encode(texts)
    return [_occlusions(subject, vectors, row_of) for subject in subjects]


def explaining_phrases(anchors: Sequence[Occlusions], hit: Occlusions) -> tuple[ExplainingPhrase, ...]:
    """Return the phrases that explain `hit` beside its nearest anchor.

    The best matching pair is first, in the order of their weights. Then follow the phrases with the largest effect on
    the cosine, largest first, with a weight of at least `MIN_WEIGHT`; of each side at most `MAX_PHRASES_PER_SIDE` in
    all.
    """
    cosines = [float(anchor.full @ hit.full) for anchor in anchors]
    nearest = int(np.argmax(cosines))
    anchor, cosine = anchors[nearest], cosines[nearest]
    chosen = best_pair(anchor.traits, hit.traits) or (None, None)
    sides = (
        (Side.ANCHOR, anchor.phrases, cosine - anchor.without @ hit.full, chosen[0]),
        (Side.HIT, hit.phrases, cosine - hit.without @ anchor.full, chosen[1]),
    )
    carrying = [
        (
            number != first,
            ExplainingPhrase(
                text=phrases[number].text,
                of=side,
                anchor=nearest,
                start=phrases[number].start,
                end=phrases[number].end,
                weight=float(weights[number]),
            ),
        )
        for side, phrases, weights, first in sides
        for number in _strongest(weights, first)
    ]
    return tuple(phrase for _, phrase in sorted(carrying, key=lambda each: (each[0], -each[1].weight)))


def facts_of(anchors: Sequence[Described]) -> Facts:
    """Return the values of all `anchors` in all filter fields but the language; free text has none."""
    held: dict[str, set[str]] = {}
    for anchor in anchors:
        if isinstance(anchor, Company):
            for field, values in filter_values(anchor).items():
                held.setdefault(field, set()).update(map(_key_of(field), values))
    return held


def shared_facts(facts: Facts, hit: Company) -> tuple[SharedFact, ...]:
    """Return the anchors' `facts` that `hit` has too.

    Values are compared as filters compare them, so a shared fact can be used as a filter.
    """
    shared = []
    for field, values in filter_values(hit).items():
        held = facts.get(field)
        # Plain loops: this runs for every field of every hit of every query.
        if held and (common := [value for value in values if _key_of(field)(value) in held]):
            shared.append(SharedFact(field=field, values=tuple(common)))
    return tuple(shared)


def _key_of(field: str) -> Callable[[str], str]:
    return country_key if field == "country" else value_key


def _occlusions(subject: OcclusionTexts, vectors: NDArray[np.float32], row_of: Mapping[str, int]) -> Occlusions:
    # Copies, so that one cached description does not keep the vectors of all others in memory.
    full = vectors[row_of[subject.full]].copy()
    without = vectors[[row_of[text] for text in subject.without]]
    traits = PhraseTraits(
        alone=vectors[[row_of[text] for text in subject.alone]],
        salience=salience(
            subject.phrases,
            subject.alone,
            changes=1 - without @ full,
            unread=(text == subject.full for text in subject.without),
        ),
        stance=stance(phrase.text for phrase in subject.phrases),
    )
    return Occlusions(phrases=subject.phrases, full=full, without=without, traits=traits)


def _strongest(weights: NDArray[np.float32], first: int | None) -> list[int]:
    """Return the numbers of `first` and the phrases with the largest weights; ties in the order of the text."""
    heavy = [number for number in np.argsort(-weights, kind="stable").tolist() if weights[number] >= MIN_WEIGHT]
    return list(dict.fromkeys(heavy if first is None else [first, *heavy]))[:MAX_PHRASES_PER_SIDE]


def _words_of(described: Described, settings: TextSettings) -> tuple[str, tuple[str, ...]]:
    """Return the part of the description that is prepared, and the company's own names."""
    if isinstance(described, str):
        return described, ()
    description = described.description
    if len(description) > CHARACTERS_PREPARED:
        # Cut before phrases are removed, or preparation would read further words instead of a phrase.
        beginning = beginning_of(description)
        is_all = _prepared(described, beginning, settings) == _prepared(described, description, settings)
        description = beginning if is_all else description[:MAX_PREPARED_CHARACTERS]
    return description, (described.name, *described.aliases)


def _within(phrase: Phrase, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= phrase.start and phrase.end <= end for start, end in spans)


def _prepared(described: Described, description: str, settings: TextSettings) -> str:
    """Return the text that the encoder reads if `described` has this description."""
    if isinstance(described, str):
        return description
    # A company's description must not be empty; without its only phrase there is nothing to prepare.
    if not _SAYS_SOMETHING.search(description):
        return ""
    return embedding_text(
        Company(id=_ID, name=described.name, aliases=described.aliases, description=description), settings
    )
