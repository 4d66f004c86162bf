"""Output of rows and facts: as a table for people, or as JSON for scripts."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import IO, Any

from rich.console import Console
from rich.table import Table

from similarity.formats.terminal import printable

WIDE = 10_000
"""Characters of a line where there is no terminal."""


class ListFormat(StrEnum):
    """The output format of lists and facts."""

    TABLE = "table"
    JSON = "json"


def show_rows(rows: Sequence[Mapping[str, object]], output: ListFormat, *, nothing: str) -> None:
    """Print rows with the same keys as a table or as a JSON list; without rows, the table is replaced by `nothing`."""
    if output is ListFormat.JSON:
        _print_json(list(rows))
        return
    if not rows:
        _console().print(nothing)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float) for row in rows)
        table.add_column(_words(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    _console().print(table)


def show_facts(facts: Mapping[str, object], output: ListFormat) -> None:
    """Print named facts, one per line, or as a JSON object. Facts that are None are not printed as lines."""
    if output is ListFormat.JSON:
        _print_json(dict(facts))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            table.add_row(_words(name), _text(value))
    _console().print(table)


def width_of(stream: IO[str]) -> int | None:
    """Return a table's width: for a file or a pipe, wide enough to break no cell; None for the terminal's own width."""
    return None if stream.isatty() or "COLUMNS" in os.environ else WIDE


def _console() -> Console:
    # Names and reasons may contain brackets that are not mark-up.
    return Console(file=sys.stdout, markup=False, highlight=False, width=width_of(sys.stdout))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: object) -> str:
    for kinds, format_value in _FORMATTERS.items():
        if isinstance(value, kinds):
            return format_value(value)
    return "" if value is None else printable(str(value))


def _print_json(content: object) -> None:
    json.dump(content, sys.stdout, ensure_ascii=False, indent=2, default=_plain)
    sys.stdout.write("\n")


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value)


# Bool before int, because True is an int, too.
_FORMATTERS: dict[Any, Callable[[Any], str]] = {
    bool: lambda value: "yes" if value else "no",
    int: lambda value: f"{value:,}",
    float: lambda value: f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}",
    datetime: lambda value: f"{value:%Y-%m-%d %H:%M:%S}",
    Mapping: lambda value: ", ".join(f"{_words(str(name))} {_text(each)}" for name, each in value.items()) or "none",
    (list, tuple): lambda value: "; ".join(_text(each) for each in value) or "none",
}
