"""One schedule: a stream is killed at random moments, checked after each kill, and drained at the end."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from similarity.bundle import ModelBundle
from similarity.company import EmbeddedCompany
from similarity.encoder import TextEncoder
from similarity.index.opening import is_url
from similarity.index.protocol import GenerationState
from similarity.text import embedding_text, text_hash
from tests.faults.stream_check import Position, acknowledged, invented, outdated, unsettled
from tests.faults.stream_inputs import Story
from tests.faults.stream_scene import BUNDLE_MESSAGES, Scene, contents
from tests.faults.stream_victims import Victims
from tests.similarity.index.inspection import damage

KILLS = 10
# How many commits a life may see before its end: none at all is as likely as many.
COMMITS = (0, 0, 0, 1, 1, 2, 3, 4, 6)
EVERYTHING = 99
CHANCE_OF_EVERYTHING = 0.15
# From one commit to the next takes about so long; the kill falls between them.
BUNDLE_SECONDS = 0.25
ENDING_SECONDS = 0.15
LOOK_SECONDS = 0.002
SECONDS_FOR_A_LIFE = 180.0
VECTOR_COSINE = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When a life ends: so many seconds after it has committed so often; or after it began, where that is never."""

    commits: int
    seconds: float


@dataclass
class Finished:
    """What a schedule did and found; `lost` and `problems` must stay empty."""

    seed: int
    kills: int = 0
    lives: int = 0
    poison: int = 0
    checked: int = 0
    """All looks at acknowledged messages, one of each message at each kill."""
    lost: int = 0
    problems: list[str] = field(default_factory=list)


class Pace:
    """How long it takes to the first commit, from the lives so far."""

    def __init__(self) -> None:
        self.first_commit = 2.0

    def seen(self, seconds: float) -> None:
        """One more life committed for the first time after so many seconds."""
        self.first_commit += (seconds - self.first_commit) / 3


class Schedule:
    """Draws the moments from the seed, and plays them."""

    def __init__(self, scene: Scene, victims: Victims, *, seed: int, pace: Pace, mistake: str = "") -> None:
        self.finished = Finished(seed=seed)
        self._scene = scene
        self._victims = victims
        self._pace = pace
        self._mistake = mistake
        self._choice = random.Random(f"moments of {seed}")
        self._story = Story(seed)
        self._lost: set[Position] = set()

    def play(self, bundle: ModelBundle, *, kills: int = KILLS) -> Finished:
        """Kills so many times, drains, and judges."""
        finished = self.finished
        while finished.kills < kills:
            finished.lives += 1
            plan = self._plan()
            bundles = 3 if plan.commits == EVERYTHING else plan.commits + 4
            self._scene.send(self._story.next(bundles * BUNDLE_MESSAGES))
            if self._live(plan):
                finished.kills += 1
                self.finished.checked += self._check()
        self._drain(bundle)
        return finished

    def _plan(self) -> Plan:
        if self._choice.random() < CHANCE_OF_EVERYTHING:
            return Plan(commits=EVERYTHING, seconds=self._choice.uniform(0, ENDING_SECONDS))
        commits = self._choice.choice(COMMITS)
        longest = BUNDLE_SECONDS if commits else 1.1 * self._pace.first_commit
        return Plan(commits=commits, seconds=self._choice.uniform(0, longest))

    def _live(self, plan: Plan) -> bool:
        """One life; False if it ended by itself before the kill, as it should."""
        scene, victims = self._scene, self._victims
        before = scene.committed()
        victims.start(scene.arguments, log=scene.log, mistake=self._mistake)
        began = time.monotonic()
        at, seen = began + plan.seconds, 0
        now, position = began, before
        while victims.running and (seen < plan.commits or now < at):
            time.sleep(LOOK_SECONDS)
            committed, now = scene.committed(), time.monotonic()
            if committed != position:
                if not seen:
                    self._pace.seen(now - began)
                position, seen = committed, seen + 1
                if seen == plan.commits or (plan.commits == EVERYTHING and committed == scene.ends):
                    plan, at = Plan(commits=seen, seconds=plan.seconds), now + plan.seconds
            if now - began > SECONDS_FOR_A_LIFE:
                self.finished.problems.append(f"life {self.finished.lives} did not end; see {scene.log.name}")
                break
        status = victims.kill()
        if status >= 0:
            if status:
                self.finished.problems.append(f"life {self.finished.lives} ended by itself: {self._log_tail()}")
            return False
        return True

    def _check(self) -> int:
        """Checks that committed messages are settled now; how many there are.

        Read in this order, a commit that is still on its way is no loss.
        """
        scene, finished = self._scene, self.finished
        done = acknowledged(scene.topic, scene.committed())
        documents, dead = contents(scene.stored()), set(scene.dead())
        lost = unsettled(scene.topic, done, documents=documents, dead=dead)
        self._report("lost: ", [line for position, line in lost.items() if position not in self._lost])
        self._lost |= lost.keys()
        finished.lost = len(self._lost)
        self._report("", invented(scene.topic, documents=documents, dead=dead))
        if not is_url(scene.target):
            self._report("", damage(Path(scene.target)))
        return len(done)

    def _drain(self, bundle: ModelBundle) -> None:
        """Lets the command end by itself, and compares everything."""
        scene, finished = self._scene, self.finished
        self._victims.start(scene.arguments, log=scene.log, mistake=self._mistake)
        if status := self._victims.wait():
            finished.problems.append(f"the last life ended with {status}: {self._log_tail()}")
        if (committed := scene.committed()) != scene.ends:
            finished.problems.append(f"committed is {committed}, the topic ends at {scene.ends}")
        self._check()
        stored = scene.stored()
        self._report("", outdated(scene.topic, documents=contents(stored)))
        self._report("", wrong_vectors(stored, bundle))
        generations = scene.generations()
        if [each.state for each in generations] != [GenerationState.LIVE]:
            finished.problems.append(f"the index should have one live generation, it has {generations}")
        finished.poison = len(set(scene.dead()))

    def _report(self, prefix: str, lines: list[str]) -> None:
        when = f"after kill {self.finished.kills}: "
        self.finished.problems += [when + prefix + line for line in lines[:5]]
        if len(lines) > 5:
            self.finished.problems.append(f"{when}{prefix}and {len(lines) - 5} more")

    def _log_tail(self) -> str:
        return self._scene.log.read_text(encoding="utf-8", errors="replace")[-500:]


def wrong_vectors(stored: Mapping[str, Any], bundle: ModelBundle) -> list[str]:
    """Companies whose vector or hash is not that of their text."""
    companies = [each for each in stored.values() if isinstance(each, EmbeddedCompany)]
    encoder = TextEncoder(bundle, threads=1)
    texts = [embedding_text(each.company, encoder.text_settings) for each in companies]
    return [
        f"{each.id} has not the vector of its text"
        for each, text, vector in zip(companies, texts, encoder.encode(texts), strict=True)
        if each.text_hash != text_hash(text) or float(np.dot(each.vector, vector)) < VECTOR_COSINE
    ]


def topic_name(seed: int) -> str:
    """A topic that no other schedule uses."""
    return f"companies-{seed}-{time.time_ns()}"
