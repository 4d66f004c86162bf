"""What a schedule sends, drawn from its seed: versions that race, late ones, deletes, duplicates, poison. Pure."""

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

COMPANIES = 200
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
THINGS = ("anvils", "boats", "cars")
DUPLICATE_CHANCE, POISON_CHANCE, DELETE_CHANCE = 0.15, 0.01, 0.12
# Without event time the version is the time of the message: such a company outruns its other versions, so few have one.
NO_TIME_CHANCE = 0.02
# At least this far from the message that it overtakes.
AHEAD = timedelta(days=365 * 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message and what it must become: a version of a company, or a dead letter.

    `version` is None where the time of the message decides; `description` is None for a delete.
    """

    key: bytes
    value: bytes | None
    company: str
    poison: str = ""
    version: int | None = None
    description: str | None = None

    def version_at(self, microseconds: int) -> int:
        """The version, where the message was written to its topic at this time."""
        return 2 * microseconds + (self.description is None) if self.version is None else self.version


class Story:
    """An endless row of messages about the companies c0, c1, ..."""

    def __init__(self, seed: int) -> None:
        self._choice = random.Random(seed)
        self._count = 0
        self._originals: list[Sent] = []
        self._timeless: set[str] = set()
        self._moments: set[tuple[str, int]] = set()

    def next(self, count: int) -> list[Sent]:
        """So many more."""
        return [self._one() for _ in range(count)]

    def _one(self) -> Sent:
        self._count += 1
        if self._originals and self._choice.random() < DUPLICATE_CHANCE:
            return self._choice.choice(self._originals)
        new = self._new()
        # Sent again without a time, it would be another version.
        if new.poison or new.version is not None:
            self._originals.append(new)
        return new

    def _new(self) -> Sent:
        chance = self._choice.random()
        if chance < POISON_CHANCE:
            return self._poison()
        if chance < POISON_CHANCE + NO_TIME_CHANCE:
            return self._undated()
        return self._dated()

    def _dated(self) -> Sent:
        """With an event time of its own; times grow with the row, and many come late."""
        company = self._company()
        while True:
            micros = 1_000 * self._count - self._choice.randrange(2_000_000) * (self._choice.random() < 0.4)
            if (company, micros) not in self._moments:
                break
        self._moments.add((company, micros))
        time = FIRST + timedelta(microseconds=micros)
        deleted = self._choice.random() < DELETE_CHANCE
        record: dict[str, object] = {"id": company, "event_time": time.isoformat()}
        record |= {"deleted": True} if deleted else self._words(company, micros)
        version = 2 * ((time - EPOCH) // timedelta(microseconds=1)) + deleted
        description = None if deleted else str(record["description"])
        return _sent(company, record, version=version, description=description)

    def _undated(self) -> Sent:
        """A null deletes at once; a company without a time is of the time of its message, once for each company."""
        company = self._company()
        if company in self._timeless:
            return Sent(key=company.encode(), value=None, company=company)
        self._timeless.add(company)
        record = {"id": company, **self._words(company, self._count)}
        return _sent(company, record, version=None, description=str(record["description"]))

    def _poison(self) -> Sent:
        company = self._company()
        good = {"id": company, **self._words(company, self._count)}
        serial = str(self._count)
        values: dict[str, bytes | None] = {
            "not JSON": b'{"id": "' + company.encode() + b'", ' + serial.encode(),
            "not UTF-8": b'{"id": "\xff", "name": "' + serial.encode() + b'"}',
            "no name": json.dumps(good | {"name": ""}).encode(),
            "of another key": json.dumps(good | {"id": f"{company}-{serial}"}).encode(),
            "from the future": json.dumps(good | {"event_time": (FIRST + AHEAD).isoformat()}).encode(),
            "a delete of nobody": None,
        }
        kind = self._choice.choice(sorted(values))
        key = b"" if values[kind] is None else company.encode()
        return Sent(key=key, value=values[kind], company=company, poison=kind)

    def _company(self) -> str:
        return f"c{self._choice.randrange(COMPANIES)}"

    def _words(self, company: str, number: int) -> dict[str, object]:
        things = " ".join(self._choice.choices(THINGS, k=3))
        return {"name": f"Company {company}", "description": f"Makes {things} of kind {number}."}


def _sent(company: str, record: dict[str, object], *, version: int | None, description: str | None) -> Sent:
    value = json.dumps(record).encode()
    return Sent(key=company.encode(), value=value, company=company, version=version, description=description)
