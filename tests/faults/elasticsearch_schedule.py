"""Runs one fault schedule: writes under faults, heals, sends again what was not taken, and checks everything."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from elasticsearch import Elasticsearch

from similarity.company import EmbeddedCompany
from similarity.errors import IndexUnavailable
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, WriteOutcome
from tests.factories import make_generation, unit_vector
from tests.faults.elasticsearch_check import account, judge
from tests.faults.elasticsearch_faults import Schedule
from tests.faults.elasticsearch_history import Attempt, History, misfit, read_journal
from tests.faults.elasticsearch_inputs import Document, Input, document
from tests.faults.elasticsearch_scene import Scene, Writers, orders_for, proxies_before
from tests.faults.elasticsearch_steps import FIRST, Stepper
from tests.faults.elasticsearch_writer import described
from tests.faults.fault_proxy import FaultProxy
from tests.servers.elasticsearch import ElasticsearchCluster, NotHealthy

SECONDS_IN_PEACE = 1.0
LONGEST_DELAY_SECONDS = 30.0
ROUNDS_OF_SENDING_AGAIN = 20
RESENT_AT_ONCE = 500
SCORE_TOLERANCE = 1e-4


@dataclass(kw_only=True)
class Finished:
    """What a schedule did and found. `problems` must be empty."""

    schedule: Schedule
    faults: Counter[str] = field(default_factory=Counter)
    """How many of each kind were injected."""
    inputs: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    resurrected: int = 0
    problems: list[str] = field(default_factory=list)
    """Every loss and resurrection too, in words."""
    broken: bool = False
    """The cluster did not come back: the next schedule needs a new one."""


def run(schedule: Schedule, cluster: ElasticsearchCluster, folder: Path) -> Finished:
    """Runs a schedule on a healthy cluster; `folder` keeps its journals."""
    folder.mkdir(parents=True)
    finished = Finished(schedule=schedule)
    try:
        with proxies_before(cluster, seed=schedule.seed) as proxies:
            _run(schedule, cluster, proxies, folder, finished)
    except NotHealthy as error:
        finished.problems.append(f"the cluster did not recover: {error}")
        finished.broken = True
    return finished


def _run(
    schedule: Schedule, cluster: ElasticsearchCluster, proxies: list[FaultProxy], folder: Path, finished: Finished
) -> None:
    hurried = ElasticSettings(
        hosts=tuple(proxy.url for proxy in proxies),
        name=schedule.name,
        request_seconds=schedule.request_seconds,
        write_seconds=schedule.write_seconds,
    )
    patient = ElasticSettings(hosts=hurried.hosts, name=schedule.name)
    with closing(ElasticIndex(patient)) as index, closing(ElasticIndex(hurried)) as stepping:
        _begin(index)
        stepper = Stepper(stepping)
        writers = Writers(orders_for(schedule, hurried, folder))
        scene = Scene(schedule, cluster, proxies, writers)
        try:
            if schedule.steps:
                stepper.start()
            time.sleep(SECONDS_IN_PEACE)
            scene.play()
            time.sleep(SECONDS_IN_PEACE)
        finally:
            writers.stop()
            if schedule.steps:
                stepper.finish()
        finished.problems += [line for proxy in proxies if (line := _still_busy(proxy))]
        history = _history(schedule, folder)
        finished.problems += [*scene.bugs, *writers.bugs, *stepper.bugs, *history.bugs]
        finished.problems += check(index, history, stepper, finished)
        finished.problems += leftovers(cluster, index)
        finished.faults = scene.done


def check(index: ElasticIndex, history: History, stepper: Stepper, finished: Finished) -> list[str]:
    """Sends again what was not taken; then what is wrong with the generations that are there."""
    problems = []
    states = {generation.name: generation.state for generation in index.generations()}
    if states != stepper.expected:
        problems.append(f"the registry says {states}, not {stepper.expected}")
    for name in states:
        history.attempts += send_again(index, name, [each for each in history.attempts if each.generation == name])
        attempts = [each for each in history.attempts if each.generation == name]
        stored = {each.id: each for page in index.scan(name) for each in page}
        verdict = judge(attempts, [each for each in history.readings if each.generation == name], stored)
        finished.lost += len(verdict.lost)
        finished.resurrected += len(verdict.resurrected)
        problems += [f"{name}: {line}" for line in [*verdict.lines, *wrong_answers(index, name, stored)]]
        found = account(attempts)
        for what in ("indexed", "superseded", "rejected", "unsettled"):
            finished.classes[what] += len(getattr(found, what))
        finished.inputs += len({given for attempt in attempts for given in attempt.inputs})
    gone = [each for each in history.attempts if each.generation == FIRST and "UnknownGeneration" in each.error]
    problems += [f"{FIRST} is live, yet {each.error}" for each in gone[:1]]
    if sum(finished.classes.values()) != finished.inputs or finished.classes["unsettled"]:
        problems.append(f"{finished.inputs} distinct inputs, but {dict(finished.classes)}")
    return problems


def send_again(index: CompanyIndex, generation: str, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Sends what was not settled until everything is, or long enough; the attempts that it took."""
    made: list[Attempt] = []
    for _ in range(ROUNDS_OF_SENDING_AGAIN):
        left = sorted(account([*attempts, *made]).unsettled, key=lambda given: (given.id, given.version, given.variant))
        if not left:
            break
        made += [
            _attempt(index, generation, tuple(left[first : first + RESENT_AT_ONCE]))
            for first in range(0, len(left), RESENT_AT_ONCE)
        ]
    return made


