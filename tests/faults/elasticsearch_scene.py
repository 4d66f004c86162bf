"""Does what a schedule says, to a real cluster, the proxies before its nodes, and the writers."""

import http.client
import multiprocessing
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from similarity.index.elastic import ElasticSettings
from tests.faults.elasticsearch_faults import FULL_QUEUE, KILL_NODE, KILL_WRITER, PAUSE_NODE, Fault, Schedule
from tests.faults.elasticsearch_writer import Orders, write
from tests.faults.fault_proxy import Disturbance, FaultProxy
from tests.servers.elasticsearch import ElasticsearchCluster

FLOOD = "flood"
FLOODING_THREADS = 6
FLOOD_DOCUMENTS = 300
SECONDS_TO_STOP = 60.0
# A new interpreter with everything imported takes seconds here; a fork of one that has it takes milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.faults.elasticsearch_writer", "tests.faults.elasticsearch_reembed"])


class Writers:
    """The writer processes of a schedule; each that is killed is started again at once, on its own journal."""

    def __init__(self, orders: Iterable[Orders]) -> None:
        self.orders = list(orders)
        self._processes = [self._start(each) for each in self.orders]
        self.bugs: list[str] = []

    def kill(self, number: int) -> None:
        """Ends one with SIGKILL and starts it again."""
        number %= len(self.orders)
        self._processes[number].kill()
        self._processes[number].join()
        self._processes[number] = self._start(self.orders[number])

    def stop(self) -> None:
        """Lets all of them finish what they are at."""
        self.orders[0].stop.touch()
        for number, process in enumerate(self._processes):
            process.join(SECONDS_TO_STOP)
            if process.exitcode is None:
                self.bugs.append(f"writer {number} did not stop within {SECONDS_TO_STOP:.0f} s")
                process.kill()
                process.join()
            elif process.exitcode:
                self.bugs.append(f"writer {number} ended with status {process.exitcode}")

    def _start(self, orders: Orders) -> BaseProcess:
        process = PROCESSES.Process(target=write, args=(orders,))
        process.start()
        return process


@dataclass
class Scene:
    """What faults are done to."""

    schedule: Schedule
    cluster: ElasticsearchCluster
    proxies: list[FaultProxy]
    writers: Writers
    done: Counter[str] = field(default_factory=Counter)
    bugs: list[str] = field(default_factory=list)

    def play(self) -> None:
        """Runs all tracks to their ends, then brings everything back."""
        tracks = [threading.Thread(target=self._run, args=(track,)) for track in self.schedule.tracks]
        try:
            for track in tracks:
                track.start()
            for track in tracks:
                track.join()
        finally:
            self.heal()

    def heal(self) -> None:
        """All nodes run, the cluster is green, and requests pass unharmed; NotHealthy if that cannot be reached."""
        for proxy in self.proxies:
            proxy.calm()
        for node in self.cluster.nodes:
            node.resume()
        self.cluster.start()
        self.cluster.wait_until_healthy(status="green", nodes=len(self.cluster.nodes))

    def _run(self, track: Iterable[Fault]) -> None:
        for fault in track:
            time.sleep(fault.wait)
            try:
                self._inject(fault)
            except Exception as error:
                # The rest of a track makes no sense after that; whether the cluster comes back, `heal` finds out.
                self.bugs.append(f"{fault}: {type(error).__name__}: {error}")
                return
            self.done[fault.kind] += 1

    def _inject(self, fault: Fault) -> None:
        if fault.kind in {KILL_NODE, PAUSE_NODE}:
            self._node_fault(fault)
        elif fault.kind == KILL_WRITER:
            self.writers.kill(fault.target)
        elif fault.kind == FULL_QUEUE:
            flood(self.cluster.url, seconds=fault.seconds)
        else:
            self._disturb(fault)

    def _node_fault(self, fault: Fault) -> None:
        node = self.cluster.nodes[fault.target]
        if fault.kind == PAUSE_NODE:
            node.pause()
            time.sleep(fault.seconds)
            node.resume()
        else:
            node.kill()
            time.sleep(fault.seconds)
            node.start()
        # One node at a time: the copies are equal again before the next fault.
        self.cluster.wait_until_healthy(status="green", nodes=len(self.cluster.nodes))

    def _disturb(self, fault: Fault) -> None:
        limit = 4_000 + 40 * fault.target
        disturbance = Disturbance(kind=fault.kind, chance=fault.chance, seconds=fault.late_by, bytes=limit)
        # Before one node, or before all of them.
        chosen = self.proxies if fault.target % 2 else [self.proxies[fault.target % len(self.proxies)]]
        for proxy in chosen:
            proxy.disturb(disturbance)
        time.sleep(fault.seconds)
        for proxy in chosen:
            proxy.calm()


@contextmanager
def proxies_before(cluster: ElasticsearchCluster, *, seed: int) -> Iterator[list[FaultProxy]]:
    """A proxy before each node."""
    with ExitStack() as opened:
        yield [
            opened.enter_context(FaultProxy(url, seed=random.Random(f"{seed} {url}").randrange(2**32)))
            for url in cluster.urls
        ]


def orders_for(schedule: Schedule, settings: ElasticSettings, folder: Path) -> list[Orders]:
    """What each writer of a schedule is to do."""
    return [
        Orders(seed=schedule.seed, writer=number, settings=settings, folder=folder)
        for number in range(schedule.writers)
    ]


def flood(url: str, *, seconds: float) -> None:
    """Sends bulk requests from many threads at once, so that the server's queue for writes is full."""
    lines = b"".join(b'{"index":{}}\n{"text":"%d"}\n' % number for number in range(FLOOD_DOCUMENTS))
    deadline = time.monotonic() + seconds
    # Without copies, so that the cluster can be green with any number of nodes.
    _ask(f"{url}/{FLOOD}", "PUT", b'{"settings": {"number_of_replicas": 0}}')
    threads = [threading.Thread(target=_flood, args=(url, lines, deadline)) for _ in range(FLOODING_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _flood(url: str, lines: bytes, deadline: float) -> None:
    while time.monotonic() < deadline:
        if not _ask(f"{url}/{FLOOD}/_bulk", "POST", lines):
            time.sleep(0.05)


def _ask(url: str, method: str, body: bytes) -> bool:
    """Whether there was an answer, whatever it says."""
    request = urllib.request.Request(url, data=body, method=method)
    request.add_header("content-type", "application/x-ndjson" if method == "POST" else "application/json")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.close()
    except (OSError, http.client.HTTPException):
        return False
    return True
