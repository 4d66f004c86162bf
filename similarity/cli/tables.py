"""Output of companies: as a table for people, or as JSON or CSV for programs."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from similarity.cli.output import WIDE, width_of
from similarity.company import Company
from similarity.errors import InvalidInput
from similarity.formats.spreadsheets import spreadsheet_cell
from similarity.formats.terminal import printable
from similarity.search.reranking.rank import Rank

SCORE_BAR_CELLS = 10
ENOUGH_FOR_INDUSTRY = 100
"""Characters; in a narrower terminal ids and names would be broken into pieces."""


class OutputFormat(StrEnum):
    """The output format of companies."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One printed company; only `company` is set if it is not a hit."""

    company: Company
    rank: int | None = None
    score: float | None = None
    probability: float | None = None
    duplicates: tuple[str, ...] | None = None
    because: str | None = None

    @classmethod
    def of_hit(cls, hit: "ScoredHit", company: Company, *, because: str | None = None) -> "Line":
        """Return the line of a hit of the library or of a service."""
        return cls(
            company=company,
            rank=hit.rank,
            score=hit.score,
            probability=hit.probability,
            duplicates=hit.duplicates,
            because=because,
        )

    def row(self) -> dict[str, object]:
        """Return the line as flat columns, for JSON and CSV."""
        about = self.company
        found: dict[str, object] = {}
        if self.rank is not None and self.score is not None:
            found = {"rank": self.rank, "score": round(self.score, 4), "probability": self.probability}
        duplicates = {} if self.duplicates is None else {"duplicates": list(self.duplicates)}
        return {
            **found,
            "id": about.id,
            "name": about.name,
            "domain": about.domain,
            "country": about.country,
            "industry": about.industry,
            "description": about.description,
            **duplicates,
            **({} if self.because is None else {"because": self.because}),
        }


class FactThatMoved(Protocol):
    """The common members of a fact that moved the rank, of the library or of a service."""

    @property
    def field(self) -> str: ...
    @property
    def relation(self) -> str: ...
    @property
    def effect(self) -> float: ...


class QuotedPhrase(Protocol):
    """The common members of a phrase of the library and of a service."""

    @property
    def text(self) -> str: ...
    @property
    def of(self) -> str: ...


def because(moved: Iterable[FactThatMoved], phrases: Sequence[QuotedPhrase]) -> str:
    """Return a reason in one line: the first phrase of the hit and of the anchor, and the facts that moved the rank."""
    first = [next((each.text for each in phrases if each.of == side), None) for side in ("hit", "anchor")]
    quoted = " ↔ ".join(f"“{text}”" for text in first if text)
    facts = (f"{fact.relation} {fact.field} {fact.effect:+.2f}" for fact in moved)
    return "; ".join([*([quoted] if quoted else []), *facts])


