"""Measures the precision of matched rows for each kind of match, and the share of rows that are matched.

    python -m benchmarks.matching --companies companies.jsonl.gz
    python -m benchmarks.matching --companies companies.jsonl.gz --rows 1000 --seed 2

Every fifth company is kept out of the index. Half of the rows are companies in the index, half are companies that
are not. Their names and websites are varied as people write them: without legal form, in other letters, with one
typing error, shortened, with https:// and a path. For a company in the index the right answer is its id; for a company
that is not in it, every match is wrong. `similarity.search.names.confidence` holds the precisions by kind, rounded
down. Most lists are easier, because fewer of their companies are unknown.
"""

import argparse
import gzip
import json
import random
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np

from similarity.company import Company, EmbeddedCompany
from similarity.errors import InvalidCompany
from similarity.index.attributes import AttributeSchema, parse_schema
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Columns, VersionedCompany, parse_record
from similarity.search.names.comparison import How, core_of
from similarity.search.names.confidence import OF_ONE_WORD, confidence_of
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.rows import ListedCompany, Match

Asking: TypeAlias = Callable[[Company, random.Random], ListedCompany | None]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
KEPT_OUT = 5  # one company in this many is kept out of the index
VECTOR = np.array([1, 0, 0, 0], dtype=np.float32)
COLUMNS = Columns(attributes={"market_cap": "market_cap"})
SIZE = parse_schema(["market_cap:ordinal=nano,micro,small,mid,large,mega"], size="market_cap")
START = datetime(2025, 1, 1, tzinfo=UTC)
GENERATION = Generation(name="bench", encoder_id="none", bundle_id="none", dimension=4, created_at=START)


