"""Labelled and unlabelled pairs of texts, and their reader.

    pairs = read_pairs(Path("pairs.csv"), companies=Path("companies.jsonl"))

A row of a file (CSV, TSV, JSONL or Parquet, the text formats also gzipped) contains two company ids or two texts, and
optionally a label or a grade, in columns with known names (`pair_rows`). For labels see `training.data.labels`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.text import DEFAULT_SETTINGS, TextSettings, embedding_text, text_hash
from training.data.labels import GradeOne, Labels, read_labels
from training.data.pair_rows import Layout, PairRow, find_layout, pair_rows, table_rows

Integers: TypeAlias = NDArray[np.int64]
Companies: TypeAlias = Path | Mapping[str, str]
"""A file of companies, or prepared texts by company id."""

ID_DIGITS = 16
NAMED_IDS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """`n` pairs of `t` texts with labels of `C` classes.

    `texts` and `ids` `[t]` have one entry per company (its id) or per distinct text (its hash). `left` and `right`
    int64 `[n]` are indices into them; the left side is the anchor. `targets` float32 `[n, C]` (0 or 1) are valid only
    where `known` bool `[n, C]` is true. `gains` float32 `[n]` are 3/1/0 for grades 2/1/0, 3/0 for positive and
    negative, NaN for pairs without a grade. The order of `directed` pairs matters.
    """

    texts: tuple[str, ...]
    ids: tuple[str, ...]
    left: Integers
    right: Integers
    classes: tuple[str, ...]
    targets: NDArray[np.float32]
    known: NDArray[np.bool_]
    gains: NDArray[np.float32]
    directed: bool

    def __post_init__(self) -> None:
        shape = (len(self.left), len(self.classes))
        if not (self.targets.shape == self.known.shape == shape and self.gains.shape == self.right.shape == shape[:1]):
            raise ValueError(f"left, right, targets, known and gains must be of {shape[0]} pairs, {shape[1]} classes")
        if len(self.texts) != len(self.ids):
            raise ValueError(f"{len(self.texts)} texts have {len(self.ids)} ids")

    def __len__(self) -> int:
        return len(self.left)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Bool `[n]`: pairs with at least one known class."""
        return np.asarray(self.known.any(axis=1))

    @property
    def anchors(self) -> tuple[str, ...]:
        """The distinct ids on the left side, in the order of `ids`."""
        return tuple(self.ids[text] for text in np.unique(self.left))

    @property
    def strata(self) -> Integers:
        """int64 `[n]`: pairs with the same labels have the same number from 0 up; unlabelled pairs have -1."""
        labels = np.where(self.known, self.targets, -1)
        _, strata = np.unique(labels, axis=0, return_inverse=True)
        return _renumbered(np.where(self.labelled, strata.reshape(-1), -1))

    def subset(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "Pairs":
        """Return the pairs at `rows` (indices or a mask). All texts are kept, so that caches by text stay valid."""
        return replace(
            self,
            left=self.left[rows],
            right=self.right[rows],
            targets=self.targets[rows],
            known=self.known[rows],
            gains=self.gains[rows],
        )

    def with_own_texts(self) -> "Pairs":
        """Return the same pairs, without the texts that are in no pair."""
        used, text_of = np.unique(np.concatenate([self.left, self.right]), return_inverse=True)
        return replace(
            self,
            texts=tuple(self.texts[text] for text in used),
            ids=tuple(self.ids[text] for text in used),
            left=text_of[: len(self)],
            right=text_of[len(self) :],
        )

    def with_hidden(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "Pairs":
        """Return all pairs, without the labels of those at `rows` (indices or a mask)."""
        known, gains = self.known.copy(), self.gains.copy()
        known[rows], gains[rows] = False, np.nan
        return replace(self, known=known, gains=gains)

    def with_gains(self, rows: NDArray[np.integer], gains: NDArray[np.float32]) -> "Pairs":
        """Return all pairs, with the gains `[rows]` for those at `rows`; labels do not change."""
        changed = self.gains.copy()
        changed[rows] = gains
        return replace(self, gains=changed)


def read_pairs(
    path: Path | Sequence[Path],
    *,
    companies: Companies | None = None,
    classes: Sequence[str] | None = None,
    grade_one: GradeOne = "negative",
    text_settings: TextSettings = DEFAULT_SETTINGS,
    every_class: bool = True,
) -> Pairs:
    """Return the pairs of one file, or of several files together.

    `companies` provides the texts of company ids; those of a file are prepared with `text_settings`. `classes` sets the
    classes and their order. Pairs are directed if they are a premise and a hypothesis. Duplicate pairs with equal
    labels, or with and without a label, are merged. If `every_class` is true, data in which a class has no pair are
    refused; set it to false for files that are only evaluated or unlabelled.

    Raises:
        InvalidInput: a file, row, label or company is invalid; the message names it.
    """
    paths = [path] if isinstance(path, Path) else list(path)
    rows: list[PairRow] = []
    layouts = []
    for file in paths:
        read = table_rows(file)
        # Names from all rows, because objects of a JSONL file may lack fields.
        layouts.append(find_layout(file, list(dict.fromkeys(str(name) for row in read for name in row.record))))
        rows += pair_rows(file, read, layouts[-1])
    labels = read_labels([row.cell for row in rows], classes=classes, grade_one=grade_one)
    directed = any(layout.directed for layout in layouts)
    kept = _distinct(rows, labels, directed=directed)
    if every_class:
        _check_classes(labels)
    keys, left, right = _numbered([(rows[row].left, rows[row].right) for row in kept])
    if _hold_ids(layouts, companies, paths):
        itself = next((row for row in rows if row.left == row.right), None)
        if itself:
            raise InvalidInput(f"{itself.cell.place}: {itself.left} is paired with itself; remove this row")
        texts, ids = _company_texts(keys, companies, text_settings), keys
    else:
        texts, ids = keys, tuple(text_hash(text)[:ID_DIGITS] for text in keys)
    return Pairs(
        texts=texts,
        ids=ids,
        left=left,
        right=right,
        classes=labels.classes,
        targets=labels.targets[kept],
        known=labels.known[kept],
        gains=labels.gains[kept],
        directed=directed,
    )


def _hold_ids(layouts: Sequence[Layout], companies: Companies | None, paths: Sequence[Path]) -> bool:
    kinds = {layout.holds_ids for layout in layouts}
    if len(kinds) > 1:
        raise InvalidInput(f"some of {', '.join(map(str, paths))} contain company ids, some texts; read them apart")
    holds_ids = kinds.pop()
    if holds_ids and companies is None:
        raise InvalidInput(
            f"{paths[0]} contains company ids ({layouts[0].left}, {layouts[0].right}); "
            "give the file of these companies too (--companies)"
        )
    return holds_ids


def _distinct(rows: Sequence[PairRow], labels: Labels, *, directed: bool) -> list[int]:
    """Return the rows to keep, one per pair: its first labelled row, else its first row."""
    labelled = labels.labelled
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        key = (row.left, row.right)
        before = first.setdefault(key, number)
        if not labelled[before]:
            first[key] = number if labelled[number] else before
        elif labelled[number] and not _agree(labels, before, number):
            raise _conflict(rows[before], row)
        # A grade depends on the anchor, so the grades of both orders may differ; labels may not.
        swapped = None if directed or row.cell.grade else first.get((row.right, row.left))
        both = swapped is not None and labelled[swapped] and labelled[number]
        if swapped is not None and both and not rows[swapped].cell.grade and not _agree(labels, swapped, number):
            raise _conflict(rows[swapped], row)
    return sorted(first.values())


def _agree(labels: Labels, one: int, other: int) -> bool:
    return (
        np.array_equal(labels.known[one], labels.known[other])
        and np.array_equal(labels.targets[one], labels.targets[other])
        and np.array_equal(labels.gains[one], labels.gains[other], equal_nan=True)
    )


def _conflict(one: PairRow, other: PairRow) -> InvalidInput:
    sides = f"{other.left!r:.60} and {other.right!r:.60}"
    return InvalidInput(f"{other.cell.place}: {sides} have another label in {one.cell.place}; keep one of the two rows")


def _check_classes(labels: Labels) -> None:
    if not labels.known.any():
        raise InvalidInput("no row is labelled; label some pairs, or read the file together with one that has labels")
    counts = (labels.known & (labels.targets > 0)).sum(axis=0)
    empty = [name for name, count in zip(labels.classes, counts, strict=True) if not count]
    if empty:
        raise InvalidInput(f"no row has the label {empty[0]!r}; label some, or name only the other classes (--classes)")


def _numbered(sides: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], Integers, Integers]:
    numbers: dict[str, int] = {}
    pairs = [[numbers.setdefault(side, len(numbers)) for side in pair] for pair in sides]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return tuple(numbers), table[:, 0].copy(), table[:, 1].copy()


def _company_texts(ids: Sequence[str], companies: Companies | None, settings: TextSettings) -> tuple[str, ...]:
    from training.evaluate.judged import read_companies

    if isinstance(companies, Mapping):
        texts = companies
    elif companies is None or not companies.is_file():
        raise InvalidInput(f"there is no file {companies} of companies")
    else:
        named = set(ids)
        texts = {each.id: embedding_text(each, settings) for each in read_companies(companies) if each.id in named}
    unknown = [company for company in ids if company not in texts]
    if unknown:
        shown = ", ".join(unknown[:NAMED_IDS]) + (", ..." if len(unknown) > NAMED_IDS else "")
        raise InvalidInput(
            f"{len(unknown):,} of {len(ids):,} companies of the pairs are not in the file of companies: {shown}"
        )
    return tuple(texts[company] for company in ids)


def _renumbered(strata: NDArray[np.integer]) -> Integers:
    """Renumber strata from 0 up in their order; -1 is kept."""
    used = np.unique(strata[strata >= 0])
    return np.where(strata < 0, -1, np.searchsorted(used, strata)).astype(np.int64)
