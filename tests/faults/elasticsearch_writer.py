"""A writer process of a fault schedule: it writes until it is told to stop, or killed, and keeps a journal.

It does what a pipeline does: asks which generations to write to, writes each batch to all of them,
and goes on with the next batch whatever became of this one. Now and then it reads what it wrote.
"""

import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from similarity.errors import IndexUnavailable, SimilarityError, UnknownGeneration
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.protocol import WriteResult
from tests.factories import unit_vector
from tests.faults.elasticsearch_history import Journal, misfit, next_batch
from tests.faults.elasticsearch_inputs import COMPANIES, Input, batch, document

PAUSE_SECONDS = 0.05

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a writer is to do. `folder` holds its journal, and a file `stop` when it is time to stop."""

    seed: int
    writer: int
    settings: ElasticSettings
    folder: Path

    @property
    def journal(self) -> Path:
        return self.folder / f"writer-{self.writer}.jsonl"

    @property
    def stop(self) -> Path:
        return self.folder / "stop"


def write(orders: Orders) -> None:
    """Goes on after the last batch that the journal says is done with."""
    number = next_batch(orders.journal)
    choice = random.Random(f"{orders.seed} {orders.writer} {number} reading")
    with orders.journal.open("a", encoding="utf-8") as file, closing(ElasticIndex(orders.settings)) as index:
        journal = Journal(file)
        while not orders.stop.exists() and _wanted():
            targets = _call(journal, lambda: [each.name for each in index.write_targets()])
            if not targets:
                time.sleep(PAUSE_SECONDS)
                continue
            inputs = batch(orders.seed, orders.writer, number)
            for generation in targets:
                _send(journal, index, generation, number, inputs)
                if choice.random() < 0.3:
                    _read(journal, index, generation, [f"c{choice.randrange(COMPANIES)}" for _ in range(6)])
            journal.write("next", number=number)
            number += 1


def _wanted() -> bool:
    """Whether the campaign is still there: one that is killed tells nobody to stop."""
    parent = multiprocessing.parent_process()
    return parent is None or parent.is_alive()


def _send(journal: Journal, index: ElasticIndex, generation: str, number: int, inputs: Sequence[Input]) -> None:
    journal.write("send", generation=generation, number=number, start=time.monotonic())
    try:
        results = index.upsert(generation, [document(given) for given in inputs])
    except SimilarityError as error:
        journal.write("failure", end=time.monotonic(), error=described(error))
        if not isinstance(error, IndexUnavailable | UnknownGeneration):
            journal.write("bug", text=f"upsert: {described(error)}")
        time.sleep(PAUSE_SECONDS)
    except Exception as error:
        journal.write("failure", end=time.monotonic(), error=described(error))
        journal.write("bug", text=f"upsert: {described(error)}")
        raise
    else:
        outcomes = [result.outcome.value for result in results]
        journal.write("answer", end=time.monotonic(), outcomes=outcomes, reasons=_reasons(results))
        if problem := misfit(inputs, ((result.id, result.outcome) for result in results)):
            journal.write("bug", text=problem)


def _read(journal: Journal, index: ElasticIndex, generation: str, ids: Sequence[str]) -> None:
    start = time.monotonic()
    found = _call(journal, lambda: index.get(generation, ids))
    if found is not None:
        seen = {company_id: found[company_id].version if company_id in found else 0 for company_id in ids}
        journal.write("read", generation=generation, start=start, end=time.monotonic(), seen=seen)
    _call(journal, lambda: index.similar(generation, unit_vector(1), k=5))


def _call(journal: Journal, question: Callable[[], Answer]) -> Answer | None:
    """The answer; None where the cluster gave none, or the generation is gone."""
    try:
        return question()
    except (IndexUnavailable, UnknownGeneration) as error:
        journal.write("error", text=described(error))
    except Exception as error:
        journal.write("bug", text=described(error))
        raise
    return None


def described(error: Exception) -> str:
    """The kind of an error and what it says."""
    return f"{type(error).__name__}: {error}"


def _reasons(results: Sequence[WriteResult]) -> list[str]:
    """Why documents were rejected or failed, each reason once."""
    return sorted({f"{result.outcome}: {result.reason:.200}" for result in results if result.reason})
