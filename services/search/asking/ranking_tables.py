"""A ranking as a table for a spreadsheet."""

import re
from collections.abc import Sequence

from ..wire.tables import csv_lines
from .ranking_schemas import Hit, Ranking, Reason

COLUMNS = ("rank", "id", "name", "domain", "country", "industry", "score", "probability", "reason", "warning")


def csv_text(ranking: Ranking, further: Sequence[str] = ()) -> str:
    """Return a header and one row per hit. Members that the query omits are empty.

    `further`: members that only the hits of this ranking have, as further columns.
    """
    rows = ((*_row(hit), *(getattr(hit, name) for name in further)) for hit in ranking.hits)
    return "".join(csv_lines([(*COLUMNS, *further), *rows]))


def file_name(ranking: Ranking) -> str:
    """Return the file name of the table."""
    companies = [anchor.company.id for anchor in ranking.anchors if anchor.company is not None]
    about = re.sub(r"[^A-Za-z0-9._-]", "-", companies[0]) if companies else "description"
    return f"competitors-{about}.csv"


def _row(hit: Hit) -> tuple[object, ...]:
    return (
        hit.rank,
        *(hit.company.get(name, "") for name in COLUMNS[1:6]),
        hit.score,
        hit.probability,
        _words(hit.reason),
        hit.warning,
    )


def _words(reason: Reason) -> str:
    shared = [f"{fact.field.removeprefix('attributes.')}: {', '.join(fact.values)}" for fact in reason.shared]
    phrases = [f"\u201c{phrase.text}\u201d" for phrase in reason.phrases or []]
    return "; ".join([*phrases, *shared])