def _attempt(index: CompanyIndex, generation: str, inputs: tuple[Input, ...]) -> Attempt:
    start = time.monotonic()
    outcomes: tuple[WriteOutcome, ...] = ()
    error = ""
    try:
        results = index.upsert(generation, [document(given) for given in inputs])
        outcomes = tuple(result.outcome for result in results)
        error = misfit(inputs, ((result.id, result.outcome) for result in results))
    except IndexUnavailable as unavailable:
        error = described(unavailable)
    return Attempt(
        by="resending",
        generation=generation,
        inputs=inputs,
        start=start,
        end=time.monotonic(),
        outcomes=outcomes,
        error=error,
    )


def wrong_answers(index: CompanyIndex, generation: str, stored: dict[str, Document]) -> list[str]:
    """What the index answers otherwise than its own scan says."""
    problems = []
    companies = [each for each in stored.values() if isinstance(each, EmbeddedCompany)]
    stats = index.stats(generation)
    counted = (stats.companies, stats.deleted, stats.last_version)
    newest = max((each.version for each in stored.values()), default=0)
    if counted != (len(companies), len(stored) - len(companies), newest):
        problems.append(f"stats says {counted}; a scan has {len(companies)} of {len(stored)}, up to v{newest}")
    versions = {each.id: each.version for page in index.versions(generation) for each in page}
    if versions != {each.id: each.version for each in stored.values()}:
        problems.append("versions differs from a scan")
    french = [each for each in companies if each.company.country == "FR"]
    for held, filters in ((companies, ()), (french, (FieldFilter(field="country", any_of=("FR",)),))):
        hits = index.similar(generation, unit_vector(1), k=len(stored) + 1, filters=filters).hits
        expected = {each.id: float(np.dot(each.vector, unit_vector(1))) for each in held}
        scores = {hit.company.id: hit.score for hit in hits}
        off = [each for each in expected if abs(scores.get(each, 9) - expected[each]) > SCORE_TOLERANCE]
        if scores.keys() != expected.keys() or off or [hit.score for hit in hits] != sorted(scores.values())[::-1]:
            problems.append(f"similar with {len(filters)} filters differs from a scan: {len(hits)} hits, {off[:3]} off")
    return problems


def leftovers(cluster: ElasticsearchCluster, index: ElasticIndex) -> list[str]:
    """Indices on the cluster that no generation owns, once a retire has swept; then removes all of them."""
    index.create_generation(make_generation("last"))
    index.retire("last")
    prefix = index.settings.name
    names = [generation.name for generation in index.generations()]
    with Elasticsearch(cluster.url) as client:
        found = sorted(client.indices.get(index=f"{prefix}-*", expand_wildcards="all"))
        owned = [[each for each in found if each.startswith(f"{prefix}-{name}-")] for name in names]
        orphans = set(found) - {each for held in owned for each in held} - {f"{prefix}-registry"}
        client.options(ignore_status=404).indices.delete(index=",".join(found))
    problems = [f"no generation owns {each}" for each in sorted(orphans)]
    return problems + [
        f"{name} has {len(held)} indices" for name, held in zip(names, owned, strict=True) if len(held) != 1
    ]


def _begin(index: ElasticIndex) -> None:
    index.create_generation(make_generation(FIRST))
    index.register_candidate(FIRST)
    index.promote(FIRST)


def _history(schedule: Schedule, folder: Path) -> History:
    history = History()
    for number in range(schedule.writers):
        history.add(read_journal(folder / f"writer-{number}.jsonl", seed=schedule.seed, writer=number))
    return history


def _still_busy(proxy: FaultProxy) -> str:
    return "" if proxy.wait_until_idle(timeout=LONGEST_DELAY_SECONDS) else f"{proxy.url} holds requests back for ever"
