"""What is most worth labelling next, among the neighbours of the companies that people care about. Without HTTP."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from similarity.company import Company, EmbeddedCompany
from similarity.feedback.active_learning import Candidate, Suggestion, candidates_of, most_worth_labelling
from similarity.feedback.labels import LatestVerdicts, latest_verdicts
from similarity.feedback.protocol import Workspace
from similarity.index.fusion import DEPTH
from similarity.index.protocol import Generation, SimilarCompanies
from similarity.model.calibration import probability_of
from similarity.search.searcher import retry_if_retired

from ..asking.answers import model_of
from ..asking.service import SearchService
from ..wire.problem_documents import reference_of
from .feedback_schemas import NextQuery, SuggestionRecord, Suggestions

# Two searches each.
MAX_ANCHORS = 20
NOTHING_ASKED = "nobody has judged a hit or saved a list yet; name a company: ?anchor="
NOTHING_LEFT = "all neighbours that were looked at are judged; name another company: ?anchor="


@dataclass(frozen=True, slots=True)
class NextService:
    """Suggests pairs from the index behind `search` that nobody in `workspace` has judged."""

    search: SearchService
    workspace: Workspace

    def next(self, query: NextQuery) -> Suggestions:
        """The pairs most worth a verdict, best first.

        Raises:
            Problem: the company that is named is unknown or goes by a contested name.
        """
        judged = latest_verdicts(self.workspace.events())
        anchors = self._recent(judged) if query.anchor is None else [self.search.company(query.anchor).company.id]
        return retry_if_retired(lambda: self._suggestions(self.search.searcher.live(), anchors, judged, query.k))

    def _suggestions(self, live: Generation, anchors: Sequence[str], judged: LatestVerdicts, k: int) -> Suggestions:
        stored = self.search.searcher.index.get(live.name, anchors)
        known = [stored[anchor] for anchor in anchors if anchor in stored]
        companies: dict[str, Company] = {document.id: document.company for document in known}
        candidates: list[Candidate] = []
        for anchor in known:
            by_vector, hybrid = self._rankings(live, anchor)
            companies |= {hit.company.id: hit.company for hit in (*by_vector.hits, *hybrid.hits)}
            candidates += _candidates(anchor.id, by_vector, hybrid, live)
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
        """The neighbours by meaning, and when shared words count too."""
        index = self.search.searcher.index

        def ranked(words: str) -> SimilarCompanies:
            return index.similar(live.name, anchor.vector, k=DEPTH, exclude=[anchor.id], words=words)

        return ranked(""), ranked(anchor.company.description)

    def _recent(self, judged: LatestVerdicts) -> list[str]:
        """The companies that were anchors of a verdict or a list, latest first."""
        uses = sorted((*_judged_anchors(judged), *self._list_anchors()), reverse=True)
        return list(islice(dict.fromkeys(company for _, company in uses), MAX_ANCHORS))

    def _list_anchors(self) -> Iterator[tuple[datetime, str]]:
        for saved in self.workspace.lists():
            for anchor in saved.question.get("anchors", ()):
                if anchor.get("company"):
                    yield saved.saved_at, anchor["company"]


def _judged_anchors(judged: LatestVerdicts) -> Iterator[tuple[datetime, str]]:
    for by_user in judged.values():
        for event in by_user.values():
            yield event.at, event.anchor


def _candidates(
    anchor: str, by_vector: SimilarCompanies, hybrid: SimilarCompanies, live: Generation
) -> list[Candidate]:
    hits = (*by_vector.hits, *hybrid.hits)
    return candidates_of(
        anchor,
        by_vector=[(hit.company.id, hit.score) for hit in by_vector.hits],
        hybrid=[(hit.company.id, hit.score) for hit in hybrid.hits],
        probabilities={hit.company.id: probability_of(hit.score, live.calibration) for hit in hits},
    )


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
