"""CSV: when a client wants it, and lines that a spreadsheet does not run."""

import csv
import io
import re
from collections.abc import Iterable, Iterator

from similarity.formats.spreadsheets import spreadsheet_cell

CSV = "text/csv"


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield a line for each row; a text that a spreadsheet would run begins with an apostrophe."""
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(map(spreadsheet_cell, row))
        yield line.getvalue()


def wants_csv(chosen: str | None, accept: str) -> bool:
    """Return whether the client wants CSV: `chosen` (a format) decides, else the `Accept` header."""
    return (
        chosen == "csv" if chosen else _quality_of(accept, "text", "csv") > _quality_of(accept, "application", "json")
    )


def _quality_of(accept: str, kind: str, subtype: str) -> float:
    """Return the quality of a media type in an `Accept` header, by the most specific name; 0 without one."""
    qualities = {f"{kind}/{subtype}": 0.0, f"{kind}/*": 0.0, "*/*": 0.0}
    for part in accept.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        if name in qualities:
            qualities[name] = _quality(parameters)
    # A wildcard does not mean CSV: browsers send one.
    return next((quality for quality in qualities.values() if quality), 0.0) if subtype == "json" else qualities[CSV]


def _quality(parameters: list[str]) -> float:
    text = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return float(text) if re.fullmatch(r"[01](\.[0-9]{0,3})?", text) else 0.0
