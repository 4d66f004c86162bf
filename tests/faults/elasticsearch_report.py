"""The results of fault schedules in words: a summary for the terminal, a page for the docs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.faults.campaign_facts import machine
from tests.faults.elasticsearch_faults import FULL_QUEUE, KILL_NODE, KILL_WRITER, PAUSE_NODE
from tests.faults.fault_proxy import KINDS

Line = Mapping[str, Any]

WHAT_HAPPENS = {
    KILL_NODE: "SIGKILL of a node, started again within a second",
    PAUSE_NODE: "SIGSTOP of a node for 0.5 to 8 s, then SIGCONT",
    KILL_WRITER: "SIGKILL of a writer process, which goes on from its journal",
    FULL_QUEUE: "a flood of bulk requests from elsewhere",
    "answer_lost": "the request arrives, the connection breaks instead of an answer",
    "answer_late": "the request arrives, the answer after the client's timeout",
    "answer_cut": "the request arrives, half of the answer comes back",
    "request_reset": "the connection is reset before the request arrives",
    "request_late": "the request arrives after the client gave up and sent others",
    "request_repeated": "the request arrives twice",
    "status_429": "429 by something on the way",
    "status_502": "502 by something on the way",
    "status_503": "503 by something on the way",
    "too_large": "413 for requests above a few thousand bytes",
}
ROWS = (
    ("schedules", len),
    ("attempts of a batch", lambda lines: sum(line["attempts"] for line in lines)),
    ("documents sent, all attempts", lambda lines: sum(_total(lines, "outcomes").values())),
    ("distinct inputs", lambda lines: sum(line["inputs"] for line in lines)),
    ("= indexed", lambda lines: _total(lines, "classes")["indexed"]),
    ("+ superseded", lambda lines: _total(lines, "classes")["superseded"]),
    ("+ rejected", lambda lines: _total(lines, "classes")["rejected"]),
    ("reads checked against acknowledgements", lambda lines: sum(line["readings"] for line in lines)),
    ("steps of generations", lambda lines: sum(line["steps"] for line in lines)),
    ("documents answered 429 by the server", lambda lines: _total(lines, "struck")["429"]),
    ("requests refused for a poison document in them", lambda lines: _total(lines, "struck")["poison"]),
    ("**acknowledged writes lost**", lambda lines: sum(line["lost"] for line in lines)),
    ("**deletes resurrected**", lambda lines: sum(line["resurrected"] for line in lines)),
    ("**schedules with any problem**", lambda lines: sum(bool(line["problems"]) for line in lines)),
)


def summary(lines: Sequence[Line]) -> str:
    """One line on some schedules, and one per problem."""
    faults = sum(sum(line["faults"].values()) for line in lines)
    which = f"seed {lines[0]['seed']}" if len(lines) == 1 else f"{len(lines)} schedules"
    text = (
        f"{_nodes(lines[0]['nodes'])}, {which}: {sum(line['seconds'] for line in lines):.0f} s, "
        f"{faults} faults, {sum(line['inputs'] for line in lines):,} inputs, "
        f"{sum(line['lost'] for line in lines)} lost, "
        f"{sum(line['resurrected'] for line in lines)} resurrected"
    )
    return "\n".join([text, *(f"  seed {line['seed']}: {problem}" for line in lines for problem in line["problems"])])


def report(lines: Sequence[Line]) -> str:
    """The page, from the lines of one code: schedules on one node and on several, side by side."""
    sizes = sorted({line["nodes"] for line in lines})
    of_size = {nodes: [line for line in lines if line["nodes"] == nodes] for nodes in sizes}
    heads = [_nodes(nodes) for nodes in sizes]
    totals = [[name, *(f"{count(of_size[nodes]):,}" for nodes in sizes)] for name, count in ROWS]
    return f"""# Elasticsearch under faults

