"""Judged competitor pairs: the files of their judgements and companies, and the texts that are encoded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from similarity.company import Company
from similarity.errors import InvalidCompany, InvalidInput
from similarity.generations.gate import labelled_companies
from similarity.generations.relevance_labels import RelevanceLabels
from similarity.ingest.files import read_rows
from similarity.text import TextSettings, embedding_text
from training.evaluate.encoding import Texts


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
                f"{path}, row {row.number}: {row.unreadable or error}; a company has id, name and "
                "description (similarity export --companies writes such a file)"
            ) from None


def judged_texts(companies: Path, judgements: RelevanceLabels, settings: TextSettings | None) -> Texts:
    """Return the text of each judged company: prepared with `settings` or, if None, the unchanged description."""
    judged = labelled_companies(judgements)
    return {
        company.id: embedding_text(company, settings) if settings else company.description
        for company in read_companies(companies)
        if company.id in judged
    }


def judged_split(folder: Path, split: str) -> Path:
    """Return the path of a split, gzipped or plain."""
    plain = folder / f"{split}.tsv"
    return plain if plain.exists() else folder / f"{split}.tsv.gz"


def read_descriptions(path: Path) -> tuple[str, ...]:
    """Return the prepared text of each company of a JSONL file, or the lines of a .txt file.

    Raises:
        InvalidInput: the file is missing or invalid.
    """
    if path.suffix != ".txt":
        return tuple(embedding_text(company) for company in read_companies(path))
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}; give UTF-8 text, a line for each description") from error
    return tuple(line for line in lines if line.strip())
