"""Descriptions of companies, prepared as for the search."""

from pathlib import Path

from similarity.errors import InvalidInput
from similarity.text import embedding_text
from training.evaluate.judged import read_companies


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
