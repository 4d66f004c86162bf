"""The servers that other tests rely on: they start, survive what is done to them, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.connection import Connection
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster, NotHealthy
from tests.servers.elasticsearch_node import ElasticsearchNode

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def single(startable_elasticsearch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchCluster]:
    with ElasticsearchCluster(
        tmp_path_factory.mktemp("single"), version=startable_elasticsearch, java_options=QUICK_START
    ) as cluster:
        yield cluster


def connect(connection: Connection) -> Any:
    # Imported here, because "make test" collects this file without the client being installed.
    from elasticsearch import Elasticsearch

    # No retries: a test that waits for health first needs none.
    return Elasticsearch(**connection.client_arguments(), max_retries=0, request_timeout=10)


def gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has collected yet (Z) has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_what_was_acknowledged_is_there_after_sigkill(single: ElasticsearchCluster) -> None:
    with connect(single.connection) as client:
        client.index(index="kept", id="1", document={"name": "Acme"})
        before = single.nodes[0].pid
        single.nodes[0].kill()
        assert before
        assert gone(before)
        single.start()
        assert single.nodes[0].pid != before
        assert client.get(index="kept", id="1")["_source"] == {"name": "Acme"}


def test_a_paused_node_answers_only_when_it_is_resumed(single: ElasticsearchCluster) -> None:
    with connect(single.connection) as client:
        single.nodes[0].pause()
        try:
            with pytest.raises(NotHealthy, match="no answer"):
                single.wait_until_healthy(timeout=0)
        finally:
            single.nodes[0].resume()
        single.wait_until_healthy(timeout=10)
        assert client.cluster.health()["number_of_nodes"] == 1


def test_a_snapshot_goes_to_the_folder_for_it(single: ElasticsearchCluster) -> None:
    with connect(single.connection) as client:
        location = str(single.repo_folder / "tests")
        client.snapshot.create_repository(name="tests", repository={"type": "fs", "settings": {"location": location}})
        client.snapshot.create(repository="tests", snapshot="first", wait_for_completion=True)
    assert (single.repo_folder / "tests" / "index.latest").exists()


@pytest.mark.nightly
def test_three_nodes_survive_the_loss_of_one(startable_elasticsearch: str, tmp_path: Path) -> None:
    with ElasticsearchCluster(
        tmp_path / "three", version=startable_elasticsearch, java_options=QUICK_START, nodes=3
    ) as cluster:
        settings = {"number_of_shards": 1, "number_of_replicas": 1, "unassigned.node_left.delayed_timeout": "0s"}
        with connect(cluster.connection) as client:
            client.indices.create(index="kept", settings=settings, wait_for_active_shards="all")
            client.index(index="kept", id="1", document={"name": "Acme"})
            primary = next(shard for shard in client.cat.shards(index="kept", format="json") if shard["prirep"] == "p")
        victim = next(node for node in cluster.nodes if node.name == primary["node"])
        survivors = [url for url, node in zip(cluster.urls, cluster.nodes, strict=True) if node is not victim]
        victim.kill()
        cluster.wait_until_healthy(status="green", nodes=2)
        with connect(Connection(urls=tuple(survivors))) as client:
            assert client.get(index="kept", id="1")["_source"] == {"name": "Acme"}


@pytest.mark.nightly
def test_a_secured_cluster_wants_the_password(startable_elasticsearch: str, tmp_path: Path) -> None:
    with ElasticsearchCluster(
        tmp_path / "secured", version=startable_elasticsearch, java_options=QUICK_START, secured=True
    ) as cluster:
        assert cluster.url.startswith("https://")
        right = cluster.connection
        assert right.password
        assert right.password not in repr(right)
        with connect(right) as client:
            assert client.cluster.health()["number_of_nodes"] == 1
        wrong = Connection(urls=right.urls, user=right.user, password="wrong", ca_certs=right.ca_certs)
        with connect(wrong) as client, pytest.raises(Exception, match="401"):
            client.cluster.health()


def test_a_server_that_cannot_start_says_why(startable_elasticsearch: str, tmp_path: Path) -> None:
    settings = {"no.such.setting": 1}
    cluster = ElasticsearchCluster(
        tmp_path / "bad", version=startable_elasticsearch, java_options=QUICK_START, settings=settings
    )
    with pytest.raises(NotHealthy, match="unknown setting"), cluster:
        pass
    assert not cluster.nodes[0].running


def wait_for_pid(node: ElasticsearchNode) -> int:
    """The process id of a node that has just been started, long before it is healthy."""
    deadline = time.monotonic() + 60
    while (pid := node.pid) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pid
    return pid


def test_no_server_is_left_when_its_start_is_interrupted(
    startable_elasticsearch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ElasticsearchCluster(tmp_path / "interrupted", version=startable_elasticsearch)
    pids: list[int] = []

    def interrupt(**_: object) -> None:
        pids.append(wait_for_pid(cluster.nodes[0]))
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, "wait_until_healthy", interrupt)
    with pytest.raises(KeyboardInterrupt), cluster:
        pass
    assert [gone(pid) for pid in pids] == [True]


PROGRAM = """
import sys
from pathlib import Path
from tests.harness.test_servers import wait_for_pid
from tests.servers.elasticsearch import ElasticsearchCluster
cluster = ElasticsearchCluster(Path(sys.argv[1]), version=sys.argv[2])
cluster.nodes[0].start()
print(wait_for_pid(cluster.nodes[0]), flush=True)
cluster.nodes[0].pause()
input("paused")
"""


def test_no_server_is_left_when_the_tests_are_killed(startable_elasticsearch: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "orphaned"), startable_elasticsearch]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout
        pid = int(tests.stdout.readline())
        assert tests.stdout.read(6) == "paused"
        assert not gone(pid)
        tests.send_signal(signal.SIGKILL)
        tests.wait()
    deadline = time.monotonic() + 10
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone(pid)


def test_where_there_is_no_java_tests_are_not_run_instead_of_passed(tmp_path: Path) -> None:
    test = f"{__file__}::{test_what_was_acknowledged_is_there_after_sigkill.__name__}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "integration", test]
    environment = {**os.environ, "ES_JAVA_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "1 tests: Elasticsearch needs Java" in done.stdout
    assert done.stdout.splitlines()[-1].strip("= ").startswith("1 not run in")
