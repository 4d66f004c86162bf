"""Judges what happened to one generation: by the history of attempts alone, and by what is stored at the end. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from similarity.company import EmbeddedCompany
from similarity.index.protocol import WriteOutcome
from tests.faults.elasticsearch_history import Attempt, Reading
from tests.faults.elasticsearch_inputs import Document, Input, Poison, document

APPLIED, UNCHANGED = WriteOutcome.APPLIED, WriteOutcome.UNCHANGED
SUPERSEDED, REJECTED, FAILED = WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED, WriteOutcome.FAILED
VECTOR_TOLERANCE = 1e-5


@dataclass
class Account:
    """Every distinct input, in exactly one of four classes by what was acknowledged of it."""

    indexed: set[Input] = field(default_factory=set)
    superseded: set[Input] = field(default_factory=set)
    rejected: set[Input] = field(default_factory=set)
    unsettled: set[Input] = field(default_factory=set)


@dataclass
class Verdict:
    """What was found wrong; all must stay empty."""

    lost: list[str] = field(default_factory=list)
    resurrected: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        named = {"lost": self.lost, "resurrected": self.resurrected, "invented": self.invented, "wrong": self.other}
        return [f"{name}: {line}" for name, lines in named.items() for line in lines]


def account(attempts: Iterable[Attempt]) -> Account:
    """Where each distinct input ended: settled once is settled, whatever failed before or after."""
    outcomes = _outcomes(attempts)
    found = Account()
    for given, seen in outcomes.items():
        if seen & {APPLIED, UNCHANGED}:
            found.indexed.add(given)
        elif SUPERSEDED in seen:
            found.superseded.add(given)
        elif REJECTED in seen:
            found.rejected.add(given)
        else:
            found.unsettled.add(given)
    return found


def judge(attempts: Sequence[Attempt], readings: Iterable[Reading], stored: Mapping[str, Document]) -> Verdict:
    """What is wrong with one generation: its attempts, its readings, and all its documents at the end."""
    verdict = Verdict()
    known = Known(attempts)
    verdict.other += contradictions(attempts)
    verdict.lost += known.forgotten(attempts)
    verdict.lost += [line for reading in readings for line in known.unseen(reading)]
    compare(account(attempts), stored, verdict)
    return verdict


def contradictions(attempts: Sequence[Attempt]) -> list[str]:
    """Outcomes that cannot be true, and inputs that ended nowhere."""
    outcomes = _outcomes(attempts)
    versions: dict[tuple[str, int], set[Input]] = defaultdict(set)
    newest: dict[str, int] = defaultdict(int)
    for given in outcomes:
        versions[given.id, given.version].add(given)
        newest[given.id] = max(newest[given.id], given.version)
    problems = [f"{len(each.inputs)} documents, {len(each.outcomes)} outcomes" for each in attempts if _uneven(each)]
    for given, seen in outcomes.items():
        stored = seen & {APPLIED, UNCHANGED}
        rivals = [other for other in versions[given.id, given.version] - {given} if other.poison is Poison.NONE]
        if not seen - {FAILED}:
            problems.append(f"{given} was never settled")
        if given.poison and seen - {REJECTED, FAILED}:
            problems.append(f"{given} is poison, yet {_words(seen)}")
        if REJECTED in seen and not given.poison and (stored or not rivals):
            problems.append(f"{given} was {_words(seen)}, and {len(rivals)} others have its version")
        if SUPERSEDED in seen and newest[given.id] <= given.version:
            problems.append(f"{given} was superseded, but nothing newer was ever sent")
        if stored and any(outcomes[rival] & {APPLIED, UNCHANGED} for rival in rivals):
            problems.append(f"{given} was acknowledged, and so was another content of the same version")
    return problems


class Known:
    """What was acknowledged about each id by when: that version is stored, or a newer one."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        told: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self._deletes: dict[str, set[int]] = defaultdict(set)
        for attempt in attempts:
            for given in attempt.inputs:
                if given.deletes:
                    self._deletes[given.id].add(given.version)
            for given, outcome in zip(attempt.inputs, attempt.outcomes, strict=False):
                if attempt.end is not None and outcome in {APPLIED, UNCHANGED, SUPERSEDED}:
                    told[given.id].append((attempt.end, given.version + (outcome is SUPERSEDED)))
        self._times: dict[str, list[float]] = {}
        self._highest: dict[str, list[int]] = {}
        for company_id, events in told.items():
            events.sort()
            self._times[company_id] = [end for end, _ in events]
            self._highest[company_id] = list(accumulate((version for _, version in events), max))

    def before(self, company_id: str, moment: float) -> int:
        """The lowest version that could be stored at that moment; 0 where nothing was acknowledged yet."""
        count = bisect_left(self._times.get(company_id, []), moment)
        return self._highest[company_id][count - 1] if count else 0

    def forgotten(self, attempts: Iterable[Attempt]) -> list[str]:
        """Writes that were applied although something newer, or they themselves, had been acknowledged before."""
        problems = []
        applied: set[Input] = set()
        for attempt in attempts:
            newest: dict[str, int] = {}
            for given, outcome in zip(attempt.inputs, attempt.outcomes, strict=False):
                floor = max(self.before(given.id, attempt.start), newest.get(given.id, 0))
                if outcome is APPLIED and given in applied:
                    problems.append(f"{given} was applied twice: it was gone in between")
                if outcome is APPLIED and floor >= given.version:
                    problems.append(f"{given} was applied after v{floor} had been acknowledged")
                if outcome is UNCHANGED and floor > given.version:
                    problems.append(f"{given} was found stored after v{floor} had been acknowledged")
                if outcome is APPLIED:
                    applied.add(given)
                    newest[given.id] = given.version
        return problems

    def unseen(self, reading: Reading) -> list[str]:
        """Acknowledged writes that a later reading did not show."""
        problems = []
        for company_id, seen in reading.seen.items():
            floor = self.before(company_id, reading.start)
            deleted = any(version >= floor for version in self._deletes[company_id])
            if (seen and seen < floor) or (not seen and floor and not deleted):
                problems.append(f"{company_id} was read as v{seen} after v{floor} had been acknowledged")
        return problems


