"""The results of killing the stream in words: a summary for the terminal, a page for the docs."""

import platform
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tests.faults.campaign_facts import machine
from tests.faults.stream_inputs import COMPANIES
from tests.faults.stream_scene import BATCH_MESSAGES, BUNDLE_MESSAGES, BUNDLE_SECONDS, PARTITIONS
from tests.faults.stream_schedule import AFTER, BEFORE, BETWEEN
from tests.servers.elasticsearch_installation import DEFAULT_VERSION
from tests.servers.kafka_installation import VERSION as KAFKA_VERSION

Line = Mapping[str, Any]

NAMES = {"sqlite": "embedded index", "elasticsearch": f"Elasticsearch {DEFAULT_VERSION}"}
ROWS = (
    ("schedules", len),
    ("**kills**", lambda lines: _sum(lines, "kills")),
    (f"{BEFORE} of that life", lambda lines: _phases(lines)[BEFORE]),
    (BETWEEN, lambda lines: _phases(lines)[BETWEEN]),
    (f"{AFTER}, while it was ending", lambda lines: _phases(lines)[AFTER]),
    ("kills with something written and not yet committed", lambda lines: _sum(lines, "written_ahead")),
    ("files of dead letters left unfinished by a kill", lambda lines: _sum(lines, "unfinished_letters")),
    ("messages on the topics", lambda lines: _sum(lines, "messages")),
    ("of them poison, each kept as one dead letter", lambda lines: _sum(lines, "poison")),
    ("messages that were committed when a kill fell", lambda lines: _sum(lines, "acknowledged")),
    ("looks at a committed message right after a kill", lambda lines: _sum(lines, "checked")),
    ("**committed messages lost**", lambda lines: _sum(lines, "lost")),
    ("**schedules with any problem**", lambda lines: sum(bool(line["problems"]) for line in lines)),
)


def summary(lines: Sequence[Line]) -> str:
    """One line on some schedules, and one per problem."""
    which = f"seed {lines[0]['seed']}" if len(lines) == 1 else f"{len(lines)} schedules"
    phases = ", ".join(f"{count} {phase}" for phase, count in sorted(_phases(lines).items()))
    text = (
        f"{lines[0]['store']}, {which}: {_sum(lines, 'seconds'):.0f} s, {_sum(lines, 'kills')} kills ({phases}), "
        f"{_sum(lines, 'messages'):,} messages, {_sum(lines, 'checked'):,} looks at committed ones, "
        f"{_sum(lines, 'lost')} lost"
    )
    return "\n".join([text, *(f"  seed {line['seed']}: {problem}" for line in lines for problem in line["problems"])])


def report(lines: Sequence[Line]) -> str:
    """The page, from the lines of one code; schedules with a planted mistake are told apart."""
    planted = [line for line in lines if line["mistake"]]
    honest = [line for line in lines if not line["mistake"]]
    stores = sorted({line["store"] for line in honest}, reverse=True)
    of_store = {store: [line for line in honest if line["store"] == store] for store in stores}
    rows = [[name, *(f"{count(of_store[store]):,}" for store in stores)] for name, count in ROWS]
    return f"""# Killing the stream

`python -m pipelines.stream --kafka-topic ... --once` is killed with SIGKILL at a random moment, started again, and so
on, between a real Kafka {KAFKA_VERSION} and a real index, on the in-process runner. A schedule is ten kills, drawn from
a seed: messages about {COMPANIES} companies on {PARTITIONS} partitions, in versions that race and come late, one in
eight a delete, one in seven sent twice, and one in 100 poison of six kinds. Bundles are small (at most
{BUNDLE_MESSAGES} messages or {BUNDLE_SECONDS} s, in batches of {BATCH_MESSAGES}), so that there are many commits
to fall between. The victim is watched from outside: it dies before its first commit, up to a bundle's length after a
drawn number of them, or while it ends.

After each kill, and at the end:

- every message whose offset is committed is settled **right then**: the index holds its version of the company or a
  newer one, or its letter is among the dead letters on the disk;
- nothing is stored that no message asked for, and nothing is a dead letter that is no poison;
- the embedded index passes SQLite's check and our own.

Then the command runs to its own end, and every company must be at its highest version with that content and the
vector of that text, what was deleted last must be deleted, the dead letters must be exactly the poison positions, the
committed offsets the ends of the topic, and the index must have one generation, live.

{_table(["", *(NAMES[store] for store in stores)], rows)}

Would it find anything? Three mistakes were planted on purpose, one at a time, in the victim alone: offsets committed as
soon as they are read, before the write; a batch that is not full kept for the next bundle instead of being settled at
the end of its own; files of dead letters finished only when their worker ends. `tests/faults/test_stream_kill.py`
demands that each is found.
{_found(planted)}
## The run

{_table(["", ""], _facts(honest))}

Beam takes seconds to import, so victims are forked from a process that has imported it and opened nothing: no index, no
connection, no encoder, no second thread (it refuses to fork otherwise). From there on a victim runs the command as
a user does. SIGKILL ends a process, not the machine: this shows that nothing is committed too early and that
what is left is gone on with, not that a disk keeps what it flushed. Moments differ from run to run: a seed gives
the same messages in the same order and the same plans, not the same interleaving.
{_problems(honest)}"""


def _facts(lines: Sequence[Line]) -> list[list[str]]:
    dates = sorted(line["at"] for line in lines)
    software = ", ".join(
        [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}", *map(_installed, PACKAGES)]
    )
    return [
        ["schedules", "; ".join(_seeds(lines))],
        ["dates", f"{dates[0]} to {dates[-1]} UTC" if dates else ""],
        ["time", f"{_sum(lines, 'seconds') / 60:.0f} minutes"],
        ["machine", machine()],
        ["software", software],
    ]


PACKAGES = ("apache-beam", "confluent-kafka")


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def _seeds(lines: Sequence[Line]) -> list[str]:
    """Which seeds ran on which store, at which commit."""
    runs: dict[tuple[str, str], list[int]] = {}
    for line in lines:
        runs.setdefault((line["store"], line["commit"]), []).append(line["seed"])
    return [
        f"seeds {min(seeds)} to {max(seeds)} ({len(seeds)}) on {NAMES[store]} at commit {commit}"
        for (store, commit), seeds in sorted(runs.items(), reverse=True)
    ]


def _found(lines: Sequence[Line]) -> str:
    """Of schedules with a planted mistake, how many found it."""
    if not lines:
        return ""
    mistakes = sorted({line["mistake"] for line in lines})
    of_mistake = {mistake: [line for line in lines if line["mistake"] == mistake] for mistake in mistakes}
    rows = [
        [mistake, str(len(each)), str(sum(bool(line["lost"]) for line in each))] for mistake, each in of_mistake.items()
    ]
    return f"\n{_table(['planted', 'schedules', 'that found messages lost'], rows)}\n"


def _problems(lines: Sequence[Line]) -> str:
    found = [f"- {line['store']}, seed {line['seed']}: {each}" for line in lines for each in line["problems"]]
    return "\n## Problems\n\n" + "\n".join(found) + "\n" if found else ""


def _phases(lines: Sequence[Line]) -> Counter[str]:
    total: Counter[str] = Counter()
    for line in lines:
        total.update(line["phases"])
    return total


def _sum(lines: Sequence[Line], name: str) -> Any:
    return sum(line[name] for line in lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
