"""A ranking as a table for a spreadsheet, which must not run what companies write about themselves."""

import csv
import io
import re

from services.search.asking.ranking_schemas import Hit, Ranking, Reason

MEDIA_TYPE = "text/csv"
COLUMNS = ("rank", "id", "name", "domain", "country", "industry", "score", "probability", "reason", "warning")
# What spreadsheets take for the start of a formula (OWASP, CSV injection).
RUN = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_text(ranking: Ranking) -> str:
    """The hits, a row each, with the names of the columns first. Members that were not asked for are empty."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _row(hit)] for hit in ranking.hits)
    return table.getvalue()


def file_name(ranking: Ranking) -> str:
    """What the table is called when it is saved."""
    companies = [anchor.company.id for anchor in ranking.anchors if anchor.company is not None]
    about = re.sub(r"[^A-Za-z0-9._-]", "-", companies[0]) if companies else "description"
    return f"competitors-{about}.csv"


def wants_csv(chosen: str | None, accept: str) -> bool:
    """Whether a table is wanted: `chosen` decides (json or csv), else what the `Accept` header likes better."""
    return chosen == "csv" if chosen else _liking(accept, "text", "csv") > _liking(accept, "application", "json")


def _row(hit: Hit) -> list[str | int | float | None]:
    company = hit.company
    return [
        hit.rank,
        company["id"],
        company.get("name", ""),
        company.get("domain", ""),
        company.get("country", ""),
        company.get("industry", ""),
        hit.score,
        hit.probability,
        _words(hit.reason),
        hit.warning,
    ]


def _words(reason: Reason) -> str:
    shared = [f"{fact.field.removeprefix('attributes.')}: {', '.join(fact.values)}" for fact in reason.shared]
    phrases = [f"\u201c{phrase.text}\u201d" for phrase in reason.phrases or []]
    return "; ".join([*phrases, *shared])


def _cell(value: str | int | float | None) -> str | int | float | None:
    return f"'{value}" if isinstance(value, str) and value.startswith(RUN) else value


def _liking(accept: str, kind: str, subtype: str) -> float:
    """The quality that an `Accept` header gives a media type; 0 if it does not name it. The closest name counts."""
    likings = {f"{kind}/{subtype}": 0.0, f"{kind}/*": 0.0, "*/*": 0.0}
    for part in accept.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        if name in likings:
            likings[name] = _quality(parameters)
    # A wildcard does not ask for a table: browsers send one.
    return next((liking for liking in likings.values() if liking), 0.0) if subtype == "json" else likings["text/csv"]


def _quality(parameters: list[str]) -> float:
    text = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return float(text) if re.fullmatch(r"[01](\.[0-9]{0,3})?", text) else 0.0