def compare(found: Account, stored: Mapping[str, Document], verdict: Verdict) -> None:
    """Adds to the verdict what is not stored as it must be, now that every input is settled."""
    expected: dict[str, list[Input]] = defaultdict(list)
    for given in found.indexed | found.superseded:
        expected[given.id].append(given)
    for company_id in sorted(expected.keys() | stored.keys()):
        inputs, held = expected.get(company_id, []), stored.get(company_id)
        version = max((given.version for given in inputs), default=0)
        if held is None:
            verdict.lost.append(f"{company_id} v{version} is not stored at all")
        elif held.version < version:
            newer_delete = any(held.version < given.version for given in inputs if given.deletes)
            revived = newer_delete and isinstance(held, EmbeddedCompany)
            (verdict.resurrected if revived else verdict.lost).append(f"{company_id} v{version} is v{held.version}")
        elif held.version > version:
            verdict.invented.append(f"{company_id} is v{held.version}; nothing above v{version} was taken")
        elif not any(same(held, document(given)) for given in inputs if given in found.indexed):
            verdict.other.append(f"{company_id} v{version} has other content than was acknowledged")


def same(left: Document, right: Document) -> bool:
    """Whether two documents are equal, vectors to within rounding."""
    if not isinstance(left, EmbeddedCompany) or not isinstance(right, EmbeddedCompany):
        return left == right
    facts = [(each.company, each.version, each.text_hash, each.language, each.embedded_at) for each in (left, right)]
    return facts[0] == facts[1] and bool(np.allclose(left.vector, right.vector, rtol=0, atol=VECTOR_TOLERANCE))


def _outcomes(attempts: Iterable[Attempt]) -> dict[Input, set[WriteOutcome]]:
    outcomes: dict[Input, set[WriteOutcome]] = defaultdict(set)
    for attempt in attempts:
        for position, given in enumerate(attempt.inputs):
            # An attempt that nobody heard the end of, or that raised, has failed for each of its documents.
            outcomes[given].add(attempt.outcomes[position] if position < len(attempt.outcomes) else FAILED)
    return outcomes


def _uneven(attempt: Attempt) -> bool:
    return bool(attempt.outcomes) and len(attempt.outcomes) != len(attempt.inputs)


def _words(outcomes: Iterable[WriteOutcome]) -> str:
    return " and ".join(sorted(outcomes))
