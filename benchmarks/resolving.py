"""Measures how often a typed name opens the right company, and a name that is not in the corpus opens none.

    python -m benchmarks.resolving --companies companies.jsonl.gz

`names_as_typed.tsv` holds the names, each with the id of its company in the corpus of 46,616 companies; a name
without an id is of a company that the corpus lacks. The list was written before the resolver was tuned.
"""

import argparse
import csv
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path

from benchmarks.matching import GENERATION, SIZE, fill, read
from similarity.index.sqlite import SqliteIndex
from similarity.search.errors import AmbiguousCompany
from similarity.search.names.resolver import FoundCompany, Resolved, Resolver

NAMES = Path(__file__).with_name("names_as_typed.tsv")


class Outcome(StrEnum):
    """The outcome of a typed name."""

    RIGHT = "opened the right company"
    WRONG = "opened a wrong one"
    OFFERED = "not opened, the right one among the candidates"
    CANDIDATES = "not opened, other candidates"
    NOTHING = "not opened, no candidates"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--companies", type=Path, required=True, help="JSONL of companies, may be gzipped")
    parser.add_argument("--list", action="store_true", help="also print each name with a wrong outcome")
    options = parser.parse_args()
    with NAMES.open(encoding="utf-8", newline="") as file:
        names = [(row["typed"], row["id"]) for row in csv.DictReader(file, delimiter="\t")]
    with tempfile.TemporaryDirectory() as folder, closing(SqliteIndex(Path(folder) / "index.db")) as index:
        fill(index, read(options.companies))
        index.declare(SIZE)
        resolver = Resolver(index, GENERATION)
        began = time.perf_counter()
        answers = [(typed, right, resolver.companies([typed], max_similar_searches=1)[typed]) for typed, right in names]
        seconds = time.perf_counter() - began
    print(f"{len(names)} names, {1000 * seconds / len(names):.1f} ms each in one thread")
    print_by_confidence(answers)
    for title, is_known in (("of the corpus", True), ("not in the corpus", False)):
        found: dict[Outcome, list[str]] = defaultdict(list)
        for typed, right, answer in answers:
            if bool(right) == is_known:
                found[outcome(right, answer)].append(typed)
        count = sum(map(len, found.values()))
        print(f"\n{count} {title}")
        for each in Outcome:
            print(f"  {100 * len(found[each]) / max(count, 1):5.1f}%  {each}")
            if options.list and each is not Outcome.RIGHT and found[each]:
                print(f"          {', '.join(found[each])}")


def print_by_confidence(answers: Sequence[tuple[str, str, Resolved]]) -> None:
    """Print how many of the opened companies were right, for each stated confidence."""
    opened: dict[float, Counter[bool]] = defaultdict(Counter)
    for _, right, answer in answers:
        if isinstance(answer, FoundCompany):
            opened[answer.confidence][answer.document.id == right] += 1
    for confidence, counts in sorted(opened.items(), reverse=True):
        print(f"  confidence {confidence:.2f}: {counts[True]} of {counts.total()} right")


def outcome(right: str, answer: Resolved) -> Outcome:
    """Return the outcome of a name whose company has the id `right` (empty: not in the corpus)."""
    if isinstance(answer, FoundCompany):
        return Outcome.RIGHT if answer.document.id == right else Outcome.WRONG
    candidates = answer.candidates if isinstance(answer, AmbiguousCompany) else answer.suggestions
    if right in {each.id for each in candidates}:
        return Outcome.OFFERED
    return Outcome.CANDIDATES if candidates else Outcome.NOTHING


if __name__ == "__main__":
    main()
