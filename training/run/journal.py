"""The metrics of a run, written step by step (metrics.jsonl), and its speed."""

import json
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

REPORT_EVERY = 10.0  # seconds


class Journal:
    """A JSONL file of measurements; if the path is None, nothing is written.

    A resumed run keeps the lines up to `keep_until`, the step of its checkpoint.
    """

    def __init__(self, path: Path | None, *, keep_until: int) -> None:
        self.path = path
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [line for line in read_journal(path) if line["step"] <= keep_until] if path.exists() else []
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def write(self, line: Mapping[str, float]) -> None:
        """Append one measurement."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(dict(line)) + "\n")


def read_journal(path: Path) -> list[dict[str, float]]:
    """Return the measurements of a run, without an incomplete last line (the run was killed while writing it)."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


class Clock:
    """The speed of a run in `unit` per second, and an estimate of the remaining time."""

    def __init__(self, *, steps: int, done: int, unit: str = "pairs") -> None:
        self.steps = steps
        self.unit = unit
        self.first = self.step = done
        self.units = 0
        self.started = self.reported = perf_counter()

    def count(self, units: int) -> None:
        """Count one step with this many pairs, sentences or texts."""
        self.step += 1
        self.units += units

    @property
    def seconds(self) -> float:
        """Seconds since this process began the run or continued it."""
        return perf_counter() - self.started

    def speed(self) -> dict[str, float]:
        """Return the mean speed so far, including the time of checkpoint selection."""
        return {f"{self.unit}_per_second": self.units / self.seconds, "seconds": self.seconds}

    def due(self) -> bool:
        """Return whether to report now: every REPORT_EVERY seconds, and at the last step."""
        if perf_counter() - self.reported < REPORT_EVERY and self.step < self.steps:
            return False
        self.reported = perf_counter()
        return True

    def __str__(self) -> str:
        left = round(self.seconds / (self.step - self.first) * (self.steps - self.step))
        return f"{self.units / self.seconds:.0f} {self.unit}/s, {left // 60}:{left % 60:02d} left"
