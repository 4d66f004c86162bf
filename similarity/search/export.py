"""Export of the nearest neighbours of every company to a Parquet file, and of the companies to JSON lines."""

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path, PurePath
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from similarity.company import Company, EmbeddedCompany
from similarity.errors import InvalidInput
from similarity.formats.whole_file import whole_file
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.sqlite.files import refuse_database
from similarity.search.neighbours import Neighbour, all_neighbours
from similarity.search.reranking.stage import rounded

ROWS_PER_GROUP = 100_000
COLUMNS: dict[str, pa.DataType] = {
    "company_id": pa.string(),
    "rank": pa.int16(),
    "similar_id": pa.string(),
    "score": pa.float32(),
    "probability": pa.float32(),
    "duplicates": pa.list_(pa.string()),
    "company_name": pa.string(),
    "similar_name": pa.string(),
}
SCHEMA = pa.schema(COLUMNS)
Row: TypeAlias = tuple[str, int, str, float, float | None, list[str], str, str]


def export_neighbours(
    index: CompanyIndex,
    generation: Generation,
    file: Path,
    *,
    k: int,
    part: tuple[int, int] = (1, 1),
    on_rows: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write a row for each neighbour of each company to `file`, and return the number of rows.

    An existing file is replaced when the new one is complete; after an error it is unchanged. Column `score` is the
    cosine; `probability` is null where `Neighbour` has none. `part`: see `all_neighbours`. The file's metadata name the
    generation, the encoder, the bundle and the part.

    Raises:
        InvalidInput: the file is a database or belongs to one, is no regular file, or does not end with .parquet, or
            its folder does not exist.
    """
    _check_file(file, ".parquet")
    metadata = {"generation": generation.name, "encoder_id": generation.encoder_id, "bundle_id": generation.bundle_id}
    metadata["part"] = f"{part[0]}/{part[1]}"
    with whole_file(file) as stream:
        return _write_rows(stream, metadata, all_neighbours(index, generation, k=k, part=part, on_rows=on_rows))


def export_companies(
    index: CompanyIndex, generation: Generation, file: Path, *, on_rows: Callable[[int], None] = lambda rows: None
) -> int:
    """Write each company as a line of JSON, which a load reads, to `file`, and return their number.

    Raises:
        InvalidInput: as `export_neighbours`, but the file must end with .jsonl.
    """
    _check_file(file, ".jsonl")
    written = 0
    with whole_file(file) as stream:
        for batch in index.scan(generation.name):
            companies = [each.company for each in batch if isinstance(each, EmbeddedCompany)]
            for company in companies:
                values = {each.name: getattr(company, each.name) for each in fields(Company)}
                values["attributes"] = dict(company.attributes)
                record = {name: value for name, value in values.items() if value}
                stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            written += len(companies)
            on_rows(len(companies))
    return written


def part_of(text: str) -> tuple[int, int]:
    """Return a part such as (3, 16) for "3/16".

    Raises:
        InvalidInput: the text is not NUMBER/PARTS with whole numbers and 1 <= NUMBER <= PARTS.
    """
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise InvalidInput(f"--part is {text!r:.40}; it must be a part and their number, such as 3/16")
    return int(number), int(parts)


def _write_rows(
    file: IO[bytes], metadata: dict[str, str], companies: Iterable[tuple[str, str, list[Neighbour]]]
) -> int:
    written = 0
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        writer.add_key_value_metadata(metadata)
        rows: list[Row] = []
        for company_id, name, neighbours in companies:
            for rank, each in enumerate(neighbours, 1):
                probability = rounded(each.probability)
                rows.append((company_id, rank, each.id, each.score, probability, each.duplicates, name, each.name))
            if len(rows) >= ROWS_PER_GROUP:
                written += _write(writer, rows)
                rows = []
        written += _write(writer, rows)
    return written


def _check_file(file: Path, suffix: str) -> None:
    refuse_database(file)
    if file.suffix.lower() != suffix:
        kind = "neighbours in a Parquet file (--companies: companies)" if suffix == ".parquet" else "JSON lines"
        name = file.name.removesuffix(".gz")
        meant = file.with_name(f"{name.removesuffix(PurePath(name).suffix)}{suffix}")
        raise InvalidInput(f"the export is {kind}, and {file} does not end with {suffix}; name it {meant}")
    if not file.parent.is_dir():
        raise InvalidInput(f"the folder {file.parent} does not exist; create it, or name a file in another folder")


def _write(writer: pq.ParquetWriter, rows: list[Row]) -> int:
    if rows:
        columns = [
            pa.array(values, type=field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
        ]
        writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
    return len(rows)