@dataclass(frozen=True)
class Case:
    """One row, the way it was made, and the id of its company; None if the company is not in the index."""

    asking: str
    row: ListedCompany
    right: str | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--companies", type=Path, required=True, help="JSONL of companies, may be gzipped")
    parser.add_argument(
        "--rows",
        type=int,
        default=400,
        help="rows of each kind, half of them of unknown companies",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--as-typed", action="store_true", help="match as the search box does, not as a list")
    options = parser.parse_args()
    companies = read(options.companies)
    chance = random.Random(options.seed)
    chance.shuffle(companies)
    known = [company for number, company in enumerate(companies) if number % KEPT_OUT]
    unknown = companies[::KEPT_OUT]
    with tempfile.TemporaryDirectory() as folder, closing(SqliteIndex(Path(folder) / "index.db")) as index:
        fill(index, known)
        cases = [*made(known, options.rows // 2, chance, known=True), *made(unknown, options.rows // 2, chance)]
        sizes = AttributeSchema() if options.as_typed else SIZE
        matcher = RowMatcher(index, GENERATION.name, sizes, as_typed=options.as_typed)
        began = time.perf_counter()
        judged = [(case, matcher.match(case.row)) for case in cases]
        seconds = time.perf_counter() - began
    print(f"{len(known):,} companies in the index, {len(unknown):,} kept out, seed {options.seed}; ", end="")
    print(f"{len(cases):,} rows, {1000 * seconds / len(cases):.1f} ms each in one thread\n")
    print_by_asking(judged)
    print_by_kind(judged)


def read(path: Path) -> list[Company]:
    """Return all valid companies of the file."""
    opened = gzip.open if path.suffix == ".gz" else open
    companies = []
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            try:
                change = parse_record(json.loads(line), columns=COLUMNS, now=START).change
            except InvalidCompany:
                continue
            if isinstance(change, VersionedCompany):
                companies.append(change.company)
    return companies


def fill(index: SqliteIndex, companies: Sequence[Company]) -> None:
    index.create_generation(GENERATION)
    index.register_candidate(GENERATION.name)
    for start in range(0, len(companies), 2_000):
        index.upsert(
            GENERATION.name,
            [
                EmbeddedCompany(
                    company=company,
                    version=2,
                    text_hash="none",
                    encoder_id=GENERATION.encoder_id,
                    vector=VECTOR,
                    embedded_at=START,
                )
                for company in companies[start : start + 2_000]
            ],
        )


def made(companies: Sequence[Company], count: int, chance: random.Random, *, known: bool = False) -> Iterator[Case]:
    """Yield `count` rows of each kind."""
    for asking, ask in ASKINGS.items():
        rows = 0
        while rows < count:
            company = chance.choice(companies)
            row = ask(company, chance)
            if row is not None:
                rows += 1
                yield Case(asking, row, company.id if known else None)


def named(change: Callable[[str, random.Random], str]) -> Asking:
    """Return a kind of row with a changed name; a company whose changed name is equal or empty is skipped."""

    def ask(company: Company, chance: random.Random) -> ListedCompany | None:
        name = change(company.name, chance)
        return ListedCompany(name=name) if name and name != company.name else None

    return ask


def without_legal_form(name: str, _: random.Random) -> str:
    words = name.split()
    length = len(core_of(name).split())
    return " ".join(words[:length]).rstrip(",.") if core_of(" ".join(words[:length])) == core_of(name) else ""


def other_legal_form(name: str, chance: random.Random) -> str:
    plain = without_legal_form(name, chance)
    return f"{plain} {chance.choice(['Inc', 'Ltd', 'GmbH', 'S.A.', 'Corporation', 'plc'])}" if plain else ""


def plain_letters(name: str, _: random.Random) -> str:
    letters = unicodedata.normalize("NFKD", name)
    return " ".join("".join(letter if letter.isalnum() else " " for letter in letters if letter.isascii()).split())


def mistyped(name: str, chance: random.Random) -> str:
    name = without_legal_form(name, chance) or name
    place = chance.randrange(len(name))
    rest = name[place + 1 :]
    kind = chance.choice(["drop", "double", "change", "swap"])
    if kind == "drop":
        return name[:place] + rest
    if kind == "double":
        return name[: place + 1] + name[place] + rest
    if kind == "change":
        return name[:place] + chance.choice(LETTERS) + rest
    return name[:place] + rest[:1] + name[place] + rest[1:]


def cut_short(name: str, chance: random.Random) -> str:
    words = (without_legal_form(name, chance) or name).split()
    return " ".join(words[:-1]) if len(words) > 2 else ""


def other_order(name: str, chance: random.Random) -> str:
    words = (without_legal_form(name, chance) or name).split()
    return " ".join([words[-1], *words[:-1]]) if len(words) > 1 else ""


def by_alias(company: Company, chance: random.Random) -> ListedCompany | None:
    return ListedCompany(name=chance.choice(company.aliases)) if company.aliases else None


def by_domain(company: Company, chance: random.Random) -> ListedCompany | None:
    forms = ("{}", "www.{}", "https://www.{}/en/about?x=1", "http://{}/", "info@{}")
    return ListedCompany(domain=chance.choice(forms).format(company.domain)) if company.domain else None


def by_domain_and_name(company: Company, chance: random.Random) -> ListedCompany | None:
    plain = without_legal_form(company.name, chance)
    return ListedCompany(name=plain, domain=company.domain) if plain and company.domain else None


def by_name_and_country(company: Company, chance: random.Random) -> ListedCompany | None:
    plain = without_legal_form(company.name, chance)
    return ListedCompany(name=plain, country=company.country) if plain and company.country else None


ASKINGS: dict[str, Asking] = {
    "the name": lambda company, _: ListedCompany(name=company.name),
    "in lower case": named(lambda name, _: name.lower()),
    "in capitals": named(lambda name, _: name.upper()),
    "no legal form": named(without_legal_form),
    "another legal form": named(other_legal_form),
    "no accents, no punctuation": named(plain_letters),
    "one typing error": named(mistyped),
    "the last word missing": named(cut_short),
    "words in another order": named(other_order),
    "no legal form, with country": by_name_and_country,
    "an alias": by_alias,
    "the id": lambda company, _: ListedCompany(name=company.id),
    "the website": by_domain,
    "website and short name": by_domain_and_name,
}


def outcome(case: Case, decision: Match) -> str:
    if decision.company is None:
        return "missed"
    return "right" if decision.company.id == case.right else "wrong"


def print_by_asking(judged: Sequence[tuple[Case, Match]]) -> None:
    print(f"{'asked by':30}  known: right  wrong  shown*  missed   unknown: matched")
    for asking in ASKINGS:
        of_asking = [(case, decision) for case, decision in judged if case.asking == asking]
        known = [pair for pair in of_asking if pair[0].right]
        counts = Counter(outcome(*pair) for pair in known)
        shown = sum(case.right in {each.id for each in decision.candidates[:5]} for case, decision in known)
        false = [decision for case, decision in of_asking if not case.right and decision.company]
        shares = [counts["right"], counts["wrong"], shown, counts["missed"] - shown]
        cells = "  ".join(f"{100 * count / len(known):5.1f}%" for count in shares)
        print(f"{asking:30}        {cells}           {100 * len(false) / (len(of_asking) - len(known)):5.1f}%")
    print("* not chosen, but among the first five candidates\n")


def print_by_kind(judged: Sequence[tuple[Case, Match]]) -> None:
    print(f"{'how':30}  matches  right  precision  confidence in use")
    kinds: dict[tuple[How, bool], list[Case]] = {}
    right: Counter[tuple[How, bool]] = Counter()
    for case, decision in judged:
        if decision.how is not None:
            kind = (decision.how, " " not in core_of(case.row.name) and decision.how in OF_ONE_WORD)
            kinds.setdefault(kind, []).append(case)
            right[kind] += outcome(case, decision) == "right"
    for how, one_word in sorted(kinds, key=lambda kind: (list(How).index(kind[0]), kind[1])):
        count, good = len(kinds[how, one_word]), right[how, one_word]
        confidence = confidence_of(how, "one" if one_word else "two words")
        label = f"{how}, a name of one word" if one_word else how
        print(f"{label:30}  {count:7,}  {good:5,}  {good / count:9.3f}  {confidence:17.2f}")


if __name__ == "__main__":
    main()
