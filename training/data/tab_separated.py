"""Reads tab-separated tables without quoting, such as the files of STS, SentEval and NLI, perhaps gzipped.

Their texts contain unbalanced quotation marks, which `similarity.ingest.files` would take for quoting.
"""

import gzip
from pathlib import Path

from similarity.errors import InvalidInput


def unquoted_rows(path: Path) -> list[dict[str, str]]:
    """Return the values of each row by column name.

    Raises:
        InvalidInput: the file cannot be read, a row has another number of values than the header, or there is no row.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
        # Only line feeds end a row: texts contain other characters that `str.splitlines` takes for line ends.
        lines = content.decode("utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    header, *rows = [line.rstrip("\r").split("\t") for line in lines]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise InvalidInput(
                f"{path}, row {number}: {len(row)} values for {len(header)} columns; separate values with one tab"
            )
    if not rows:
        raise InvalidInput(f"{path} has no rows below its column names")
    return [dict(zip(header, row, strict=True)) for row in rows]


def benchmark_file(folder: Path, name: str) -> Path:
    """Return the path of `name`.tsv.gz or `name`.tsv in `folder`.

    Raises:
        InvalidInput: neither file exists.
    """
    path = next((path for path in (folder / f"{name}.tsv.gz", folder / f"{name}.tsv") if path.is_file()), None)
    if path is None:
        raise InvalidInput(f"there is no {name}.tsv.gz in {folder}; pass the folder that contains it")
    return path


def benchmark_rows(folder: Path, name: str, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the values of `columns`, row by row, of a `benchmark_file`.

    Raises:
        InvalidInput: there is no such file or column, or the file is invalid.
    """
    path = benchmark_file(folder, name)
    rows = unquoted_rows(path)
    missing = [column for column in columns if column not in rows[0]]
    if missing:
        raise InvalidInput(f"{path} has no column {missing[0]!r}; it needs {', '.join(columns)}")
    return [tuple(row[column] for column in columns) for row in rows]
