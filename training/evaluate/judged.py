"""Ranking quality on judged competitor pairs: the figure by which encoders are chosen.

    python -m training.evaluate.judged --bundle models/<id> --judged FOLDER --companies FILE

FOLDER holds `<split>.tsv.gz` files (see `similarity.judgements`); FILE holds the companies, one JSON
object a line. Every anchor's own candidates are ranked by cosine. Plain text (the description as it
stands) is shown beside the prepared text (`similarity.text.embedding_text`), because the preparation
matters more than the model.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle
from similarity.company import Company
from similarity.encoder import TextEncoder
from similarity.judgements import COMPETITOR, Judgements, ndcg, read_judgements
from similarity.text import TextSettings, embedding_text

Encode: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
Texts: TypeAlias = Mapping[str, str]

SPLITS = ("dev", "train")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingQuality:
    """Higher is better, for both. `auc` tells competitors from the rest over all pairs at once."""

    ndcg: float
    auc: float
    anchors: int
    pairs: int


def evaluate(encode: Encode, judgements: Judgements, texts: Texts) -> RankingQuality:
    """Ranks each anchor's candidates by the cosine of what `encode` makes of `texts`.

    Raises:
        KeyError: a judged company has no text.
    """
    ids = sorted({company for anchor, grades in judgements.items() for company in (anchor, *grades)})
    vectors = dict(zip(ids, encode([texts[company] for company in ids]), strict=True))
    scores, grades, gains = [], [], []
    for anchor, judged in judgements.items():
        cosines = np.array([vectors[anchor] @ vectors[candidate] for candidate in judged])
        grade = np.array(list(judged.values()))
        gains.append(ndcg(cosines, grade))
        scores.append(cosines)
        grades.append(grade)
    all_grades = np.concatenate(grades)
    return RankingQuality(
        ndcg=float(np.mean(gains)),
        auc=auc(np.concatenate(scores), all_grades == COMPETITOR),
        anchors=len(judgements),
        pairs=len(all_grades),
    )


def auc(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative (ties count half); NaN without both."""
    _, ranks, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return float("nan")
    return float((middle[ranks][positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def read_companies(path: Path) -> Iterator[Company]:
    """The companies of a gzipped or plain JSONL file, with what the text preparation needs."""
    with _open(path) as lines:
        for line in lines:
            row = json.loads(line)
            yield Company(
                id=row["id"],
                name=row["name"],
                description=row["description"],
                aliases=tuple(row.get("aliases", ())),
            )


def judged_texts(companies: Path, judgements: Judgements, settings: TextSettings | None) -> Texts:
    """The text of each judged company: prepared with `settings`, or as it stands if there are none."""
    wanted = {company for anchor, grades in judgements.items() for company in (anchor, *grades)}
    return {
        company.id: embedding_text(company, settings) if settings else company.description
        for company in read_companies(companies)
        if company.id in wanted
    }


def judged_split(folder: Path, split: str) -> Path:
    """The file of a split, gzipped or plain."""
    plain = folder / f"{split}.tsv"
    return plain if plain.exists() else folder / f"{split}.tsv.gz"


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints nDCG@10 and AUC of a bundle for each split, on plain and on prepared text."""
    parser = argparse.ArgumentParser(description="Ranking quality of a bundle on judged competitor pairs.")
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle")
    parser.add_argument("--judged", type=Path, required=True, help="folder with dev.tsv.gz and train.tsv.gz")
    parser.add_argument("--companies", type=Path, required=True, help="JSONL file of the judged companies")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), help="which files to read (default: dev train)")
    options = parser.parse_args(arguments)
    encoder = TextEncoder(ModelBundle.load(options.bundle))
    write = sys.stdout.write
    write(f"{'split':8}{'text':10}{'nDCG@10':>9}{'AUC':>8}{'anchors':>9}{'pairs':>8}\n")
    for split in options.splits:
        judgements = read_judgements(judged_split(options.judged, split))
        for label, settings in (("plain", None), ("prepared", encoder.text_settings)):
            quality = evaluate(encoder.encode, judgements, judged_texts(options.companies, judgements, settings))
            row = f"{split:8}{label:10}{quality.ndcg:9.4f}{quality.auc:8.4f}{quality.anchors:9}{quality.pairs:8}\n"
            write(row)


if __name__ == "__main__":
    main()
