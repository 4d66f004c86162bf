"""Anchors told in other languages: their judged candidates teach a multilingual encoder to rank across languages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from similarity.errors import InvalidInput
from similarity.ingest.files import read_rows
from similarity.text import MULTILINGUAL_SETTINGS, embedding_text
from training.data.pairs import Pairs


def read_retellings(paths: Sequence[Path], companies: Path) -> dict[str, tuple[str, ...]]:
    """Return the prepared retold descriptions of each company, by its id.

    Files have rows of `id`, `lang` and `description`; names to mask are those of the file of companies.

    Raises:
        InvalidInput: a file is missing or invalid, or no retold company is among the companies.
    """
    from training.evaluate.judged import read_companies

    rows = [row.record for path in paths for row in read_rows(path)]
    retold = {str(row.get("id")) for row in rows}
    known = {each.id: each for each in read_companies(companies) if each.id in retold}
    if rows and not known:
        raise InvalidInput(f"{companies} has none of the companies that {paths[0]} retells")
    texts: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if company := known.get(str(row.get("id"))):
            told = replace(company, description=str(row.get("description")))
            texts[company.id] = (*texts.get(company.id, ()), embedding_text(told, MULTILINGUAL_SETTINGS))
    return texts


def with_retold_anchors(pairs: Pairs, retellings: Mapping[str, Sequence[str]]) -> Pairs:
    """Return `pairs`, and the pairs of each anchor once more for each of its retellings, with the same labels.

    The texts of `pairs` keep their numbers. Split by anchor before, so that a held-out anchor is not trained on in
    another language.
    """
    texts, ids = list(pairs.texts), list(pairs.ids)
    rows, left = [np.arange(len(pairs))], [pairs.left]
    for anchor in np.unique(pairs.left):
        of_anchor = np.flatnonzero(pairs.left == anchor)
        for number, text in enumerate(retellings.get(pairs.ids[anchor], ()), start=1):
            rows.append(of_anchor)
            left.append(np.full(len(of_anchor), len(texts)))
            texts.append(text)
            ids.append(f"{pairs.ids[anchor]} retold {number}")
    return replace(pairs.subset(np.concatenate(rows)), left=np.concatenate(left), texts=tuple(texts), ids=tuple(ids))
