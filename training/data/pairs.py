"""Labelled and unlabelled pairs of texts, and the function that reads them from files.

    pairs = read_pairs(Path("pairs.csv"), companies=Path("companies.jsonl"))

A file is CSV, TSV, JSON, JSONL, Excel or Parquet; texts may be gzipped. A row has two company ids or two texts, and
optionally a label or a grade. `pair_rows` lists the names of the columns, and `training.data.labels` the labels.
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
"""A file of companies, or the embedding texts by company id."""

ID_DIGITS = 16
IDS_IN_MESSAGE = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """`n` pairs of `t` texts, with labels of `C` classes.

    `texts` and `ids` `[t]` have one entry per company or per distinct text. The id of a text is its hash. `left` and
    `right` int64 `[n]` are indices into `texts`; the left side is the anchor. `targets` float32 `[n, C]` (0 or 1) are
    valid only where `known` bool `[n, C]` is true. `directed`: whether the order of the two sides matters.

    `gains` float32 `[n]`: 3, 1 and 0 for the grades 2, 1 and 0. Without a grade, 3 for a positive and 0 for a negative
    label. NaN for unlabelled pairs, and for all pairs if the labels are other classes.

    `of_companies`: whether `ids` are ids of companies; otherwise they are hashes of texts.
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
    of_companies: bool = False

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
        """Bool `[n]`: whether a pair has at least one known class."""
        return np.asarray(self.known.any(axis=1))

    @property
    def anchors(self) -> tuple[str, ...]:
        """The distinct ids on the left side, in the order of `ids`."""
        return tuple(self.ids[text] for text in np.unique(self.left))

    @property
    def labelled_companies(self) -> tuple[str, ...]:
        """The sorted ids of the companies in labelled pairs; none if the pairs are of texts without ids."""
        used = np.concatenate([self.left[self.labelled], self.right[self.labelled]])
        return tuple(sorted({self.ids[text] for text in used})) if self.of_companies else ()

    @property
    def strata(self) -> Integers:
        """int64 `[n]`: the number of the stratum of each pair, from 0; -1 for unlabelled pairs.

        A stratum consists of all pairs with the same labels.
        """
        labels = np.where(self.known, self.targets, -1)
        _, strata = np.unique(labels, axis=0, return_inverse=True)
        return _renumbered(np.where(self.labelled, strata.reshape(-1), -1))

    def subset(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "Pairs":
        """Return the pairs at `rows` (indices or a mask), with all texts, so that caches by text index stay valid."""
        return replace(
            self,
            left=self.left[rows],
            right=self.right[rows],
            targets=self.targets[rows],
            known=self.known[rows],
            gains=self.gains[rows],
        )

    def with_own_texts(self) -> "Pairs":
        """Return the same pairs without the texts that no pair uses."""
        used, text_of = np.unique(np.concatenate([self.left, self.right]), return_inverse=True)
        return replace(
            self,
            texts=tuple(self.texts[text] for text in used),
            ids=tuple(self.ids[text] for text in used),
            left=text_of[: len(self)],
            right=text_of[len(self) :],
        )

    def with_hidden(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "Pairs":
        """Return all pairs, where the pairs at `rows` (indices or a mask) have no labels."""
        known, gains = self.known.copy(), self.gains.copy()
        known[rows], gains[rows] = False, np.nan
        return replace(self, known=known, gains=gains)

    def with_gains(self, rows: NDArray[np.integer], gains: NDArray[np.float32]) -> "Pairs":
        """Return all pairs, where the pairs at `rows` have the given gains, one per row. Labels do not change."""
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

    `companies`: the texts of company ids. The texts of a file of companies are prepared with `text_settings`.
    `classes`: the classes and their order. `every_class`: refuse data in which a class has no pair; set it to false for
    files that are unlabelled or only evaluated.

    Pairs are directed if they are a premise and a hypothesis. Duplicate pairs are merged if their labels are equal, or
    if only one of them has a label.

    Raises:
        InvalidInput: a file, row, label or company is invalid; the message names it.
    """
    paths = [path] if isinstance(path, Path) else list(path)
    rows: list[PairRow] = []
    layouts = []
    for file in paths:
        file_rows = table_rows(file)
        # The column names of all rows, because an object of a JSONL file may lack fields.
        layouts.append(find_layout(file, list(dict.fromkeys(str(name) for row in file_rows for name in row.record))))
        rows += pair_rows(file, file_rows, layouts[-1])
    labels = read_labels([row.cell for row in rows], classes=classes, grade_one=grade_one)
    directed = any(layout.directed for layout in layouts)
    kept = _distinct(rows, labels, directed=directed)
    if every_class:
        _check_classes(labels)
    keys, left, right = _numbered([(rows[row].left, rows[row].right) for row in kept])
    of_companies = _contain_ids(layouts, companies, paths)
    if of_companies:
        self_pair = next((row for row in rows if row.left == row.right), None)
        if self_pair:
            raise InvalidInput(f"{self_pair.cell.place}: {self_pair.left} is paired with itself; remove this row")
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
        of_companies=of_companies,
    )


def _contain_ids(layouts: Sequence[Layout], companies: Companies | None, paths: Sequence[Path]) -> bool:
    """Return whether the files contain company ids (true) or texts (false).

    Raises:
        InvalidInput: the files contain both, or `companies` is missing for the ids.
    """
    contain_ids = {layout.holds_ids for layout in layouts}
    if len(contain_ids) > 1:
        raise InvalidInput(
            f"some of {', '.join(map(str, paths))} contain company ids, some texts; pass files of one kind"
        )
    if True in contain_ids and companies is None:
        raise InvalidInput(
            f"{paths[0]} contains company ids ({layouts[0].left}, {layouts[0].right}); "
            "give the file of these companies too (--companies)"
        )
    return True in contain_ids


def _distinct(rows: Sequence[PairRow], labels: Labels, *, directed: bool) -> list[int]:
    """Return the indices of the rows to keep, one per pair: its first labelled row, else its first row.

    Raises:
        InvalidInput: two rows of a pair have different labels.
    """
    labelled = labels.labelled
    kept: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        pair = (row.left, row.right)
        earlier = kept.setdefault(pair, number)
        if not labelled[earlier]:
            kept[pair] = number if labelled[number] else earlier
        elif labelled[number] and not _agree(labels, earlier, number):
            raise _conflict(rows[earlier], row)
        # The label of a pair is the same in both orders. A grade depends on the anchor, so the two grades may differ.
        swapped = None if directed or row.cell.grade else kept.get((row.right, row.left))
        both_labelled = swapped is not None and labelled[swapped] and labelled[number]
        if (
            swapped is not None
            and both_labelled
            and not rows[swapped].cell.grade
            and not _agree(labels, swapped, number)
        ):
            raise _conflict(rows[swapped], row)
    return sorted(kept.values())


def _agree(labels: Labels, one: int, other: int) -> bool:
    """Return whether two rows have the same labels and gains."""
    return (
        np.array_equal(labels.known[one], labels.known[other])
        and np.array_equal(labels.targets[one], labels.targets[other])
        and np.array_equal(labels.gains[one], labels.gains[other], equal_nan=True)
    )


def _conflict(earlier: PairRow, later: PairRow) -> InvalidInput:
    sides = f"{later.left!r:.60} and {later.right!r:.60}"
    return InvalidInput(
        f"{later.cell.place}: {sides} have another label in {earlier.cell.place}; keep one of the two rows"
    )


def _check_classes(labels: Labels) -> None:
    if not labels.known.any():
        raise InvalidInput(
            "no row is labelled: no column label or grade has a value; label some pairs, or pass a file with labelled "
            "pairs too"
        )
    counts = (labels.known & (labels.targets > 0)).sum(axis=0)
    unused = [name for name, count in zip(labels.classes, counts, strict=True) if not count]
    if unused:
        raise InvalidInput(
            f"no row has the label {unused[0]!r}; label some pairs with it, or name only the other classes (--classes)"
        )


def _numbered(sides: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], Integers, Integers]:
    """Return the distinct sides in the order of their first occurrence, and the indices of the left and right sides."""
    numbers: dict[str, int] = {}
    pairs = [[numbers.setdefault(side, len(numbers)) for side in pair] for pair in sides]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return tuple(numbers), table[:, 0].copy(), table[:, 1].copy()


def _company_texts(ids: Sequence[str], companies: Companies | None, settings: TextSettings) -> tuple[str, ...]:
    """Return the texts of the companies with these ids, in their order."""
    from training.evaluate.judged import read_companies

    if isinstance(companies, Mapping):
        texts = companies
    elif companies is None or not companies.is_file():
        raise InvalidInput(f"there is no file {companies}; give the file of the companies (--companies)")
    else:
        used = set(ids)
        texts = {
            company.id: embedding_text(company, settings) for company in read_companies(companies) if company.id in used
        }
    unknown = [company_id for company_id in ids if company_id not in texts]
    if unknown:
        shown = ", ".join(unknown[:IDS_IN_MESSAGE]) + (", ..." if len(unknown) > IDS_IN_MESSAGE else "")
        raise InvalidInput(
            f"{len(unknown):,} of {len(ids):,} companies of the pairs are not in the file of companies: {shown}"
        )
    return tuple(texts[company_id] for company_id in ids)


def _renumbered(strata: NDArray[np.integer]) -> Integers:
    """Return the strata with consecutive numbers from 0, in the same order; -1 stays -1."""
    used = np.unique(strata[strata >= 0])
    return np.where(strata < 0, -1, np.searchsorted(used, strata)).astype(np.int64)
