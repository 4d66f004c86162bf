"""Active learning, independent of HTTP: which neighbours of the companies that people use to label next."""

from collections.abc import Sequence
from dataclasses import dataclass

from similarity.company import Company, EmbeddedCompany
from similarity.feedback.active_learning import Candidate, Suggestion, candidates_of, most_worth_labelling
from similarity.feedback.labels import LatestVerdicts, latest_verdicts
from similarity.feedback.protocol import Workspace
from similarity.index.fusion import DEPTH
from similarity.index.protocol import Generation, SimilarCompanies
from similarity.model.calibration import probability_of
from similarity.search.resolution import require_vector
from similarity.search.searcher import retry_if_retired

from ..asking.answers import model_of
from ..asking.service import SearchService
from ..wire.problem_documents import reference_of
from .feedback_schemas import NextQuery, SuggestionRecord, Suggestions

# Each needs two searches.
MAX_ANCHORS = 20
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
        return retry_if_retired(lambda: self._suggestions(self.search.searcher.live(), anchors, judged, query.k))

    def _suggestions(self, live: Generation, anchors: Sequence[str], judged: LatestVerdicts, k: int) -> Suggestions:
        stored = self.search.searcher.index.get(live.name, anchors)
        known = [stored[anchor] for anchor in anchors if anchor in stored and stored[anchor].has_vector]
        companies: dict[str, Company] = {document.id: document.company for document in known}
        candidates: list[Candidate] = []
        for anchor in known:
            by_vector, hybrid = self._rankings(live, anchor)
            hits = (*by_vector.hits, *hybrid.hits)
            companies |= {hit.company.id: hit.company for hit in hits}
            candidates += candidates_of(
                anchor.id,
                by_vector=[(hit.company.id, hit.score) for hit in by_vector.hits],
                hybrid=[(hit.company.id, hit.score) for hit in hybrid.hits],
                probabilities={hit.company.id: probability_of(hit.score, live.calibration) for hit in hits},
            )
        found = most_worth_labelling(candidates, judged=judged, depth=DEPTH, k=k)
        note = None if found else (NOTHING_LEFT if known else NOTHING_ASKED)
        return Suggestions(
            pairs=[_record_of(each, companies) for each in found],
            anchors=[anchor.id for anchor in known],
            depth=DEPTH,
            note=note,
            generation=live.name,
            model=model_of(live),
        )

    def _rankings(self, live: Generation, anchor: EmbeddedCompany) -> tuple[SimilarCompanies, SimilarCompanies]:
        """Return the neighbours by meaning, and by meaning and shared words."""
        index = self.search.searcher.index

        def ranked(words: str) -> SimilarCompanies:
            return index.similar(live.name, anchor.vector, k=DEPTH, exclude=[anchor.id], words=words)

        return ranked(""), ranked(anchor.company.description)

    def _recent(self, judged: LatestVerdicts) -> list[str]:
        """Return the anchors of verdicts and lists, latest first."""
        uses = [(event.at, event.anchor) for by_user in judged.values() for event in by_user.values()]
        for saved in self.workspace.lists():
            named = (anchor.get("company") for anchor in saved.question.get("anchors", ()))
            uses += [(saved.saved_at, company) for company in named if company]
        return list(dict.fromkeys(company for _, company in sorted(uses, reverse=True)))[:MAX_ANCHORS]


def _record_of(suggestion: Suggestion, companies: dict[str, Company]) -> SuggestionRecord:
    candidate = suggestion.candidate
    return SuggestionRecord(
        anchor=reference_of(companies[candidate.anchor]),
        hit=reference_of(companies[candidate.hit]),
        worth=round(suggestion.worth, 4),
        why=list(suggestion.why),
        score=round(candidate.score, 6),
        probability=candidate.probability,
        vector_rank=candidate.vector_rank,
        hybrid_rank=candidate.hybrid_rank,
    )
