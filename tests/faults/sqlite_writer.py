"""A process that writes to an embedded index until it is killed, and says what was acknowledged.

    python -m tests.faults.sqlite_writer FILE SEED FIRST_BATCH

It prints `opening` before it touches the file, and `done N` after batch N was acknowledged. What is
in batch N depends on the seed and N only, so whoever reads the lines knows what must be in the file.
"""

import random
import sys

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.protocol import CompanyIndex, GenerationState
from similarity.index.sqlite import SqliteIndex
from tests.factories import make_embedded, make_generation, unit_vector

GENERATION = "first"
COMPANIES = 300
COUNTRIES = ("FR", "DE", "JP", "BR")


def batch(seed: int, number: int) -> list[EmbeddedCompany | DeletedCompany]:
    """The documents of one batch: 1-200 distinct companies, one in eight deleted, all newer than any before."""
    choice = random.Random(f"{seed}-{number}")
    ids = choice.sample(range(COMPANIES), choice.randint(1, 200))
    return [_document(f"c{company}", number, choice) for company in ids]


def _document(company_id: str, number: int, choice: random.Random) -> EmbeddedCompany | DeletedCompany:
    if choice.random() < 1 / 8:
        return DeletedCompany(id=company_id, version=2 * number + 1)
    # Few names, so that many writes leave the words as they are.
    name = f"{choice.choice(COUNTRIES)} Works {choice.randint(0, 3)}"
    return make_embedded(
        company_id,
        version=2 * number,
        name=name,
        description=f"{name} makes parts.",
        country=choice.choice(COUNTRIES),
        tags=(f"t{choice.randint(0, 2)}",),
        vector=unit_vector(choice.randint(0, 10_000)),
    )


def prepare(index: CompanyIndex) -> None:
    """Makes the generation live, from wherever an earlier process was killed."""
    if not index.generations():
        index.create_generation(make_generation(GENERATION))
    if index.generations()[0].state is GenerationState.BUILDING:
        index.register_candidate(GENERATION)
    if index.generations()[0].state is GenerationState.CANDIDATE:
        index.promote(GENERATION)


def main(path: str, seed: int, number: int) -> None:
    print("opening", flush=True)
    index = SqliteIndex(path)
    prepare(index)
    while True:
        index.upsert(GENERATION, batch(seed, number))
        print("done", number, flush=True)
        number += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
