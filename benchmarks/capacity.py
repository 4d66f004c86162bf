"""Estimates the memory, disk, nodes and hours that an installation of N companies needs.

    python -m benchmarks.capacity --companies 8000000

The estimates are multiples of the figures below, which are quoted from benchmarks/results/ (a test compares them).
docs/scaling.md says how far the estimates can be trusted.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.elasticsearch_plan import COPIES, GIB, HOURS_OF_A_MONTH, NODE_GIB, formula_bytes

ELASTICSEARCH = "2026-11-21-elasticsearch-amd-epyc-2-cores.md"
PIPELINES = "2026-11-22-pipelines-amd-epyc-2-cores.md"
EIGHT_MILLION = "2026-11-27-elasticsearch-amd-epyc-2-cores.md"
INDEX = "2026-11-27-amd-epyc-2-cores.md"
DIMENSION = 384
CORES = 2  # of the machine on which the figures were measured
DISK_WATERMARK = 0.85  # Elasticsearch's default: it places no more shards on a disk that is fuller than this
GENERATIONS = 2  # the live generation, and the previous or the next one


@dataclass(frozen=True, slots=True)
class Figure:
    """A value, and the text in a file of benchmarks/results/ that contains it."""

    value: float
    quoted: str
    file: str


EMBEDDED = Figure(258, "| pipeline | 258 |", PIPELINES)
WRITTEN = Figure(1_973, "docs/s through upsert               1,973 (2 writers)", EIGHT_MILLION)
MERGED = Figure(970, "seconds to merge                    970", ELASTICSEARCH)
DISK = Figure(2_852, "disk per company, merged            2,852 bytes", ELASTICSEARCH)
WHOLE = Figure(1_536, "of them whole vectors               1,536 bytes", ELASTICSEARCH)
SCANNED = Figure(50.77, "1,000,000  search                        141.36    316.38     50.77", INDEX)
FIGURES = (EMBEDDED, WRITTEN, MERGED, DISK, WHOLE, SCANNED)


def plan(companies: int) -> list[tuple[str, str, str]]:
    """Return the rows of the table: quantity, value, and calculation."""
    by_rule = formula_bytes(DIMENSION, "int8_hnsw")
    memory, whole, disk = companies * by_rule, companies * WHOLE.value, companies * DISK.value
    copies = GENERATIONS * COPIES
    milliseconds = companies / 1_000_000 * SCANNED.value
    return [
        ("memory beside the heap, one copy", _gib(memory), f"{companies:,} x {by_rule:.0f} bytes"),
        ("whole vectors in memory as well", _gib(whole), f"x {WHOLE.value:,.0f} bytes"),
        ("disk, one copy", _gib(disk), f"x {DISK.value:,.0f} bytes"),
        ("disk, with a replica", _gib(COPIES * disk), f"x {COPIES}"),
        (f"disk, while {GENERATIONS} generations stand", _gib(copies * disk), f"x {copies}"),
        ("disk to have", _gib(copies * disk / DISK_WATERMARK), f"the same / {DISK_WATERMARK}"),
        *(_nodes(size, memory, whole) for size in NODE_GIB),
        ("to embed everything", _hours(companies / EMBEDDED.value), f"/ {EMBEDDED.value:.0f} a second, {CORES} cores"),
        ("to write everything", _hours(companies / WRITTEN.value), f"/ {WRITTEN.value:,.0f} a second, {CORES} cores"),
        ("to merge to one segment", _hours(companies * MERGED.value / 1e6), f"x {MERGED.value:.0f} s / 1,000,000"),
        ("embedded index: matrix", _gib(companies * 4 * DIMENSION), f"x 4 x {DIMENSION} bytes"),
        ("embedded index: one search", f"{milliseconds:,.1f} ms", f"x {SCANNED.value} ms / 1,000,000"),
    ]


def _nodes(size: int, memory: float, whole: float) -> tuple[str, str, str]:
    """Return the row for nodes of `size` GiB. Elastic advises at most half of a node's memory for the heap."""
    room = size / 2 * GIB
    fewest, most = (max(COPIES, math.ceil(COPIES * wanted / room)) for wanted in (memory, memory + whole))
    how = f"{COPIES} copies in the halves that are not heap; whole vectors on disk, in memory"
    return f"data nodes of {size} GiB", f"{fewest}, {most}", f"{how}; x {HOURS_OF_A_MONTH} hours a month"


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f} GiB"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the plan."""
    parser = argparse.ArgumentParser(description="Estimate what an installation of N companies needs.")
    parser.add_argument("--companies", type=int, required=True)
    given = parser.parse_args(arguments)
    if given.companies < 1:
        parser.error("a plan needs at least one company")
    for row in plan(given.companies):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
