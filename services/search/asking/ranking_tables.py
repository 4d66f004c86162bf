"""A ranking as a table for a spreadsheet."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from similarity.feedback.protocol import FeedbackEvent
from similarity.search.reranking.fact_effects import Relation

from .ranking_schemas import Hit, Ranking, Reason

FACTS = ("id", "name", "domain", "country", "industry")
MAX_ATTRIBUTE_COLUMNS = 100
COLUMNS = ("rank", *FACTS, "score", "probability", "reason", "warning")
"""The columns of a CSV table, which programs read too."""


def csv_rows(ranking: Ranking, further: Sequence[str] = ()) -> list[tuple[object, ...]]:
    """Return a header and one row per hit. Members that the query omits are empty.

    `further`: names of members that only the hits of this ranking have; they become the last columns.
    """
    return [
        (*COLUMNS, *further),
        *((*_front(hit), hit.score, hit.probability, *_back(hit, further)) for hit in ranking.hits),
    ]


def xlsx_rows(
    ranking: Ranking, verdicts: Mapping[str, FeedbackEvent], further: Sequence[str] = ()
) -> list[tuple[object, ...]]:
    """Return the rows of `csv_rows` with the attributes, verdict and note of each hit. `verdicts`: by id of the hit."""
    before, after = ("rank", *FACTS), ("score", "probability", "verdict", "note", "reason", "warning", *further)
    names, values = attribute_columns([hit.company.get("attributes", {}) for hit in ranking.hits], (*before, *after))
    header = (*before, *names, *after)
    rows = [
        (
            *_front(hit),
            *attributes,
            *(hit.score, hit.probability, *_judged(verdicts.get(hit.company["id"])), *_back(hit, further)),
        )
        for hit, attributes in zip(ranking.hits, values, strict=True)
    ]
    return [header, *rows]


def attribute_columns(
    companies: Sequence[Mapping[str, object]], others: Collection[str]
) -> tuple[list[str], list[list[object]]]:
    """Return the columns of the companies' attributes, sorted by name, and their values for each company.

    `others`: the other columns of the table. An attribute with the name of such a column is called `attributes.NAME`.
    Only the MAX_ATTRIBUTE_COLUMNS most frequent attributes have columns; all others share a last column, "further
    attributes".
    """
    counts = Counter(name for each in companies for name in each)
    names = sorted(sorted(counts, key=lambda name: (-counts[name], name))[:MAX_ATTRIBUTE_COLUMNS])
    values: list[list[object]] = [[each.get(name) for name in names] for each in companies]
    columns = [f"attributes.{name}" if name in others else name for name in names]
    if len(counts) == len(names):
        return columns, values
    have_column = set(names)
    for row, each in zip(values, companies, strict=True):
        row.append("; ".join(f"{name}: {value}" for name, value in each.items() if name not in have_column))
    return [*columns, "further attributes"], values


def file_name(ranking: Ranking) -> str:
    """Return the file name of the table, without its ending."""
    companies = [anchor.company.id for anchor in ranking.anchors if anchor.company is not None]
    return f"competitors-{name_in_file(companies[0]) if companies else 'description'}"


def name_in_file(name: str) -> str:
    """Return a name with a hyphen for each character that a file name should not have."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)


def _judged(event: FeedbackEvent | None) -> tuple[object, ...]:
    return (event.verdict.value, event.note) if event else (None, None)


def _front(hit: Hit) -> tuple[object, ...]:
    return hit.rank, *(hit.company.get(name, "") for name in FACTS)


def _back(hit: Hit, further: Sequence[str]) -> tuple[object, ...]:
    return reason_words(hit.reason), hit.warning, *(getattr(hit, name) for name in further)


def reason_words(reason: Reason) -> str:
    """Return a reason in words: the best pair of phrases as the page shows it, hit ↔ anchor, then all other parts."""
    return "; ".join(_parts(reason))


def _parts(reason: Reason) -> Iterator[str]:
    own, others = ([each.text for each in reason.phrases or [] if each.of == side] for side in ("hit", "anchor"))
    if own and others:
        yield f"\u201c{own.pop(0)}\u201d \u2194 \u201c{others.pop(0)}\u201d"
    yield from (f"hit: \u201c{text}\u201d" for text in own)
    yield from (f"anchor: \u201c{text}\u201d" for text in others)
    for fact in reason.shared:
        yield f"{fact.field.removeprefix('attributes.')}: {', '.join(fact.values)}"
    has_industry = any(fact.field == "industry" for fact in reason.shared)
    for moved in reason.moved:
        # The finest industry that both have is compared. If it differs beside a shared industry, it is a finer one.
        is_finer = has_industry and (moved.field, moved.relation) == ("industry", Relation.OTHER)
        yield f"{moved.relation} {'finer ' if is_finer else ''}{moved.field} {moved.effect:+.2f}"
