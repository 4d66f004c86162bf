"""Reads the tables of STS and SentEval: tab-separated, a line of column names, no quoting, perhaps gzipped.

Their texts hold quotation marks that mean nothing, so `similarity.ingest.files` would misread them.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path

from similarity.errors import InvalidInput


def read_columns(folder: Path, name: str, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The values of these columns, row by row, of `name`.tsv.gz or `name`.tsv in `folder`.

    Raises:
        InvalidInput: no such file, it cannot be read, a column is missing, a row has another number of
            values, or there is no row.
    """
    path = next((path for path in (folder / f"{name}.tsv.gz", folder / f"{name}.tsv") if path.is_file()), None)
    if path is None:
        raise InvalidInput(f"there is no {name}.tsv.gz in {folder}; name the folder that holds it, or leave {name} out")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        # Only line feeds end a row: texts hold other characters that Python takes for line ends.
        lines = content.decode("utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}; fetch it again") from error
    header, *rows = [line.rstrip("\r").split("\t") for line in lines]
    missing = [column for column in columns if column not in header]
    if missing:
        raise InvalidInput(f"{path} has no column {missing[0]!r}; it needs {', '.join(columns)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise InvalidInput(f"{path}, row {number}: {len(row)} values for {len(header)} columns")
    if not rows:
        raise InvalidInput(f"{path} has no rows below its column names")
    places = [header.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]
