"""Estimates the resources of a corpus of another size from the figures of `benchmarks.elasticsearch` (no I/O).

Elastic's rule for the memory that searches need beside the heap ("Tune approximate kNN search") is
vectors x (bytes of the quantised vector + 4 bytes for each of its m links in the graph). `measured_bytes` takes the
same figure from the sizes of the server's files.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from similarity.index.elastic.mapping import LINKS_PER_NODE
from similarity.index.elastic.settings import VectorType

GIB = 1 << 30
NODE_GIB = (16, 32, 64)
HOURS_OF_A_MONTH = 730
COPIES = 2  # a primary and a replica, so that a node may fail
QUANTISED = {"hnsw": "vec", "int8_hnsw": "veq", "int4_hnsw": "veq", "bbq_hnsw": "veb"}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The measured figures of this machine, per company or per second."""

    disk_bytes: float
    memory_bytes: float
    whole_bytes: float
    texts_per_second: float
    documents_per_second: float
    merged_per_second: float


def formula_bytes(dimension: int, vectors: VectorType) -> float:
    """Return the bytes of memory for each company by Elastic's rule."""
    per_vector = {
        "hnsw": 4 * dimension,
        "int8_hnsw": dimension + 4,
        "int4_hnsw": dimension / 2 + 4,
        "bbq_hnsw": dimension / 8 + 14,
    }
    return per_vector[vectors] + 4 * LINKS_PER_NODE


def measured_bytes(storage: Mapping[str, float], vectors: VectorType) -> float:
    """Return the bytes of quantised vectors and graph for each company, from the sizes of their files."""
    return (storage[f"vectors_{QUANTISED[vectors]}"] + storage["vectors_vex"]) / storage["documents"]


def plan(companies: int, measured: Measured, *, by_formula: float) -> list[tuple[str, str]]:
    """Return the rows of the table: quantity and value."""
    memory = companies * max(measured.memory_bytes, by_formula)
    whole = companies * measured.whole_bytes
    disk = companies * measured.disk_bytes
    embed, load, merge = (
        companies / speed / 3600
        for speed in (measured.texts_per_second, measured.documents_per_second, measured.merged_per_second)
    )
    lines = [
        ("memory for vectors and graph, one copy, by formula", _gib(companies * by_formula)),
        ("the same as measured", _gib(companies * measured.memory_bytes)),
        ("the whole vectors besides, where rescoring is not to wait for the disk", _gib(whole)),
        ("disk, one copy", _gib(disk)),
        (f"disk of {COPIES} copies", _gib(COPIES * disk)),
        (f"disk while a re-embed fills a second generation ({COPIES} copies of one, 1 of the other)", _gib(3 * disk)),
        (f"hours to embed ({measured.texts_per_second:,.0f} texts/s on a machine like this)", f"{embed:.1f}"),
        (f"hours to load ({measured.documents_per_second:,.0f} docs/s)", f"{load:.1f}"),
        (f"hours to merge to one segment ({measured.merged_per_second:,.0f} docs/s)", f"{merge:.1f}"),
    ]
    for size in NODE_GIB:
        # Elastic's advice: at most half of a node's memory for the heap, the rest for the files.
        for what, wanted in ((", whole vectors on disk", memory), (", whole vectors in memory", memory + whole)):
            nodes = max(COPIES, math.ceil(COPIES * wanted / (size / 2 * GIB)))
            hours = f"{nodes} = {nodes * HOURS_OF_A_MONTH:,} node-hours a month x your price"
            lines.append((f"nodes of {size} GiB{what}", hours))
    lines.append(("embedding everything once", f"{embed:.1f} machine-hours x your price"))
    return lines


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
