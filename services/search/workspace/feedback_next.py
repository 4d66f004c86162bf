"""Active learning, independent of HTTP: suggests pairs to label among the neighbours of companies that people use."""

from collections.abc import Sequence
from dataclasses import dataclass

from similarity.company import Company
from similarity.feedback.active_learning import Candidate, Suggestion, candidates_of, most_worth_labelling
from similarity.feedback.labels import LatestVerdicts, latest_verdicts
from similarity.feedback.protocol import Workspace
from similarity.search.queries.question import Anchor, Question
from similarity.search.queries.resolution import require_vector
from similarity.search.ranking import Ranking
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.stage import HEAD

from ..asking.answers import model_of
from ..asking.service import SearchService
from ..wire.problem_documents import reference_of
from .feedback_schemas import NextQuery, SuggestionRecord, Suggestions

# Each anchor needs two searches.
MAX_ANCHORS = 20
DEPTH = 100
"""Number of hits of each ranking that are considered."""
NOTHING_ASKED = "nobody has judged a hit or saved a list yet; name a company: ?anchor="
NOTHING_LEFT = "all neighbours that were considered are judged; name another company: ?anchor="


@dataclass(frozen=True, slots=True)
class NextService:
    """Suggests pairs of companies in the index behind `search` that have no verdict in `workspace`."""

    search: SearchService
    workspace: Workspace

    def next(self, query: NextQuery) -> Suggestions:
        """Return the most useful pairs to judge, best first.

        Raises:
            UnknownCompany, AmbiguousCompany: the anchor matches no company, or several.
            TooFewWords: the anchor has too few words to rank by.
        """
        judged = latest_verdicts(self.workspace.events())
        if query.anchor is None:
            anchors = self._recent(judged)
        else:
            found, _ = self.search.searcher.company(query.anchor)
            require_vector(found.document)
            anchors = [found.document.id]
        return self._suggestions(anchors, judged, query.k)

    def _suggestions(self, anchors: Sequence[str], judged: LatestVerdicts, k: int) -> Suggestions:
        questions = [_question(anchor, rank) for anchor in anchors for rank in (Rank.COSINE, Rank.BUSINESS)]
        live, rankings = self.search.searcher.search_all(questions, before_each=self.search.before_each)
        companies: dict[str, Company] = {}
        candidates: list[Candidate] = []
        known: list[str] = []
        for anchor, by_cosine, by_business in zip(anchors, rankings[::2], rankings[1::2], strict=True):
            if not isinstance(by_cosine, Ranking) or not isinstance(by_business, Ranking):
                continue  # the anchor was deleted
            document = by_cosine.anchors[0].document
            assert document is not None  # noqa: S101  # the anchor is a company, and it was resolved
            known.append(anchor)
            companies[anchor] = document.company
            companies |= {hit.company.id: hit.company for hit in (*by_cosine.hits, *by_business.hits)}
            candidates += candidates_of(
                anchor,
                by_cosine=[(hit.company.id, hit.score) for hit in by_cosine.hits],
                by_business=[(hit.company.id, hit.score) for hit in by_business.hits[:DEPTH]],
                probabilities={hit.company.id: hit.probability for hit in by_business.hits},
            )
        found = most_worth_labelling(candidates, judged=judged, depth=DEPTH, k=k)
        note = None if found else (NOTHING_LEFT if known else NOTHING_ASKED)
        return Suggestions(
            pairs=[_record_of(each, companies) for each in found],
            anchors=known,
            depth=DEPTH,
            note=note,
            generation=live.name,
            model=model_of(live),
        )

    def _recent(self, judged: LatestVerdicts) -> list[str]:
        """Return the MAX_ANCHORS latest anchors of verdicts and lists, latest first."""
        uses = [(event.at, event.anchor) for by_user in judged.values() for event in by_user.values()]
        for saved in self.workspace.lists():
            named = (anchor.get("company") for anchor in saved.question.get("anchors", ()))
            uses += [(saved.saved_at, company) for company in named if company]
        return list(dict.fromkeys(company for _, company in sorted(uses, reverse=True)))[:MAX_ANCHORS]


def _question(anchor: str, rank: Rank) -> Question:
    """Return the query for the neighbours of the company with the id `anchor`, by `rank`."""
    # Only the second stage knows probabilities, so ask for all hits that it orders: the hits by cosine are among them.
    k = DEPTH if rank is Rank.COSINE else max(DEPTH, HEAD[rank])
    return Question(anchors=[Anchor(company=anchor)], rank=rank, k=k, by_id=True)


def _record_of(suggestion: Suggestion, companies: dict[str, Company]) -> SuggestionRecord:
    candidate = suggestion.candidate
    return SuggestionRecord(
        anchor=reference_of(companies[candidate.anchor]),
        hit=reference_of(companies[candidate.hit]),
        worth=round(suggestion.worth, 4),
        why=list(suggestion.why),
        score=round(candidate.score, 6),
        probability=candidate.probability,
        cosine_rank=candidate.cosine_rank,
        business_rank=candidate.business_rank,
    )
