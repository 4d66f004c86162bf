"""The query of a ranking as a sheet of its Excel file: it tells later readers whose competitors the file lists."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from similarity.index.filters import FieldFilter

from .question_schemas import Criteria
from .ranking_schemas import AskedFor, Ranking

SHEET = "question"
LIMITS = {"at_least": ">=", "at_most": "<=", "above": ">", "below": "<"}


def question_rows(question: Criteria, ranking: Ranking, *, at: datetime) -> list[tuple[object, ...]]:
    """Return the rows of the sheet, two cells each, starting with the header. `at`: when the ranking was made."""
    return [("part", "value"), *_parts(question, ranking, at)]


def _parts(question: Criteria, ranking: Ranking, at: datetime) -> Iterator[tuple[object, ...]]:
    for anchor in ranking.anchors:
        weight = f", weight {anchor.weight:g}" if len(ranking.anchors) > 1 else ""
        yield "like", f"{_name(anchor)}{weight}"
    for negative in ranking.negatives:
        yield "unlike", _name(negative)
    for each in question.filters:
        yield "filter", _condition(each.chosen())
    if question.exclude:
        yield "without the companies", ", ".join(question.exclude)
    if question.exclude_lists:
        yield "without the companies on the lists", ", ".join(question.exclude_lists)
    yield "ranked by", question.rank
    if question.min_probability is not None:
        yield "minimum probability", question.min_probability
    yield "companies", len(ranking.hits)
    yield "date (UTC)", at.strftime("%Y-%m-%d %H:%M")
    yield "index", ranking.generation
    yield "encoder", ranking.model.encoder_id
    for miss in ranking.misses:
        yield "left out", f"{miss.asked} ({miss.role}): {miss.detail}"
    for warning in ranking.warnings:
        yield "warning", warning


def _name(asked: AskedFor) -> str:
    if asked.company is None:
        return f"\u201c{asked.text}\u201d"
    part = f", line of business {asked.segment.number}: \u201c{asked.segment.text}\u201d" if asked.segment else ""
    return f"{asked.company.name} ({asked.company.id}){part}"


def _condition(chosen: FieldFilter) -> str:
    """Return a filter in words: "country: Germany or France, not Japan"."""
    parts = [_any(chosen.any_of)] if chosen.any_of else []
    parts += [f"not {_any(chosen.none_of)}"] if chosen.none_of else []
    parts += [f"{sign} {limit}" for name, sign in LIMITS.items() if (limit := getattr(chosen, name)) is not None]
    return f"{chosen.field.removeprefix('attributes.')}: {', '.join(parts)}"


def _any(values: Sequence[str]) -> str:
    return " or ".join(each or "none" for each in values)
