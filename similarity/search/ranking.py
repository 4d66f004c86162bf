"""A ranking as the library returns it: one page of hits, with the resolved anchors and negatives of the query."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from similarity.company import Company
from similarity.errors import InvalidInput
from similarity.index.protocol import Generation
from similarity.search.errors import EncoderNotLoaded
from similarity.search.explanations.explanation import ExplainingPhrase, SharedFact
from similarity.search.queries.resolution import ResolvedAnchor, Unresolved
from similarity.search.ranking_page import Position, RankedHit
from similarity.search.readability import language_warning
from similarity.search.reranking.fact_effects import RankFact


class Hit(NamedTuple):
    """A competitor in a ranking.

    `score`: cosine to the query vector. `probability`: that the company is a competitor of the anchors and of no
    negative; a later hit never has a higher one. None if the query has no probabilities (`SecondStage.ranker`), or if
    the encoder cannot read the description (`warning` says so), an anchor or a negative. `duplicates`: ids of
    lower-ranked companies that are the same company. `shared`: facts that the company has in common with the anchors.
    `moved`: facts that moved its rank. `phrases`: the best matching pair of phrases, then those with the largest effect
    on the cosine; None if they were not computed.
    """

    rank: int
    company: Company
    score: float
    probability: float | None
    version: int
    embedded_at: datetime
    language: str
    duplicates: tuple[str, ...] = ()
    shared: tuple[SharedFact, ...] = ()
    moved: tuple[RankFact, ...] = ()
    phrases: tuple[ExplainingPhrase, ...] | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """One page of the hits of a query, best first, all from one `generation`.

    `unresolved`: references that match no company or several, and anchors and negatives with too few words to rank by;
    the query was run without them. `next`: pass it as `after` to get the next page; None on the last page. `warnings`:
    on namesakes, on filters that match nothing, on phrases that were not computed, and on an empty ranking.
    `approximate`: the index searched a graph, and a few of the nearest companies may be missing.
    """

    generation: Generation
    anchors: tuple[ResolvedAnchor, ...]
    negatives: tuple[ResolvedAnchor, ...]
    unresolved: tuple[Unresolved, ...]
    hits: tuple[Hit, ...]
    next: Position | None
    warnings: tuple[str, ...]
    approximate: bool


RankingOrError: TypeAlias = Ranking | InvalidInput | EncoderNotLoaded


def hit_of(
    ranked: RankedHit,
    shared: tuple[SharedFact, ...],
    phrases: tuple[ExplainingPhrase, ...] | None,
    *,
    languages: tuple[str, ...],
    with_probability: bool,
) -> Hit:
    """Return the hit of a ranked company, with the facts and phrases that explain it.

    `languages`: those that the encoder reads. `with_probability`: whether the query is in one of them.
    """
    hit = ranked.hit
    warning = language_warning("description", hit.company.description, hit.language, languages)
    return Hit(
        rank=ranked.rank,
        company=hit.company,
        score=hit.score,
        probability=ranked.probability if with_probability and warning is None else None,
        version=hit.version,
        embedded_at=hit.embedded_at,
        language=hit.language,
        duplicates=tuple(ranked.duplicates),
        shared=shared,
        moved=ranked.facts,
        phrases=phrases,
        warning=warning,
    )
