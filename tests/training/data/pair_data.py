"""Small pairs made in memory, and files of pairs."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from training.data.pairs import Pairs

TEXTS: Mapping[str, str] = {name: f"The company makes {name}." for name in "abcdefgh"}


def made_pairs(
    sides: Sequence[tuple[str, str]],
    labels: Sequence[str],
    *,
    classes: Sequence[str] = ("competitor", "other"),
    directed: bool = False,
) -> Pairs:
    """Pairs of companies by id; a label is a class's name or "" for none."""
    ids = tuple(dict.fromkeys(company for pair in sides for company in pair))
    targets = np.array([[label == name for name in classes] for label in labels], dtype=np.float32)
    targets = targets.reshape(len(labels), len(classes))
    labelled = np.array([label != "" for label in labels], dtype=np.bool_)
    gains = np.array([{"competitor": 3, "other": 0}.get(label, np.nan) for label in labels], dtype=np.float32)
    return Pairs(
        texts=tuple(f"text of {company}" for company in ids),
        ids=ids,
        left=np.array([ids.index(left) for left, _ in sides], dtype=np.int64),
        right=np.array([ids.index(right) for _, right in sides], dtype=np.int64),
        classes=tuple(classes),
        targets=targets,
        known=np.repeat(labelled[:, None], len(classes), axis=1),
        gains=gains,
        directed=directed,
    )


def numbered_pairs(labels: Sequence[str], *, candidates: int = 4, directed: bool = False) -> Pairs:
    """One pair per label; each anchor has `candidates` of them, and no company stands in two pairs' right side."""
    sides = [(f"anchor-{row // candidates}", f"candidate-{row}") for row in range(len(labels))]
    return made_pairs(sides, labels, directed=directed)


def said(pairs: Pairs) -> list[tuple[str, str, str]]:
    """(left id, right id, label) of every pair; several classes are joined, "" is unlabelled."""
    return [
        (
            pairs.ids[pairs.left[row]],
            pairs.ids[pairs.right[row]],
            "+".join(np.array(pairs.classes)[(pairs.known[row]) & (pairs.targets[row] > 0)]),
        )
        for row in range(len(pairs))
    ]


def written(folder: Path, name: str, content: str) -> Path:
    """A file with this content, gzipped if its name says so."""
    path = folder / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path
