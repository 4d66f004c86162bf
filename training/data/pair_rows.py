"""Finds the two sides and the label in the rows of a file of pairs, by known column names."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import GRADE_COLUMNS, ID_COLUMNS, LABEL_COLUMNS
from similarity.ingest.files import read_rows
from similarity.ingest.rows import Row
from training.data.labels import LabelCell
from training.data.tab_separated import unquoted_rows

DIRECTED_COLUMNS = (("premise", "hypothesis"),)
TEXT_COLUMNS = (
    *DIRECTED_COLUMNS,
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("description_a", "description_b"),
    ("left", "right"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One row: its two sides (ids or texts), and its label as written."""

    left: str
    right: str
    cell: LabelCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of one file; `holds_ids`: its pairs are company ids, not texts. `directed`: the order matters."""

    left: str
    right: str
    holds_ids: bool
    directed: bool
    label: str | None
    grade: str | None


def table_rows(path: Path) -> list[Row]:
    """Return the rows of `path`. A TSV file with a malformed row (unbalanced quotes) is read without quoting.

    Raises:
        InvalidInput: the file is missing or empty, its suffix is unknown, or a row is malformed.
    """
    rows = list(read_rows(path))
    broken = next((row for row in rows if row.unreadable), None)
    if broken is not None and ".tsv" in [suffix.lower() for suffix in path.suffixes]:
        return [Row(number=number, record=record) for number, record in enumerate(unquoted_rows(path), 1)]
    if broken is not None:
        raise InvalidInput(f"{path}, row {broken.number}: {broken.unreadable}")
    if not rows:
        raise InvalidInput(f"{path} has no rows; give at least one pair")
    return rows


def find_layout(path: Path, names: list[str]) -> Layout:
    """Return which of the columns `names` contain the pair and its label.

    Raises:
        InvalidInput: no columns have known names, or several contain labels; the message lists the columns.
    """
    sides = next((pair for pair in (*ID_COLUMNS, *TEXT_COLUMNS) if set(pair) <= set(names)), None)
    if sides is None:
        known = ", ".join("/".join(pair) for pair in (*ID_COLUMNS, *TEXT_COLUMNS))
        raise InvalidInput(
            f"{path}: no two columns contain a pair; rename them to one of {known}. The file has the columns: "
            f"{', '.join(names)}"
        )
    left, right = sides
    columns = [name for name in (*LABEL_COLUMNS, *GRADE_COLUMNS) if name in names]
    if len(columns) > 1:
        raise InvalidInput(f"{path} has several label columns ({', '.join(columns)}); keep one of them")
    return Layout(
        left=left,
        right=right,
        holds_ids=sides in ID_COLUMNS,
        directed=(left, right) in DIRECTED_COLUMNS,
        label=next((name for name in columns if name in LABEL_COLUMNS), None),
        grade=next((name for name in columns if name in GRADE_COLUMNS), None),
    )


def pair_rows(path: Path, rows: list[Row], layout: Layout) -> Iterator[PairRow]:
    """Yield the two sides and the label of each row.

    Raises:
        InvalidInput: a side is empty or not valid Unicode; the message names the row.
    """
    for row in rows:
        place = f"{path}, row {row.number}"
        left, right = (_cell(row, name) for name in (layout.left, layout.right))
        if not left or not right:
            raise InvalidInput(f"{place}: {layout.left if not left else layout.right} is empty; a pair needs both")
        if not _is_unicode(left + right):
            raise InvalidInput(f"{place}: contains bytes that are not UTF-8; save the file as UTF-8")
        cell = LabelCell(place=place, label=_cell(row, layout.label), grade=_cell(row, layout.grade))
        yield PairRow(left=left, right=right, cell=cell)


def _cell(row: Row, column: str | None) -> str:
    """Return a cell as text; integers without ".0", because a column with missing values stores them as floats."""
    value = None if column is None else row.record.get(column)
    if value is None or value != value:  # noqa: PLR0124  # NaN, the gap of such a table, differs from itself
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _is_unicode(text: str) -> bool:
    """Return whether `text` has no unpaired surrogates, which stand for bytes that are not UTF-8."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
