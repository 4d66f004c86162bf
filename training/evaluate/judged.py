"""Ranking quality on judged competitor pairs, the measure by which encoders are compared.

    python -m training.evaluate.judged --bundle models/<id> --judged FOLDER --companies FILE

FOLDER contains `<split>.tsv.gz` files (see `similarity.generations.judgements`); FILE contains the companies, one JSON
object a line. The judged candidates of each anchor are ranked by cosine. The quality is shown for plain text (the
unchanged description) and for prepared text (`similarity.text.embedding_text`), because the preparation matters more
than the model.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from similarity.bundle import ModelBundle
from similarity.company import Company
from similarity.encoder import TextEncoder
from similarity.errors import InvalidCompany, InvalidInput
from similarity.generations.judgements import Judgements, read_judgements
from similarity.ingest.files import read_rows
from similarity.text import TextSettings, embedding_text
from training.console import refusing
from training.evaluate.encoding import Encode, Texts
from training.evaluate.ranking import rank
from training.evaluate.ranks import auc

__all__ = [
    "Encode",
    "RankingQuality",
    "Texts",
    "auc",
    "evaluate",
    "judged_split",
    "judged_texts",
    "main",
    "read_companies",
]

SPLITS = ("dev", "train")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingQuality:
    """Mean nDCG@10 over anchors, and AUC of competitors against other candidates over all pairs."""

    ndcg: float
    auc: float
    anchors: int
    pairs: int


def evaluate(encode: Encode, judgements: Judgements, texts: Texts) -> RankingQuality:
    """Rank each anchor's candidates by the cosine of their encoded `texts`, and return the quality.

    Raises:
        InvalidInput: there are no judgements, or a judged company has no text.
    """
    found = rank(encode, judgements, texts)
    return RankingQuality(ndcg=float(found.ndcg.mean()), auc=found.auc, anchors=len(found.anchors), pairs=found.pairs)


def read_companies(path: Path) -> Iterator[Company]:
    """Yield the companies of a gzipped or plain JSONL file, with the fields that text preparation uses.

    Raises:
        InvalidInput: the file is missing, or a row is not a company; the message names the row.
    """
    for row in read_rows(path):
        record: dict[str, Any] = dict(row.record)
        try:
            yield Company(
                id=record["id"],
                name=record["name"],
                description=record["description"],
                aliases=tuple(record.get("aliases") or ()),
            )
        except (KeyError, InvalidCompany) as error:
            raise InvalidInput(
                f"{path}, row {row.number}: {row.unreadable or error}; a company has id, name and description"
            ) from None


def judged_texts(companies: Path, judgements: Judgements, settings: TextSettings | None) -> Texts:
    """Return the text of each judged company: prepared with `settings` or, if None, the unchanged description."""
    judged = {company for anchor, grades in judgements.items() for company in (anchor, *grades)}
    return {
        company.id: embedding_text(company, settings) if settings else company.description
        for company in read_companies(companies)
        if company.id in judged
    }


def judged_split(folder: Path, split: str) -> Path:
    """Return the path of a split, gzipped or plain."""
    plain = folder / f"{split}.tsv"
    return plain if plain.exists() else folder / f"{split}.tsv.gz"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print nDCG@10 and AUC of a bundle for each split, on plain and on prepared text."""
    parser = argparse.ArgumentParser(description="Ranking quality of a bundle on judged competitor pairs.")
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle")
    parser.add_argument("--judged", type=Path, required=True, help="folder with dev.tsv.gz and train.tsv.gz")
    parser.add_argument("--companies", type=Path, required=True, help="JSONL file of the judged companies")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), help="which files to read (default: dev train)")
    options = parser.parse_args(arguments)
    with refusing():
        _print_quality(options)


def _print_quality(options: argparse.Namespace) -> None:
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
