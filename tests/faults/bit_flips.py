"""Flips bits at random places of a real index file and asks it questions.

Every answer must be the one of the undamaged file, or IndexUnavailable. What damage hides from an
index of the file (an id, a name, a value of a filter, a word) may be missing from those answers that
look it up, and must then be found by `SqliteIndex.damage`, which `similarity check` prints.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import IndexUnavailable
from similarity.index.filters import FieldFilter
from similarity.index.protocol import SimilarCompanies
from similarity.index.sqlite import SqliteIndex
from similarity.model.calibration import Calibration
from tests.contract.steps import add_live
from tests.factories import make_embedded, unit_vector

COMPANIES = 120
MOST_FLIPS = 40
LIVE = "second"
QUERY = unit_vector(1)

Question: TypeAlias = Callable[[SqliteIndex], object]


def _hits(found: SimilarCompanies) -> list[tuple[object, ...]]:
    return [(hit.company, hit.score, hit.version, hit.embedded_at, hit.language) for hit in found.hits]


def _seen(document: EmbeddedCompany | DeletedCompany) -> object:
    if isinstance(document, EmbeddedCompany):
        return document.company, document.version, document.text_hash, document.vector.tobytes(), document.embedded_at
    return document


def _filtered(held: FieldFilter) -> Question:
    return lambda index: _hits(index.similar(LIVE, QUERY, k=10, filters=[held]))


CERTAIN: Mapping[str, Question] = {
    "live": SqliteIndex.live,
    "generations": SqliteIndex.generations,
    "companies": lambda index: index.stats(LIVE).companies,
    "similar": lambda index: _hits(index.similar(LIVE, QUERY, k=20)),
    "similar to all": lambda index: _hits(index.similar(LIVE, QUERY, k=2 * COMPANIES)),
}
LOOKED_UP: Mapping[str, Question] = {
    "get": lambda index: {
        key: _seen(found) for key, found in index.get(LIVE, [f"c{number}" for number in range(COMPANIES)]).items()
    },
    "scan": lambda index: [_seen(document) for page in index.scan(LIVE) for document in page],
    "versions": lambda index: [version for page in index.versions(LIVE) for version in page],
    "country": _filtered(FieldFilter(field="country", any_of=("fr",))),
    "other tags": _filtered(FieldFilter(field="tags", none_of=("steel",))),
    "size": _filtered(FieldFilter(field="attributes.size", at_least=20, at_most=80)),
    "stats": lambda index: index.stats(LIVE),
    "resolve": lambda index: index.resolve_many(LIVE, ["c5", "name 7", "site-9.com"]),
    "find": lambda index: index.find(LIVE, "name 1", limit=50),
}

QUESTIONS: Mapping[str, Question] = {**CERTAIN, **LOOKED_UP}


@dataclass
class Campaign:
    """What a campaign did and found; `problems` must stay empty."""

    trials: int = 0
    noticed: int = 0
    harmless: int = 0
    found_by_check: int = 0
    hidden_from: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def run_campaign(folder: Path, *, runs: int, seed: int) -> Campaign:
    """Damages copies of one index file in `folder`, `runs` times."""
    original = make_file(folder / "original.db").read_bytes()
    path = folder / "damaged.db"
    path.write_bytes(original)
    with closing(SqliteIndex(path)) as index:
        expected = {name: ask(index) for name, ask in QUESTIONS.items()}
    campaign = Campaign()
    choice = random.Random(seed)
    for run in range(runs):
        flips = choice.choice((1, 1, 3, MOST_FLIPS))
        places = [choice.randrange(8 * len(original)) for _ in range(flips)]
        for log in folder.glob("damaged.db-*"):
            log.unlink()
        path.write_bytes(flipped(original, places))
        trial(path, expected, campaign, name=f"run {run} of seed {seed} (bits {places})")
    return campaign


def make_file(path: Path) -> Path:
    """A closed index file with two generations, calibrations, replaced and deleted companies."""
    with closing(SqliteIndex(path)) as index:
        for number, name in enumerate(("first", LIVE)):
            calibration = Calibration(slope=9.5 + number, intercept=-4.25)
            add_live(index, name, calibration=calibration)
            index.upsert(name, [_company(number, version=2) for number in range(COMPANIES)])
            index.upsert(name, [_company(number, version=4) for number in range(0, COMPANIES, 7)])
            index.upsert(name, [DeletedCompany(id=f"c{number}", version=5) for number in range(0, COMPANIES, 10)])
    return path


def flipped(content: bytes, bits: list[int]) -> bytes:
    """The content with these bits changed."""
    changed = bytearray(content)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def trial(path: Path, expected: Mapping[str, object], campaign: Campaign, *, name: str) -> None:
    """Asks a damaged file every question and adds to the campaign what became of it."""
    campaign.trials += 1
    different: list[str] = []
    noticed = False
    try:
        with closing(SqliteIndex(path)) as index:
            for question, ask in QUESTIONS.items():
                try:
                    if ask(index) != expected[question]:
                        different.append(question)
                except IndexUnavailable:
                    noticed = True
            found = _found(index)
    except IndexUnavailable:
        noticed = found = True
    except Exception as error:
        campaign.problems.append(f"{name}: {error!r}")
        return
    campaign.noticed += noticed
    campaign.found_by_check += found
    campaign.harmless += not noticed and not different
    campaign.hidden_from.update(different)
    if wrong := [question for question in different if question in CERTAIN]:
        campaign.problems.append(f"{name}: other answers to {wrong}")
    if (noticed or different) and not found:
        campaign.problems.append(f"{name}: the check finds nothing; other answers to {different}")


def _found(index: SqliteIndex) -> bool:
    try:
        return bool(index.damage())
    except IndexUnavailable:
        return True


def _company(number: int, *, version: int) -> EmbeddedCompany:
    return make_embedded(
        f"c{number}",
        version=version,
        name=f"Name {number}",
        domain=f"site-{number}.com",
        country=("FR", "DE", "JP")[number % 3],
        tags=("steel", "bolts") if number % 2 else ("größe",),
        attributes={"size": number, "listed": number % 2 == 0},
    )
