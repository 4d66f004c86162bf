"""What the pipeline promises, shown on whole inputs: replays, late versions, deletes, poison, a store that fails."""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import permutations
from math import log2
from pathlib import Path
from typing import Any, TypeAlias, cast

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from numpy.typing import NDArray

from pipelines.metrics import NAMESPACE
from pipelines.transforms import Ingest, StoredMessage
from pipelines.worker_settings import WorkerResources, WorkerSettings
from similarity.bundle import ModelBundle, seed_folder
from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import IndexUnavailable
from similarity.generations.new import ensure_generation
from similarity.index.bundle_store import keep_bundle
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest import delivery
from similarity.ingest.dead_letters import DeadLetter
from similarity.ingest.messages import Message
from similarity.model.encoder_protocol import Encoder
from similarity.text import TextSettings

pytestmark = pytest.mark.pipelines

T0 = datetime(2026, 1, 1, tzinfo=UTC)
THINGS = ("anvils", "boats", "cars")
POISON = "poison"


def change(company: str, minute: int, description: str | None = "Makes boats.") -> dict[str, Any]:
    """A record of this minute; without a description, a delete."""
    time = (T0 + timedelta(minutes=minute)).isoformat()
    if description is None:
        return {"id": company, "event_time": time, "deleted": True}
    return {"id": company, "name": f"Firm {company}", "event_time": time, "description": description}


def messages(records: Iterable[Mapping[str, Any] | bytes]) -> list[Message]:
    """As a source gives them, each with a position of its own."""
    values = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    return [Message(position=f"test#{number}", value=value, time=T0) for number, value in enumerate(values)]


@dataclass
class Ran:
    """What became of messages, by position, and what was counted."""

    taken: dict[str, WriteOutcome] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def ends(self) -> int:
        """By the counters."""
        return sum(count for name, count in self.counters.items() if name.startswith("messages_"))


# FnApiRunner works in this process: what its workers note, the test sees.
NOTED: list[Any] = []


def run(worker_settings: WorkerSettings, source: beam.PTransform, **options: Any) -> Ran:
    """Runs Ingest on the in-process runner."""
    NOTED.clear()
    ran = Ran()
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        ingested = pipeline | source | Ingest(worker_settings, **options)
        _ = (ingested.stored, ingested.dead) | beam.Flatten() | beam.Map(_note)
    for end in NOTED:
        if isinstance(end, StoredMessage):
            assert end.position not in ran.taken
            ran.taken[end.position] = end.outcome
        elif isinstance(end, DeadLetter):
            ran.dead.append(end.message.position)
    found = pipeline.result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    ran.counters = {counter.key.metric.name: counter.committed for counter in found}
    return ran


def in_order(records: Iterable[Mapping[str, Any] | bytes]) -> beam.PTransform:
    """Messages that arrive in this order."""
    return beam.Create(messages(records), reshuffle=False)


def documents(index: SqliteIndex) -> dict[str, EmbeddedCompany | DeletedCompany]:
    """All that is stored, deletes too."""
    [target] = index.write_targets()
    return {document.id: document for page in index.scan(target.name) for document in page}


def held(index: SqliteIndex) -> dict[str, tuple[int, str | None]]:
    """The version and the description of each company, None where it is deleted."""
    return {
        company: (each.version, each.company.description if isinstance(each, EmbeddedCompany) else None)
        for company, each in documents(index).items()
    }


