"""How the command line shows companies: as a table to read, or as JSON or CSV for other programs."""

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from similarity.company import Company, SimilarCompany
from similarity.spreadsheets import spreadsheet_cell

SCORE_BAR_CELLS = 10


class OutputFormat(StrEnum):
    """How a command prints its answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One printed company; `rank` and `score` are empty in plain lists."""

    rank: int | None = None
    score: float | None = None
    company: Company

    def row(self) -> dict[str, object]:
        """The line as flat columns, for JSON and CSV."""
        found = {"rank": self.rank, "score": None if self.score is None else round(self.score, 4)}
        about = self.company
        return {key: value for key, value in found.items() if value is not None} | {
            "id": about.id,
            "name": about.name,
            "domain": about.domain,
            "country": about.country,
            "industry": about.industry,
            "description": about.description,
        }


def similar_lines(hits: Sequence[SimilarCompany]) -> list[Line]:
    """Ranked lines, best first."""
    return [Line(rank=rank, score=hit.score, company=hit.company) for rank, hit in enumerate(hits, 1)]


def show(lines: Sequence[Line], output: OutputFormat, *, title: str = "", stream: IO[str] | None = None) -> None:
    """Prints lines to `stream` (standard output)."""
    stream = stream or sys.stdout
    if output is OutputFormat.JSON:
        json.dump([line.row() for line in lines], stream, ensure_ascii=False, indent=2)
        stream.write("\n")
    elif output is OutputFormat.CSV:
        rows = [line.row() for line in lines]
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]) if rows else ["id"])
        writer.writeheader()
        writer.writerows({name: spreadsheet_cell(value) for name, value in row.items()} for row in rows)
    else:
        Console(file=stream).print(_table(lines, title))


def _table(lines: Sequence[Line], title: str) -> Table:
    # What was not written here may hold brackets that are no mark-up, and colons that are no emoji.
    table = Table(
        title=Text(title) if title else None, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    ranked = any(line.rank is not None for line in lines)
    if ranked:
        table.add_column("#", justify="right", style="dim")
        table.add_column("cosine", no_wrap=True)
    table.add_column("company", ratio=3, style="bold")
    table.add_column("country", no_wrap=True)
    table.add_column("industry", ratio=3)
    table.add_column("id", no_wrap=True, style="dim")
    for line in lines:
        about = line.company
        front = [str(line.rank), _bar(line.score or 0.0)] if ranked else []
        table.add_row(*front, *map(Text, (about.name, about.country, about.industry, about.id)))
    return table


def _bar(score: float) -> str:
    cells = round(max(0.0, min(1.0, score)) * SCORE_BAR_CELLS)
    return f"{score:.2f} [green]{'█' * cells}[/green][dim]{'░' * (SCORE_BAR_CELLS - cells)}[/dim]"
