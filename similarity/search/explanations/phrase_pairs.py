"""Chooses the pair of phrases, one of each description, that best says why two companies are alike.

A pair scores high if its two phrases are similar (cosine of their own vectors, names masked) and if each is salient:
the description would change without it, it stands early, and it says what the company does (no history, no own name,
not only general words).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.preparation.masking import MASK
from similarity.preparation.phrases import Phrase
from similarity.preparation.words import STOP_WORDS

# Chosen on the 130 `dev` pairs of benchmarks/reason_phrases.tsv; figures are in docs/reasons.md.
LATENESS = 0.2
"""Descriptions begin with the main business: a phrase at the very end has a salience that is lower by this."""
HISTORY = 0.3
"""Subtracted from the salience of a phrase about history or ownership."""
BESIDE_THE_POINT = 0.15
"""Subtracted from the salience for each of these: the company's own name, only general words."""
LENGTH = 0.1
"""A longer phrase says more: LENGTH x log(1 + content words, at most MOST_WORDS) is added to the salience."""
MOST_WORDS = 8

_HISTORY = re.compile(
    r"\b(?:1[5-9]|20)\d\ds?\b|\b(?:acquir(?:ed|es|ing)|acquisition|bought|founded|founders?|began|"
    r"belongs? to|formerly|joined|listed|merged|merger|owned by|renamed|separated|"
    r"shareholders?|spun off|takeover|took over)\b",
    re.IGNORECASE,
)
# Words that name no business. Most of them are in 4 % or more of 46,616 descriptions.
_GENERAL_WORDS = STOP_WORDS | frozenset(
    """activities addition also and applications approximately area areas based brand brands business businesses
    commercial companies comprising consumers corporation countries country customers deals designs develops
    development distributes engaged engages etc facilities firm focuses further group high holding holdings holds
    include includes including industrial industries industry international internationally investment involved known
    limited located main management manages manufactures manufacturing market markets name network new offers office
    offices operates operation operations other others owns parts people primarily principally produces product
    production products project projects provides public range regions related rest sale sales sectors segment
    segments sells serves service services small solutions specialized states subsidiaries subsidiary supplies
    supply systems technologies technology together two three use used various well wide world worldwide""".split()
)
_WORD = re.compile(r"[^\W\d_]+")
# Two phrases contradict each other if one has only words of one side, and the other only words of the other side.
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{one})\b", re.IGNORECASE), re.compile(rf"\b(?:{other})\b", re.IGNORECASE))
    for one, other in (
        (r"short[- ](?:haul|term|range|distance)", r"long[- ](?:haul|term|range|distance)"),
        (
            r"low[- ](?:cost|fare|price|priced|fee)|cheap|cheaper|budget|discount|inexpensive",
            r"high[- ](?:end|price|priced)|luxury|luxurious|premium|costly|expensive",
        ),
        ("wholesale|wholesalers?", "retail|retailers?"),
        ("offshore", "onshore"),
        ("indoor", "outdoor"),
        ("upstream", "downstream"),
        ("light", "heavy"),
        ("used|second-hand", "new"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseTraits:
    """The values that decide which phrases of one description are shown.

    `alone`: the vector of each phrase, float32 `[phrases, dimension]`. `salience`: how well each stands for its
    description, float32 `[phrases]`; -inf if it must not be shown. `stance`: int8 `[phrases, opposites]`, 1 or -1 if
    the phrase has only words of the first or of the second side of these opposites, else 0.
    """

    alone: NDArray[np.float32]
    salience: NDArray[np.float32]
    stance: NDArray[np.int8]

    @property
    def nbytes(self) -> int:
        return self.alone.nbytes + self.salience.nbytes + self.stance.nbytes


def salience(
    phrases: Sequence[Phrase], masked: Iterable[str], changes: NDArray[np.float32], unread: Iterable[bool]
) -> NDArray[np.float32]:
    """Return how well each phrase stands for its description, float32 `[phrases]`; -inf if it is `unread`.

    `unread`: whether the preparation drops the phrase. `masked`: the phrases with the names of the company masked.
    `changes`: 1 - cosine of the description with and without the phrase. A generic phrase changes little, because the
    rest of the description implies it.
    """
    last = max((phrase.end for phrase in phrases), default=1)
    found = [
        -np.inf
        if is_unread
        else change
        - LATENESS * phrase.start / last
        - HISTORY * is_history(phrase.text)
        - BESIDE_THE_POINT * ((MASK in text) + is_general(phrase.text))
        + LENGTH * np.log1p(min(content_words(phrase.text), MOST_WORDS))
        for phrase, text, change, is_unread in zip(phrases, masked, changes, unread, strict=True)
    ]
    return np.array(found, dtype=np.float32)


def content_words(text: str) -> int:
    """Return the number of distinct words of three letters and more that are not stop words."""
    return len({word.lower() for word in _WORD.findall(text) if len(word) > 2} - STOP_WORDS)


def stance(phrases: Iterable[str]) -> NDArray[np.int8]:
    """Return the `stance` of phrases.

    >>> [row.tolist().count(-1) for row in stance(["long-haul flights", "short-haul and long-haul flights"])]
    [1, 0]
    """
    found = [[bool(one.search(text)) - bool(other.search(text)) for one, other in _OPPOSITES] for text in phrases]
    return np.array(found, dtype=np.int8).reshape(-1, len(_OPPOSITES))


def best_pair(anchor: PhraseTraits, hit: PhraseTraits) -> tuple[int, int] | None:
    """Return the numbers of the two phrases that match best and do not contradict each other; None if there are none.

    The score of a pair is the cosine of its phrases plus the salience of both.
    """
    scores = anchor.alone @ hit.alone.T + anchor.salience[:, None] + hit.salience
    if anchor.stance.any() and hit.stance.any():
        scores[(anchor.stance[:, None] * hit.stance == -1).any(axis=2)] = -np.inf
    if not scores.size or np.isneginf(scores.max()):
        return None
    row, column = divmod(int(scores.argmax()), scores.shape[1])
    return row, column


def is_history(text: str) -> bool:
    """Return whether a phrase is about history or ownership.

    >>> is_history("bought the Virginia packer in 2013"), is_history("packs bacon and ham")
    (True, False)
    """
    return _HISTORY.search(text) is not None


def is_general(text: str) -> bool:
    """Return whether a phrase has only words that say nothing about a business, or names (of places, brands, segments).

    >>> is_general("an investment holding company"), is_general("offers its products in Norway and the Baltic States")
    (True, True)
    >>> is_general("offers woven carpets"), is_general("Copper in Chile and Peru")
    (False, False)
    """
    words = _WORD.findall(text)
    unnamed = [word for number, word in enumerate(words) if number == 0 or not word[0].isupper()]
    return all(word.lower() in _GENERAL_WORDS for word in unnamed)
