"""Runs real Elasticsearch for tests, one node or several, as processes of this machine.

    with ElasticsearchCluster(tmp_path, nodes=3, heap="512m") as cluster:
        client = Elasticsearch(**cluster.connection.client_arguments())
        cluster.nodes[1].kill()                              # SIGKILL; also pause(), resume(), stop()
        cluster.wait_until_healthy(status="yellow", nodes=2)
        cluster.nodes[1].start()                             # on the same data and ports

`python -m tests.servers.elasticsearch` installs what the tests need, or says why it cannot.
"""

import http.client
import json
import secrets
import ssl
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.servers.certificates import Certificates, make_certificates
from tests.servers.connection import Connection
from tests.servers.elasticsearch_installation import DEFAULT_VERSION, VERSIONS, install, unavailable_reason
from tests.servers.elasticsearch_node import ElasticsearchNode
from tests.servers.installing import main
from tests.servers.ports import free_ports
from tests.servers.server import Server

SECONDS_TO_START = 120.0
SECONDS_TO_ANSWER = 3.0
USER = "elastic"
# Half of Java's compiler: starts sooner on few cores, is slow later. For tests that measure no speed.
QUICK_START = ("-XX:TieredStopAtLevel=1",)


class NotHealthy(Exception):
    """The server did not start or did not become healthy in time; the message ends with its log."""


class ElasticsearchCluster(Server):
    """A cluster of 1 or more nodes on free ports of this machine, all of whose files are under one folder.

    As a context manager it is started and healthy inside, and no process of it is left afterwards.
    """

    def __init__(
        self,
        folder: Path,
        *,
        version: str = DEFAULT_VERSION,
        nodes: int = 1,
        heap: str = "512m",
        settings: Mapping[str, Any] | None = None,
        secured: bool = False,
        java_options: Sequence[str] = (),
    ) -> None:
        """Installs the version if need be and writes the configuration; starts nothing.

        Args:
            folder: for data, logs, configuration and snapshots; made if it is missing, empty otherwise.
            heap: of each node.
            settings: go before those chosen here, for example `{"thread_pool.write.queue_size": 1}`.
            secured: HTTPS by a private authority, and a password; `connection` says which.
        """
        self.folder = folder
        self.version = version
        self.repo_folder = folder / "repo"
        self.repo_folder.mkdir(parents=True)
        home = install(version)
        ports = free_ports(2 * nodes)
        http_ports, self._transport_ports = ports[:nodes], ports[nodes:]
        names = [f"node-{number}" for number in range(nodes)]
        self.nodes = [
            ElasticsearchNode(folder / name, home=home, heap=heap, java_options=java_options) for name in names
        ]
        certificates = make_certificates(folder / "certificates") if secured else None
        self.connection = Connection(
            urls=tuple(f"http{'s' if secured else ''}://127.0.0.1:{port}" for port in http_ports),
            user=USER if secured else None,
            password=secrets.token_urlsafe(16) if secured else None,
            ca_certs=certificates.authority if certificates else None,
        )
        for node, http_port, transport_port in zip(self.nodes, http_ports, self._transport_ports, strict=True):
            own = {"http.port": http_port, "transport.port": transport_port, **self._own_settings()}
            node.configure({**own, **_security(certificates), **(settings or {})})
            if certificates:
                certificates.copy_to(node.folder / "config")
            if self.connection.password:
                node.store_secret("bootstrap.password", self.connection.password)

    @property
    def url(self) -> str:
        """The address of the first node."""
        return self.connection.url

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all nodes, in the order of `nodes`."""
        return self.connection.urls

    def start(self, *, timeout: float = SECONDS_TO_START) -> None:
        """Starts all nodes that do not run, and waits until they are one cluster with all primary shards."""
        for node in self.nodes:
            if not node.running:
                node.start()
        self.wait_until_healthy(nodes=len(self.nodes), timeout=timeout)

    def stop(self) -> None:
        """Shuts all nodes down in order; `start` goes on with their data."""
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """Ends all nodes with SIGKILL; `start` goes on with their data."""
        for node in self.nodes:
            node.kill()

    def wait_until_healthy(
        self, *, status: str = "yellow", nodes: int | None = None, timeout: float = SECONDS_TO_START
    ) -> None:
        """Waits until every running node sees so many nodes (default: the running ones) and this status or better.

        Raises:
            NotHealthy: that was not so in time, or a node ended.
        """
        running = [node for node in self.nodes if node.running]
        if not running:
            raise NotHealthy(f"no node runs. The end of a log:\n{self.nodes[0].tail()}")
        expected = f"wait_for_nodes={nodes or len(running)}&wait_for_status={status}&timeout=1s&master_timeout=1s"
        deadline = time.monotonic() + timeout
        waiting = list(running)
        while waiting:
            node = waiting[0]
            health = self._get(node, f"/_cluster/health?{expected}")
            if health and not health["timed_out"]:
                waiting.remove(node)
            elif not node.running:
                raise NotHealthy(f"{node.name} ended. The end of its log:\n{node.tail()}")
            elif time.monotonic() > deadline:
                seen = health or "no answer"
                raise NotHealthy(f"after {timeout:.0f} s, {node.name} said: {seen}. Its log:\n{node.tail()}")
            else:
                time.sleep(0.1)

    def _own_settings(self) -> dict[str, Any]:
        names = [node.name for node in self.nodes]
        addresses = [f"127.0.0.1:{port}" for port in self._transport_ports]
        several = {"discovery.seed_hosts": addresses, "cluster.initial_master_nodes": names}
        return {
            "cluster.name": "company-similarity-tests",
            "network.host": "127.0.0.1",
            "path.repo": str(self.repo_folder),
            # A nearly full disk of a developer is no reason to refuse a few documents.
            "cluster.routing.allocation.disk.threshold_enabled": False,
            **(several if len(names) > 1 else {"discovery.type": "single-node"}),
        }

    def _get(self, node: ElasticsearchNode, path: str) -> dict[str, Any] | None:
        """What the node answers, None if it does not (yet)."""
        connection = self.connection
        request = urllib.request.Request(connection.urls[self.nodes.index(node)] + path)
        if connection.user:
            credentials = b64encode(f"{connection.user}:{connection.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {credentials}")
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=connection.ca_certs))
        # A proxy that the environment names leads elsewhere.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
        try:
            with opener.open(request, timeout=SECONDS_TO_ANSWER) as answer:
                health: dict[str, Any] = json.load(answer)
                return health
        except urllib.error.HTTPError as error:
            error.close()
            return None
        except (OSError, http.client.HTTPException):
            return None


def _security(certificates: Certificates | None) -> dict[str, Any]:
    if not certificates:
        return {"xpack.security.enabled": False}
    settings: dict[str, Any] = {"xpack.security.enabled": True}
    # Names, because Elasticsearch reads certificates only from its configuration folder.
    for layer in ("http", "transport"):
        prefix = f"xpack.security.{layer}.ssl"
        settings[f"{prefix}.enabled"] = True
        settings[f"{prefix}.key"] = certificates.key.name
        settings[f"{prefix}.certificate"] = certificates.certificate.name
        settings[f"{prefix}.certificate_authorities"] = certificates.authority.name
    return settings


if __name__ == "__main__":
    for version in VERSIONS:
        main("real Elasticsearch", unavailable_reason(version), partial(install, version))
