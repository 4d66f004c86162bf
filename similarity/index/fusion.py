"""Reciprocal rank fusion, in our own code so that every index fuses rankings in the same way.

Cormack, Clarke, Buettcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
methods (SIGIR 2009): score(d) = sum over rankings of 1 / (60 + rank of d in it).
"""

import unicodedata
from collections.abc import Sequence

RANK_CONSTANT = 60
DEPTH = 100
"""How many hits of each ranking are fused; more if k is larger."""


def fuse(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Return the ids of all rankings, best first; ties by id. A ranking must not contain an id twice."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, company_id in enumerate(ranking, start=1):
            scores[company_id] = scores.get(company_id, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores, key=lambda company_id: (-scores[company_id], company_id))


def query_words(text: str, *, limit: int = 64) -> list[str]:
    """Return the distinct words of a text for hybrid search, in lower case, in order of appearance.

    They are in NFC, as stored companies are, and keep combining marks, which many scripts use for vowels.
    """
    # Not case-folded: that spells "ß" as "ss", which the stores do not.
    text = unicodedata.normalize("NFC", text).lower()
    words = "".join(c if c.isalnum() or unicodedata.category(c).startswith("M") else " " for c in text).split()
    return list(dict.fromkeys(word for word in words if any(c.isalnum() for c in word)))[:limit]
