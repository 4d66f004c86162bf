"""What was tried and what came of it: journals that survive a SIGKILL, and the history they make together.

A journal has a line before each attempt and one after it. Times are of the machine's monotonic clock,
which all its processes share, so "before" and "after" hold between them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from similarity.index.protocol import WriteOutcome
from tests.faults.elasticsearch_inputs import Input, batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call of `upsert`. Without `end` nobody heard how it ended; with `error` the whole call failed."""

    by: str
    generation: str
    inputs: tuple[Input, ...]
    start: float
    end: float | None = None
    outcomes: tuple[WriteOutcome, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One call of `get`: the version seen of each id asked for, 0 where there was no company."""

    generation: str
    start: float
    end: float
    seen: dict[str, int]


@dataclass
class History:
    """All that happened in one schedule; `errors` are of calls other than `upsert`, by kind."""

    attempts: list[Attempt] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)
    """What no fault excuses: errors that are not this library's, results that do not fit what was sent."""

    def add(self, other: "History") -> None:
        self.attempts += other.attempts
        self.readings += other.readings
        self.errors += other.errors
        self.bugs += other.bugs


class Journal:
    """Writes the lines of one writer; a line that was written is there after a SIGKILL of the process."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        # The process before may have been killed in the middle of a line.
        self._file.write("\n")

    def write(self, event: str, **values: Any) -> None:
        self._file.write(json.dumps({"event": event, **values}) + "\n")
        self._file.flush()


def next_batch(path: Path) -> int:
    """The number of the first batch that was not done with."""
    return max((line["number"] + 1 for line in _lines(path) if line["event"] == "next"), default=0)


def read_journal(path: Path, *, seed: int, writer: int) -> History:
    """The history that a journal tells."""
    history = History()
    under_way: Attempt | None = None
    for line in _lines(path):
        event = line["event"]
        if event == "send":
            if under_way:
                history.attempts.append(under_way)
            inputs = tuple(batch(seed, writer, line["number"]))
            under_way = Attempt(
                by=f"writer {writer}", generation=line["generation"], inputs=inputs, start=line["start"]
            )
        elif event in {"answer", "failure"}:
            assert under_way, "the journal tells an end without a beginning"
            history.attempts.append(ended(under_way, line))
            under_way = None
        elif event == "read":
            del line["event"]
            history.readings.append(Reading(**line))
        elif event in {"error", "bug"}:
            (history.errors if event == "error" else history.bugs).append(f"writer {writer}: {line['text']}")
    if under_way:
        history.attempts.append(under_way)
    return history


def ended(attempt: Attempt, line: dict[str, Any]) -> Attempt:
    """The attempt with how it ended."""
    return Attempt(
        by=attempt.by,
        generation=attempt.generation,
        inputs=attempt.inputs,
        start=attempt.start,
        end=line["end"],
        outcomes=tuple(map(WriteOutcome, line.get("outcomes", ()))),
        error=line.get("error", ""),
    )


def misfit(inputs: Sequence[Input], results: Iterable[tuple[str, WriteOutcome]]) -> str:
    """How the results do not belong to the inputs: there must be one per document, in order."""
    ids = [company_id for company_id, _ in results]
    if ids == [given.id for given in inputs]:
        return ""
    return f"{len(inputs)} documents got {len(ids)} results, or in another order"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # cut off by a SIGKILL, so what it says was never said
        if isinstance(line, dict):
            yield line