def version(minute: int, *, deleted: bool = False) -> int:
    seconds = round((T0 - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) + 60 * minute
    return 2_000_000 * seconds + deleted


def history(choice: random.Random, company: str) -> list[dict[str, Any]]:
    """Some versions of a company, deletes among them, in the order of their time."""
    return [
        change(
            company, minute, None if choice.random() < 0.2 else f"Makes {' and '.join(choice.choices(THINGS, k=3))}."
        )
        for minute in range(choice.randint(1, 6))
    ]


@pytest.fixture
def shipped(tmp_path: Path) -> Iterator[Callable[[str], tuple[SqliteIndex, WorkerSettings]]]:
    """Makes empty indexes of the shipped bundle: int8, so that a text's vector moves with its batch-mates."""
    opened = []

    def make(name: str) -> tuple[SqliteIndex, WorkerSettings]:
        path = tmp_path / f"{name}.db"
        index = SqliteIndex(path)
        opened.append(index)
        bundle = ModelBundle.load(seed_folder())
        keep_bundle(bundle, tmp_path / f"{name}.db.bundles")
        ensure_generation(index, bundle, now=T0)
        return index, WorkerSettings(index=str(path), threads=1)

    yield make
    for index in opened:
        index.close()


def test_the_whole_input_three_times_shuffled_with_duplicates_gives_what_one_run_gives(
    shipped: Callable[[str], tuple[SqliteIndex, WorkerSettings]],
) -> None:
    choice = random.Random(1)
    histories = [history(choice, f"c{number}") for number in range(40)]
    records = [record for each in histories for record in each]
    straight, worker_settings = shipped("straight")
    assert run(worker_settings, in_order(records)).taken.keys() == {f"test#{n}" for n in range(len(records))}
    replays = []
    for _ in range(3):
        replay = [*records, *choice.choices(records, k=3 * len(records) // 10)]
        choice.shuffle(replay)
        replays += replay
    replayed, worker_settings = shipped("replayed")
    ran = run(worker_settings, in_order(replays), batch_messages=17)
    assert (len(ran.taken), ran.ends, ran.dead) == (len(replays), len(replays), [])
    expected, found = documents(straight), documents(replayed)
    assert {company: each.version for company, each in found.items()} == {
        company: each.version for company, each in expected.items()
    }
    for company, document in expected.items():
        again = found[company]
        assert type(again) is type(document)
        if isinstance(document, EmbeddedCompany) and isinstance(again, EmbeddedCompany):
            assert (again.company, again.text_hash) == (document.company, document.text_hash)
            assert float(again.vector @ document.vector) > 0.999


@pytest.mark.parametrize("batch", [1, 4, 512])
def test_a_late_version_changes_nothing_in_whatever_order_they_come(
    batch: int, index: SqliteIndex, worker_settings: WorkerSettings
) -> None:
    orders = list(permutations([(1, "Makes anvils."), (2, "Makes boats."), (3, "Makes anvils.")]))
    arrivals = [
        change(f"c{number}", *order[turn]) for turn in range(3) for number, order in enumerate(orders)
    ]  # the orders run beside each other, so that a batch holds parts of several
    run(worker_settings, in_order(arrivals), batch_messages=batch)
    assert held(index) == {f"c{number}": (version(3), "Makes anvils.") for number in range(len(orders))}
    [vector] = {
        tuple(np.round(each.vector, 5)) for each in documents(index).values() if isinstance(each, EmbeddedCompany)
    }
    run(worker_settings, in_order([change("other", 1, "Makes anvils.")]))
    other = documents(index)["other"]
    assert isinstance(other, EmbeddedCompany)
    assert tuple(np.round(other.vector, 5)) == vector


@pytest.mark.parametrize("batch", [1, 4, 512])
def test_what_was_deleted_stays_deleted_whatever_older_backfill_comes(
    batch: int, index: SqliteIndex, worker_settings: WorkerSettings
) -> None:
    orders = list(permutations([(1, "Makes anvils."), (3, None), (2, "Makes boats.")]))
    arrivals = [change(f"c{number}", *order[turn]) for turn in range(3) for number, order in enumerate(orders)]
    run(worker_settings, in_order(arrivals), batch_messages=batch)
    assert held(index) == {f"c{number}": (version(3, deleted=True), None) for number in range(len(orders))}
    assert index.stats(index.live().name).companies == 0


def test_random_histories_in_random_order_end_at_their_highest_version(
    index: SqliteIndex, worker_settings: WorkerSettings
) -> None:
    choice = random.Random(2)
    histories = {f"c{number}": history(choice, f"c{number}") for number in range(400)}
    arrivals = [record for each in histories.values() for record in choice.choices(each, k=3) + each]
    choice.shuffle(arrivals)
    ran = run(worker_settings, in_order(arrivals), batch_messages=64)
    assert ran.ends == len(arrivals)
    last = {company: (len(each) - 1, each[-1].get("description")) for company, each in histories.items()}
    assert held(index) == {
        company: (version(minute, deleted=description is None), description)
        for company, (minute, description) in last.items()
    }


class Touchy:
    """An encoder that fails on any batch with the poison in it, and counts its calls."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.calls = 0

    @property
    def encoder_id(self) -> str:
        return self._encoder.encoder_id

    @property
    def text_settings(self) -> TextSettings:
        return self._encoder.text_settings

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        if any(POISON in text for text in texts):
            raise RuntimeError("cannot read this")
        return self._encoder.encode(texts)


Documents: TypeAlias = Sequence[EmbeddedCompany | DeletedCompany]


class Rigged:
    """The index of a worker_settings, whose writes another function does; everything else is the real one's."""

    def __init__(
        self, place: WorkerResources, upsert: Callable[[CompanyIndex, str, Documents], list[WriteResult]]
    ) -> None:
        self._place = place  # which closes its index when it is forgotten
        self._upsert = upsert

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place.index, name)

    def upsert(self, generation: str, given: Documents) -> list[WriteResult]:
        return self._upsert(self._place.index, generation, given)


def rigged(
    place: WorkerResources, upsert: Callable[[CompanyIndex, str, Documents], list[WriteResult]]
) -> WorkerResources:
    return WorkerResources(cast(CompanyIndex, Rigged(place, upsert)), place.store, place.encoders, place.encoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(WorkerSettings):
    """With touchy encoders, which are noted. Nothing is stored: 10,000 documents would take most of the time."""

    def open(self) -> WorkerResources:
        def says_applied(index: CompanyIndex, generation: str, given: Documents) -> list[WriteResult]:
            return [WriteResult(id=each.id, outcome=WriteOutcome.APPLIED) for each in given]

        place = rigged(WorkerSettings.open(self), says_applied)
        encoders = {encoder.encoder_id: Touchy(encoder) for encoder in place.encoders.values()}
        NOTED.extend(encoders.values())
        place.encoders = encoders
        return place


@pytest.mark.parametrize("where", [0, 7_777])
def test_one_poison_in_ten_thousand_costs_one_dead_letter_and_few_calls_of_the_encoder(
    where: int, index: SqliteIndex, worker_settings: WorkerSettings
) -> None:
    del index
    texts = (f"Makes part {n} of {POISON if n == where else 'boats'}." for n in range(10_000))
    place = Counted(index=worker_settings.index, threads=1)
    ran = run(place, in_order(change(f"c{n}", 1, text) for n, text in enumerate(texts)), batch_messages=512)
    assert (len(ran.taken), ran.dead, ran.ends) == (9_999, [f"test#{where}"], 10_000)
    [encoder] = [each for each in NOTED if isinstance(each, Touchy)]
    batches = -(-10_000 // 512)
    # Two calls for each halving, and one to see that a harmless text is read.
    assert batches < encoder.calls <= batches + 2 * log2(512) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FailsAFifth(WorkerSettings):
    """Its store refuses every fifth document of a bulk, by chance."""

    def open(self) -> WorkerResources:
        choice = random.Random(3)

        def takes_most(index: CompanyIndex, generation: str, given: Documents) -> list[WriteResult]:
            refused = [choice.random() < 0.2 for _ in given]
            NOTED.append((len(given), sum(refused)))
            taken = index.upsert(generation, [each for each, no in zip(given, refused, strict=True) if not no])
            written = iter(taken)
            busy = WriteOutcome.FAILED
            return [
                WriteResult(id=each.id, outcome=busy, reason="busy") if no else next(written)
                for each, no in zip(given, refused, strict=True)
            ]

        return rigged(WorkerSettings.open(self), takes_most)


def test_a_fifth_of_all_items_failing_leaves_each_message_with_one_end(
    index: SqliteIndex, worker_settings: WorkerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE_SECONDS", 0.001)
    records = [change(f"c{number % 300}", number // 300, f"Makes part {number}.") for number in range(900)]
    damaged: list[Any] = [*records[:450], b"{", *records[450:], b"[]"]
    ran = run(FailsAFifth(index=worker_settings.index, threads=1), in_order(damaged), batch_messages=100)
    items, refused = (
        sum(numbers) for numbers in zip(*(each for each in NOTED if isinstance(each, tuple)), strict=True)
    )
    assert 0.15 < refused / items < 0.25
    assert ran.taken.keys() | set(ran.dead) == {f"test#{number}" for number in range(902)}
    assert sorted(ran.dead) == ["test#450", "test#901"]
    assert (len(ran.taken), ran.ends) == (900, 902)
    assert ran.counters["messages_dead"] == 2
    assert ran.counters["retries"] >= refused
    assert held(index) == {f"c{number}": (version(2), f"Makes part {600 + number}.") for number in range(300)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(WorkerSettings):
    """Its store answers nothing for some attempts, once it has taken some documents."""

    after: int
    attempts: int

    def open(self) -> WorkerResources:
        written, refused = 0, 0

        def takes_in_the_end(index: CompanyIndex, generation: str, given: Documents) -> list[WriteResult]:
            nonlocal written, refused
            NOTED.append(Look(read=READ[0], written=written, paused=written >= self.after and refused < self.attempts))
            if NOTED[-1].paused:
                refused += 1
                raise IndexUnavailable("nobody answers")
            written += len(given)
            return index.upsert(generation, given)

        return rigged(WorkerSettings.open(self), takes_in_the_end)


@dataclass(frozen=True)
class Look:
    """At an attempt to write: how many messages were read and written by then."""

    read: int
    written: int
    paused: bool


# How many messages the source below has handed out.
READ = [0]
MANY, BATCH, ATTEMPTS = 2_000, 50, 60


def endless_looking(_: Any) -> Iterator[Message]:
    """A source: its next message is made when it is asked for."""
    for number in range(MANY):
        READ[0] = number + 1
        value = json.dumps(change(f"c{number}", 1, f"Makes part {number}.")).encode()
        yield Message(position=f"test#{number}", value=value, time=T0)


def test_while_the_store_takes_nothing_nothing_is_read_and_afterwards_all_is_written(
    index: SqliteIndex, worker_settings: WorkerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE_SECONDS", 0.02)
    READ[0] = 0
    place = Paused(index=worker_settings.index, threads=1, after=MANY // 2, attempts=ATTEMPTS)
    source = beam.Impulse() | beam.FlatMap(endless_looking).with_output_types(Message)
    ran = run(place, source, batch_messages=BATCH)
    looks = [each for each in NOTED if isinstance(each, Look)]
    paused = {(each.read, each.written) for each in looks if each.paused}
    assert (sum(each.paused for each in looks), len(paused)) == (ATTEMPTS, 1)
    assert max(each.read - each.written for each in looks) == BATCH
    assert (len(ran.taken), ran.ends, ran.dead) == (MANY, MANY, [])
    assert index.stats(index.live().name).companies == MANY


def _note(end: Any) -> None:
    NOTED.append(end)