A schedule is drawn from a seed: two to four writer processes write the same 80 companies through proxies to a real
Elasticsearch, in versions that race, come late, come twice and contradict each other, one in eight a delete and one
in 200 poison, while nodes, network, proxies and the writers themselves fail. In half of the schedules generations are
made, promoted, rolled back and retired meanwhile, and the writers follow. Each writer keeps a journal of what it sent
and what was acknowledged, which survives its own SIGKILL.

Then the cluster is healed, what was not settled is sent again until nothing fails, and all documents are read back.
A schedule has a problem unless, in every generation that is left:

- each company is stored at the highest version that was taken of it, with the content that was acknowledged;
- no write was applied twice, or after a newer one had been acknowledged: by the journals' clock, so that a loss is
  found even where a later write covered it up; no `get` showed less than was acknowledged before it began;
- every distinct input ended as indexed, superseded or rejected, and only contradictions and poison as rejected;
- `similar`, `stats` and `versions` agree with a scan; the registry is where the acknowledged steps led; and no index
  is left that no generation owns.

{_table(["", *heads], totals)}

Would it find anything? Three mistakes were planted on purpose, one at a time: an item answered 429 taken for written,
`external_gte` in the place of `external` versions, and `translog.durability: async`. A single schedule found each, the
last one by the two writes that a SIGKILL of the node took with it.

## Faults

{
        _table(
            ["fault", "what happens", *(f"{head}: faults" for head in heads), *(f"{head}: requests" for head in heads)],
            _fault_rows(sizes, of_size),
        )
    }

## The run

{_table(["", ""], _facts(lines))}

SIGKILL ends a process, not the machine: what was written is still in the kernel's memory. So this shows that nothing
is acknowledged too early and that recovery works, not that a disk keeps what it flushed; therefore the data may as
well lie in memory, where restarts are quicker. That each acknowledged write is flushed rests on
`index.translog.durability: request`, which every generation is made with. Moments differ from run to run: a seed
gives the same documents and the same faults in the same order, not the same interleaving.
{_problems(lines)}"""


def _fault_rows(sizes: Sequence[int], of_size: Mapping[int, Sequence[Line]]) -> list[list[str]]:
    rows = []
    for kind, words in WHAT_HAPPENS.items():
        faults = [f"{_total(of_size[nodes], 'faults')[kind]:,}" for nodes in sizes]
        struck = [f"{_total(of_size[nodes], 'struck')[kind]:,}" if kind in KINDS else "" for nodes in sizes]
        rows.append([kind, words, *faults, *struck])
    return rows


def _facts(lines: Sequence[Line]) -> list[list[str]]:
    dates = sorted(line["at"] for line in lines)
    return [
        ["schedules", "; ".join(_seeds(lines))],
        ["dates", f"{dates[0]} to {dates[-1]} UTC" if dates else ""],
        ["time", f"{sum(line['seconds'] for line in lines) / 60:.0f} minutes"],
        ["Elasticsearch", ", ".join(sorted({line["version"] for line in lines}))],
        ["data in", ", ".join(sorted({line["disk"] for line in lines}))],
        ["machine", machine()],
    ]


def _seeds(lines: Sequence[Line]) -> list[str]:
    """Which seeds ran on how many nodes, at which commit."""
    runs: dict[tuple[int, str], list[int]] = {}
    for line in lines:
        runs.setdefault((line["nodes"], line["commit"]), []).append(line["seed"])
    return [
        f"seeds {min(seeds)} to {max(seeds)} ({len(seeds)}) on {_nodes(nodes)} at commit {commit}"
        for (nodes, commit), seeds in sorted(runs.items())
    ]


def _problems(lines: Sequence[Line]) -> str:
    found = [f"- {_nodes(line['nodes'])}, seed {line['seed']}: {each}" for line in lines for each in line["problems"]]
    return "\n## Problems\n\n" + "\n".join(found) + "\n" if found else ""


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _total(lines: Sequence[Line], name: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for line in lines:
        total.update(line[name])
    return total
