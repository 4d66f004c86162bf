"""Runs a real Kafka broker for tests, as a process of this machine.

    with KafkaBroker(tmp_path) as broker:
        broker.servers                       # "127.0.0.1:PORT", the same after each restart
        broker.kill()                        # SIGKILL; also pause(), resume(), stop()
        broker.start()                       # on the same data and ports

One broker that is its own controller (KRaft); topics have one replica.
`python -m tests.servers.kafka` installs what the tests need, or says why it cannot.
"""

import socket
import struct
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from tests.servers.installing import main
from tests.servers.java import JavaServer
from tests.servers.ports import free_ports
from tests.servers.program import NotReady, Program
from tests.servers.server import Server

KAFKA = JavaServer(
    name="Kafka",
    version="4.1.1",
    jars=(
        "org.apache.kafka:kafka_2.13:4.1.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
        "org.apache.logging.log4j:log4j-core:2.24.3",
    ),
    digest="b25fd09bbfc0f616307b3a11e00e2d988d29013c60acb9550fa2108c77cc6b16",
    java_variable="KAFKA_JAVA_HOME",
    oldest_java=17,
)
SECONDS_TO_START = 60.0
# Half of Java's compiler: starts sooner on few cores.
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# API key 18 (ApiVersions) version 0, correlation 1, no client id: a broker that is up answers it.
REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)
LOGGING = """<Configuration status="ERROR">
  <Appenders><Console name="console"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="console"/></Root></Loggers>
</Configuration>
"""


class KafkaBroker(Program, Server):
    """A broker on free ports of this machine, all of whose files are under one folder.

    As a context manager it runs inside, and no process of it is left afterwards.
    """

    def __init__(self, folder: Path, *, heap: str = "256m", settings: Mapping[str, object] | None = None) -> None:
        """Installs Kafka if need be and writes the configuration; starts nothing.

        Args:
            folder: for data, configuration and log; made if it is missing, empty otherwise.
            settings: properties that go before those chosen here.
        """
        self.folder = folder
        self._jars = KAFKA.install()
        self._heap = heap
        super().__init__("broker", folder, [*self._java("kafka.Kafka"), str(self._properties)])
        self._port, controller_port = free_ports(2)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log4j2.xml").write_text(LOGGING, encoding="utf-8")
        self._settings = {**_settings(folder / "data", self._port, controller_port), **(settings or {})}
        self.configure({})

    @property
    def servers(self) -> str:
        """The address for clients, `host:port`."""
        return f"127.0.0.1:{self._port}"

    @property
    def listeners(self) -> str:
        """The setting of this name."""
        return str(self._settings["listeners"])

    def configure(self, settings: Mapping[str, object]) -> None:
        """Changes settings; they hold from the next start on."""
        self._settings |= settings
        lines = [f"{name}={value}\n" for name, value in self._settings.items()]
        self._properties.write_text("".join(lines), encoding="utf-8")

    def start(self, *, timeout: float = SECONDS_TO_START) -> None:
        """Starts the broker and waits until it answers clients."""
        if not (self.folder / "data").exists():
            self._format()
        super().start()
        self.wait_until(self._answers, timeout=timeout)

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _java(self, program: str) -> list[str]:
        java = [str(KAFKA.java_home() or "") + "/bin/java", f"-Xms{self._heap}", f"-Xmx{self._heap}", *JAVA_OPTIONS]
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}"
        return [*java, logging, "-cp", f"{self._jars}/*", program]

    def _format(self) -> None:
        # Not beginning with "-", as one in 64 would: Kafka would take it for an option.
        identity = "k" + urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:].rstrip("=")
        command = [*self._java("kafka.tools.StorageTool"), "format", "-t", identity, "-c", str(self._properties)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotReady(f"Kafka could not prepare its data folder:\n{done.stdout}{done.stderr}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
                connection.sendall(REQUEST)
                return bool(connection.recv(1))
        except OSError:
            return False


def _settings(data: Path, port: int, controller_port: int) -> dict[str, object]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,  # 50 by default, each of them a file or two
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # After SIGKILL a broker may only come back when the controller has given the dead one up (9 s by default).
        "broker.session.timeout.ms": 4000,
        "broker.heartbeat.interval.ms": 300,
        # So that tests of retention and compaction need not wait for minutes.
        "log.retention.check.interval.ms": 1000,
        "log.initial.task.delay.ms": 1000,
        "log.cleaner.backoff.ms": 500,
    }


if __name__ == "__main__":
    main("real Kafka", KAFKA.unavailable_reason(), KAFKA.install)
