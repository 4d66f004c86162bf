"""The tables of `benchmarks.elasticsearch`, from its figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.elasticsearch_plan import formula_bytes, measured_bytes
from similarity.index.elastic.settings import VectorType

Figures = Mapping[str, Any]

MIB = 1 << 20
CANDIDATE_COLUMNS = {
    "candidates": "{:,}",
    "recall": "{:.4f}",
    "p50": "{:.1f}",
    "p99": "{:.1f}",
    "took": "{:.1f}",
    "per_second_1": "{:,.0f}",
    "per_second_2": "{:,.0f}",
    "per_second_4": "{:,.0f}",
    "load": "{:.1f}",
}
OVERSAMPLE_COLUMNS = {
    "oversample": "{}",
    "candidates": "{:,}",
    "recall": "{:.4f}",
    "p50": "{:.1f}",
    "p99": "{:.1f}",
    "load": "{:.1f}",
}
FILTER_COLUMNS = {
    "share": "{} %",
    "passing": "{:,}",
    "way": "{}",
    "candidates": "{:,}",
    "recall": "{:.4f}",
    "p50": "{:.1f}",
    "p99": "{:.1f}",
    "load": "{:.1f}",
}
WRITING_COLUMNS = {
    "what": "{}",
    "docs_per_second": "{:,.0f}",
    "searchable_per_second": "{:,.0f}",
    "load": "{:.1f}",
}
HEADS = {
    "what": "",
    "candidates": "num_candidates",
    "recall": "recall@10",
    "p50": "p50 ms",
    "p99": "p99 ms",
    "took": "took ms",
    "per_second_1": "1 client/s",
    "per_second_2": "2/s",
    "per_second_4": "4/s",
    "docs_per_second": "docs/s",
    "searchable_per_second": "with refresh",
}


def show(title: str, lines: Sequence[Figures], columns: Mapping[str, str]) -> None:
    """Print a table under a title; figures that a line lacks are left empty."""
    cells = [[HEADS.get(name, name) for name in columns]]
    cells += [[form.format(line[name]) if name in line else "" for name, form in columns.items()] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = next(iter(columns)) == "what"
    print(f"\n{title}\n")
    for row in cells:
        padded = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([row[0].ljust(widths[0]) if left else padded[0], *padded[1:]]).rstrip())


def show_pairs(title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """Print a table of names and values."""
    width = max(len(name) for name, _ in pairs)
    print(f"\n{title}\n")
    for name, value in pairs:
        print(f"{name:<{width}}  {value}")


def space(
    loaded: Figures, before: Figures, merged: Figures, *, dimension: int, vectors: VectorType
) -> list[tuple[str, str]]:
    """Return rows with the speed of the load, disk and memory of one generation, beside Elastic's formula."""
    documents = merged["documents"]
    return [
        ("docs/s through upsert", f"{loaded['docs_per_second']:,.0f} ({loaded['writers']} writers)"),
        ("segments before and after merging", f"{before['segments']}, {merged['segments']}"),
        ("seconds to merge", f"{merged['seconds']:.0f}"),
        ("disk before and after merging", f"{before['disk'] / MIB:,.0f} MiB, {merged['disk'] / MIB:,.0f} MiB"),
        ("disk per company, merged", f"{merged['disk'] / documents:,.0f} bytes"),
        ("of them whole vectors", f"{merged['vectors_vec'] / documents:,.0f} bytes"),
        ("memory wanted per company, formula", f"{formula_bytes(dimension, vectors):,.0f} bytes"),
        ("the same as measured", f"{measured_bytes(merged, vectors):,.0f} bytes"),
    ]


def memory(figures: Figures) -> str:
    """Return the text of the server's memory: heap and buffers, and mapped files."""
    if "anon" not in figures:
        return "unknown (another machine)"
    return f"{figures['anon']:,.0f} MiB, {figures['file']:,.0f} MiB"
