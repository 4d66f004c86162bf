"""Writes the nearest neighbours of every company to a Parquet file."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from similarity.index.protocol import CompanyIndex, Generation
from similarity.search.neighbours import all_neighbours

ROWS_PER_GROUP = 100_000
COLUMNS: dict[str, pa.DataType] = {
    "company_id": pa.string(),
    "rank": pa.int16(),
    "similar_id": pa.string(),
    "score": pa.float32(),
}
SCHEMA = pa.schema(COLUMNS)


def export_neighbours(
    index: CompanyIndex,
    generation: Generation,
    file: Path,
    *,
    k: int,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> int:
    """Writes (company_id, rank, similar_id, score) rows and returns their number.

    The file appears under its name only when it is complete; its metadata names generation and encoder.
    """
    names = {"generation": generation.name, "encoder_id": generation.encoder_id, "bundle_id": generation.bundle_id}
    draft = file.with_name(f".{file.name}.part")
    written = 0
    with pq.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
        writer.add_key_value_metadata(names)
        rows: list[tuple[str, int, str, float]] = []
        for company_id, neighbours in all_neighbours(index, generation.name, k=k, on_rows=on_rows):
            rows += [(company_id, rank, other, score) for rank, (other, score) in enumerate(neighbours, 1)]
            if len(rows) >= ROWS_PER_GROUP:
                written += _write(writer, rows)
                rows = []
        written += _write(writer, rows)
    draft.replace(file)
    return written


def _write(writer: pq.ParquetWriter, rows: list[tuple[str, int, str, float]]) -> int:
    if rows:
        columns = [
            pa.array(values, type=field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
        ]
        writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
    return len(rows)
