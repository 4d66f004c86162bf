"""CSV: when it is wanted, and lines that a spreadsheet shows and does not run."""

import csv
import io
import re
from collections.abc import Iterable, Iterator

from similarity.formats.spreadsheets import spreadsheet_cell

CSV = "text/csv"


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """A line for each row; a text that a spreadsheet may run begins with an apostrophe."""
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(map(spreadsheet_cell, row))
        yield line.getvalue()


def wants_csv(chosen: str | None, accept: str) -> bool:
    """Whether a table is wanted: `chosen` decides (the name of a form), else what the `Accept` header likes better."""
    return chosen == "csv" if chosen else _liking(accept, "text", "csv") > _liking(accept, "application", "json")


def _liking(accept: str, kind: str, subtype: str) -> float:
    """The quality that an `Accept` header gives a media type; 0 if it does not name it. The closest name counts."""
    likings = {f"{kind}/{subtype}": 0.0, f"{kind}/*": 0.0, "*/*": 0.0}
    for part in accept.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        if name in likings:
            likings[name] = _quality(parameters)
    # A wildcard does not ask for a table: browsers send one.
    return next((liking for liking in likings.values() if liking), 0.0) if subtype == "json" else likings[CSV]


def _quality(parameters: list[str]) -> float:
    text = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return float(text) if re.fullmatch(r"[01](\.[0-9]{0,3})?", text) else 0.0
