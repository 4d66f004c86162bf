"""What the writers of a fault schedule send: it follows from the seed, the writer and the batch's number only.

All writers write to the same few companies, in versions that overlap: so documents race, come late,
come twice, and now and then two of them claim one version with different words.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from zlib import crc32

from similarity.company import DeletedCompany, EmbeddedCompany
from tests.factories import EMBEDDED_AT, make_embedded, unit_vector
from tests.faults.fault_proxy import POISON

Document = EmbeddedCompany | DeletedCompany

COMPANIES = 80
BATCH_SIZES = (1, 5, 30, 120)
COUNTRIES = ("FR", "DE", "JP", "BR")
VERSIONS_BACK, VERSIONS_AHEAD = 25, 15
BATCHES_BACK = 8
BEFORE_NANOSECONDS = datetime(1969, 12, 31, tzinfo=UTC)


class Poison(StrEnum):
    """Why a document can never be stored."""

    NONE = ""
    OURS = "a vector that our own check refuses"
    SERVER = "a time that the server refuses, the document alone"
    WAY = "words that make something on the way refuse the whole request"


@dataclass(frozen=True, slots=True)
class Input:
    """One distinct thing to write. Two of the same id and version differ by `variant`: words that contradict."""

    id: str
    version: int
    variant: int = 0
    poison: Poison = Poison.NONE

    @property
    def deletes(self) -> bool:
        return self.version % 2 == 1

    def __str__(self) -> str:
        kind = "delete" if self.deletes else "write"
        return f"{kind} {self.id} v{self.version}" + (f" variant {self.variant}" if self.variant else "")


@lru_cache(maxsize=20_000)
def document(given: Input) -> Document:
    """The document of an input, always the same."""
    if given.deletes:
        return DeletedCompany(id=given.id, version=given.version)
    mark = crc32(f"{given.id} {given.version} {given.variant}".encode())
    words = f"Version {given.version} of {given.id}, variant {given.variant}."
    vector = unit_vector(mark)
    return make_embedded(
        given.id,
        version=given.version,
        name=f"{COUNTRIES[mark % 4]} Works {mark % 7}",
        description=f"{words} {POISON}" if given.poison is Poison.WAY else words,
        country=COUNTRIES[mark % 4],
        vector=vector * 2 if given.poison is Poison.OURS else vector,
        embedded_at=BEFORE_NANOSECONDS if given.poison is Poison.SERVER else EMBEDDED_AT,
    )


def batch(seed: int, writer: int, number: int) -> list[Input]:
    """The inputs of one batch, some of them replayed from batches that any writer sent earlier."""
    choice = random.Random(f"{seed} {writer} {number} replays")
    inputs = list(_new_inputs(seed, writer, number))
    if choice.random() < 0.3:
        earlier = _new_inputs(seed, choice.randint(0, 3), max(0, number - choice.randint(0, BATCHES_BACK)))
        inputs += choice.sample(earlier, k=choice.randint(1, len(earlier)))
    return inputs


@lru_cache(maxsize=1_000)
def _new_inputs(seed: int, writer: int, number: int) -> tuple[Input, ...]:
    choice = random.Random(f"{seed} {writer} {number}")
    return tuple(_input(choice, writer, number) for _ in range(choice.choice(BATCH_SIZES)))


def _input(choice: random.Random, writer: int, number: int) -> Input:
    """One input; about one in eight is a delete, one in thirty contradicts, one in 200 is poison."""
    time = max(1, 8 * number + choice.randint(-VERSIONS_BACK, VERSIONS_AHEAD))
    company_id = f"c{choice.randrange(COMPANIES)}"
    if choice.random() < 1 / 8:
        return Input(company_id, 2 * time + 1)
    if choice.random() < 1 / 200:
        # Under ids of their own, so that no other input has their version.
        return Input(f"p{writer}-{number}-{choice.randrange(1000)}", 2 * time, poison=choice.choice(list(Poison)[1:]))
    variant = writer + 1 if choice.random() < 1 / 30 else 0
    return Input(company_id, 2 * time, variant)