class NamedCompany(Protocol):
    """A company's id and name, from the library or a service."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


class NumberedText(Protocol):
    """A segment of the library or of a service."""

    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...


class WithWarning(Protocol):
    """The warning on a text that the encoder cannot read, of an anchor or a hit of the library or of a service."""

    @property
    def warning(self) -> str | None: ...


class ScoredHit(Protocol):
    """The common fields of a hit of the library and a hit of a service."""

    @property
    def rank(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def duplicates(self) -> tuple[str, ...]: ...


def show_ranking(
    lines: Sequence[Line], output: OutputFormat, *, anchors: Sequence[NamedCompany], rank: Rank, remarks: Iterable[str]
) -> None:
    """Print the competitors of `anchors` (empty for a description), and `remarks` on standard error."""
    for remark in remarks:
        sys.stderr.write(f"similarity: {printable(remark)}\n")
    names = " and ".join(f"{anchor.name} ({anchor.id})" for anchor in anchors)
    asked = f"Competitors of {names}" if names else "Companies like this description"
    show(lines, output, title=f"{asked}, by {rank}")


def show_segments(company: NamedCompany, segments: Iterable[NumberedText]) -> None:
    """Print the lines of business of a company, one a line."""
    lines = [printable(f"{each.number}  {each.text}") for each in segments]
    sys.stdout.write(
        "\n".join(
            lines or [f"{company.name} ({company.id}) has no segments: its description is short, or about one business"]
        )
        + "\n"
    )


def unread(anchors: Iterable[WithWarning], hits: Sequence[WithWarning]) -> list[str]:
    """Return the remarks on anchors and negatives, and on hits, that the encoder cannot read."""
    remarks = list(dict.fromkeys(each.warning for each in anchors if each.warning))
    if count := sum(each.warning is not None for each in hits):
        remarks.append(f"hits in languages that the encoder does not read: {count}; no probability is given for them")
    return remarks


def understood(typed: str, company: NamedCompany, confidence: float) -> str:
    """Return the remark for a company that was found by a similar name."""
    return f"{typed!r} is read as {company.name} ({company.id}), {confidence:.0%} sure"


def skipped(unknown: Sequence[str], *, skip: bool) -> Sequence[str]:
    """Return the remarks on companies that could not be resolved, if they are to be skipped.

    Raises:
        InvalidInput: there are such companies, and `skip` is false.
    """
    if unknown and not skip:
        raise InvalidInput(f"{'; '.join(unknown)}; correct the names, or go on without them with --skip-unknown")
    return unknown


def show(lines: Sequence[Line], output: OutputFormat, *, title: str = "", stream: IO[str] | None = None) -> None:
    """Print lines to `stream`, by default standard output. A table without lines is printed only if it has a title."""
    stream = stream or sys.stdout
    if output is OutputFormat.JSON:
        json.dump([line.row() for line in lines], stream, ensure_ascii=False, indent=2)
        stream.write("\n")
    elif output is OutputFormat.CSV:
        rows = [line.row() for line in lines]
        # Only the first hits have reasons, so the first row has all columns.
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]) if rows else ["id"])
        writer.writeheader()
        writer.writerows({name: spreadsheet_cell(value) for name, value in row.items()} for row in rows)
    elif lines or title:
        console = Console(file=stream, width=width_of(stream))
        console.print(_table(lines, title, width=console.width))
        for line in lines:
            if line.because:
                console.print(Text(printable(f"{line.rank}  {line.because}")), soft_wrap=True)


def _table(lines: Sequence[Line], title: str, *, width: int) -> Table:
    """Return the table for `width` characters; below ENOUGH_FOR_INDUSTRY without the industries."""
    # Texts of companies may contain brackets that are not mark-up, and colons that are not emoji.
    table = Table(
        title=Text(printable(title)) if title else None,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    ranked = any(line.rank is not None for line in lines)
    with_probability = any(line.probability is not None for line in lines)
    if ranked:
        table.add_column("#", justify="right", style="dim")
        table.add_column("cosine", no_wrap=True)
        if with_probability:
            table.add_column("probability", justify="right", no_wrap=True)
    table.add_column("company", overflow="fold", style="bold")
    table.add_column("country", max_width=None if width == WIDE else 13)
    if width >= ENOUGH_FOR_INDUSTRY:
        table.add_column("industry", max_width=None if width == WIDE else 20)
    # People copy ids, so a long id is not cut: it is wrapped to the next line, as a long name is.
    table.add_column("id", overflow="fold", style="dim")
    for line in lines:
        about = line.company
        front = [str(line.rank), *_scores(line, with_probability=with_probability)] if ranked else []
        industry = [about.industry] if width >= ENOUGH_FOR_INDUSTRY else []
        cells = (about.name, about.country, *industry, about.id)
        table.add_row(*front, *(Text(printable(cell)) for cell in cells))
    return table


def _scores(line: Line, *, with_probability: bool) -> list[str]:
    """Return the cells of cosine and probability; without probability, the cosine has a bar."""
    score = line.score or 0.0
    if not with_probability:
        return [_bar(score)]
    return [f"{score:.2f}", "" if line.probability is None else f"{line.probability:.0%}"]


def _bar(score: float) -> str:
    cells = round(max(0.0, min(1.0, score)) * SCORE_BAR_CELLS)
    return f"{score:.2f} [green]{'█' * cells}[/green][dim]{'░' * (SCORE_BAR_CELLS - cells)}[/dim]"
