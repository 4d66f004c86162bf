"""Companies that come, change and go, with bad messages among them; and what must be left of them at the end."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from similarity.index.protocol import CompanyIndex
from similarity.ingest.dead_letters import DeadLetter
from similarity.kafka import KafkaSettings, KeyedProducer
from tests.end_to_end.streaming import Story, send

# A change comes so many messages after what it changes, that is seconds later: versions are times of messages here.
LATER = 200
LONG_AGO = "2001-01-01T00:00:00Z"


@dataclass
class Expected:
    """What the messages so far leave behind. `companies`: the description by id, None for one that is deleted."""

    sent: int = 0
    companies: dict[str, str | None] = field(default_factory=dict)
    poison: set[str] = field(default_factory=set)

    def problems(self, story: Story, index: CompanyIndex) -> list[str]:
        """Everything that is not as it must be."""
        found = [f"{self.sent - done} of {self.sent} unsettled" for done in [story.committed()] if done != self.sent]
        stored = index.get(index.live().name, list(self.companies))
        for company, description in self.companies.items():
            document = stored.get(company)
            if (document.company.description if document else None) != description:
                found.append(f"{company} is {document}, not {description}")
        dead = {_key(letter) for letter in story.dead_letters()}
        return [*found, *(f"{what} {key}" for what, keys in self._compared(dead) for key in sorted(keys))]

    def _compared(self, dead: set[str]) -> list[tuple[str, set[str]]]:
        return [("no dead letter of", self.poison - dead), ("a dead letter of", dead - self.poison)]


def messages(expected: Expected) -> Iterator[Mapping[str, Any]]:
    """Without end: of 20 messages 13 are new companies, 3 change one, 1 is late for one, 2 delete one, 1 is poison."""
    for number in count():
        kind, new = number % 20, f"c{number}"
        # Of kinds 0 to 5: each company is changed once or deleted once, and what comes late is for a deleted one.
        earlier, deleted = f"c{number - LATER - 13}", f"c{number - 2 * LATER - 12}"
        expected.sent += 1
        if kind == 19:
            expected.poison.add(new)
            yield {"id": new, "name": "", "description": "Boats of no one."}
        elif kind < 13 or number < 3 * LATER:
            expected.companies[new] = f"{new} makes boats and cars."
            yield {"id": new, "name": new.upper(), "description": expected.companies[new]}
        elif kind < 16:
            expected.companies[earlier] = f"{earlier} makes anvils now, says message {number}."
            yield {"id": earlier, "name": earlier.upper(), "description": expected.companies[earlier]}
        elif kind == 16:
            yield {"id": deleted, "name": "Late", "description": "Late news.", "event_time": LONG_AGO}
        else:
            expected.companies[earlier] = None
            yield {"id": earlier, "description": None}


class Sender:
    """Sends messages at a steady pace until the end of the block, whatever happens to Kafka meanwhile."""

    def __init__(self, settings: KafkaSettings, topic: str, *, per_second: float) -> None:
        self.expected = Expected()
        self._settings, self._topic, self._pause = settings, topic, 1 / per_second
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Sender":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Sends no more; what was sent is on its topic when this returns."""
        self._stop.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        began = time.monotonic()
        try:
            with KeyedProducer(self._settings) as producer:
                for record in messages(self.expected):
                    send(producer, self._topic, record)
                    ahead = began + self.expected.sent * self._pause - time.monotonic()
                    if self._stop.wait(max(0.0, ahead)):
                        return
        except Exception as error:
            self._error = error


def _key(letter: DeadLetter) -> str:
    return (letter.message.key or b"").decode()
