"""The stack as processes of this machine: commands and variables of docker-compose.yml, real servers, no docker.

Names of containers, ports and folders inside them are replaced by addresses and folders of this machine; the rest
of each command is run as it stands, in the order of the file's conditions.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.environment import ROOT, filled
from tests.end_to_end.stacks.compose_file import Service, in_order, read_services
from tests.end_to_end.stacks.native_elasticsearch import elasticsearch_of
from tests.end_to_end.stacks.stack import StackFailed
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.ports import free_ports
from tests.servers.prism import install as install_prism

STATE = "/var/lib/similarity"
SECONDS_TO_START = 300.0
SECONDS_TO_STOP = 60.0
# Where a broker of a test has settings of its own.
OWN_OF_KAFKA = re.compile(
    r"KAFKA_(NODE_ID|PROCESS_ROLES|CONTROLLER.*|LISTENER.*|ADVERTISED.*|INTER_BROKER.*|LOG_DIRS|HEAP_OPTS)"
)


class NativeStack:
    """See `Stack`."""

    def __init__(self, folder: Path) -> None:
        """All files are below `folder`; nothing is started."""
        self._folder = folder
        self._state = folder / "state"
        self._settings = settings_in(filled((ROOT / ".env.example").read_text(encoding="utf-8")))
        for volume in {volume for service in self._services().values() for volume in service.volumes}:
            inside = volume.split(":")[1]
            if inside.startswith(STATE):
                (self._state / Path(inside).relative_to(STATE)).mkdir(parents=True, exist_ok=True)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._elasticsearch: ElasticsearchCluster | None = None
        self._kafka: KafkaBroker | None = None
        self._search, search_metrics, stream_metrics, reembed_metrics = free_ports(4)
        self._metrics = {"search": search_metrics, "stream": stream_metrics, "reembed": reembed_metrics}
        self._programs = _programs(folder / "bin")
        self.url = f"http://127.0.0.1:{self._search}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for name in reversed(list(self._running)):
            _stop(self._running[name])
        for server in (self._kafka, self._elasticsearch):
            if server is not None:
                server.stop()

    def up(self, *services: str, settings: Mapping[str, str] | None = None) -> None:
        """See `Stack`."""
        self._settings |= settings or {}
        known = self._services()
        wanted = services or tuple(name for name, each in known.items() if not each.profiles)
        for service in in_order(known, wanted):
            self._start(service)

    def run(self, service: str, *command: str) -> str:
        """See `Stack`."""
        described = self._services()[service]
        done = subprocess.run(
            self._translated(command or described.command, service),
            check=False,
            cwd=self._folder,
            env=self._environment(described),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise StackFailed(f"{service} {' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return self._as_inside(done.stdout)

    def logs(self, service: str) -> str:
        """See `Stack`."""
        return self._as_inside(self._log(service).read_text(encoding="utf-8", errors="replace"))

    def _as_inside(self, said: str) -> str:
        """What was said, with the folder that it has in containers."""
        return said.replace(str(self._state), STATE)

    def _services(self) -> dict[str, Service]:
        return read_services(ROOT / "docker-compose.yml", self._settings)

    def _start(self, service: Service) -> None:
        if service.name == "elasticsearch":
            self._start_elasticsearch(service)
        elif service.name == "kafka":
            self._start_kafka(service)
        elif service.name == "topics":
            self._make_topic(service)
        elif service.once:
            self._log(service.name).write_text(self.run(service.name), encoding="utf-8")
        elif service.name not in self._running:
            with self._log(service.name).open("ab") as log:
                self._running[service.name] = subprocess.Popen(
                    self._translated(service.command, service.name),
                    cwd=self._folder,
                    env=self._environment(service),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._wait_until_healthy(service)

    def _start_elasticsearch(self, service: Service) -> None:
        if self._elasticsearch is None:
            self._elasticsearch = elasticsearch_of(service, self._folder / "elasticsearch")
            self._elasticsearch.start()

    def _start_kafka(self, service: Service) -> None:
        if self._kafka is not None:
            return
        given = {key: value for key, value in service.environment.items() if not OWN_OF_KAFKA.fullmatch(key)}
        settings = {key.removeprefix("KAFKA_").lower().replace("_", "."): value for key, value in given.items()}
        self._kafka = KafkaBroker(self._folder / "kafka", settings=settings)
        self._kafka.start()

    def _make_topic(self, service: Service) -> None:
        """What kafka-topics.sh --create --if-not-exists does; that program is not among the broker's own jars."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        options = dict(word.removeprefix("--").split("=", 1) for word in service.command if "=" in word)
        assert self._kafka is not None
        topic = NewTopic(
            options["topic"],
            int(options["partitions"]),
            int(options["replication-factor"]),
            config=dict([options["config"].split("=", 1)]),
        )
        client = AdminClient({"bootstrap.servers": self._kafka.servers})
        [created] = client.create_topics([topic]).values()
        try:
            created.result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def _wait_until_healthy(self, service: Service) -> None:
        if not service.health:
            return
        process, deadline = self._running[service.name], time.monotonic() + SECONDS_TO_START
        check = self._translated(service.health[1:], service.name)  # after CMD
        while subprocess.run(check, check=False, env=self._environment(service)).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise StackFailed(f"{service.name} is not healthy:\n{self.logs(service.name)[-6000:]}")
            time.sleep(1)

    def _environment(self, service: Service) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SIMILARITY_")}
        own = {name: self._placed(value, service.name) for name, value in service.environment.items()}
        path = f"{self._programs}:{inherited.get('PATH', '')}"
        return {**inherited, **own, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}

    def _translated(self, command: Sequence[str], service: str) -> list[str]:
        return [self._placed(word, service) for word in command]

    def _placed(self, text: str, service: str) -> str:
        """The text with what is meant for containers replaced by what it is here."""
        elasticsearch = self._elasticsearch.url if self._elasticsearch else ""
        kafka = self._kafka.servers if self._kafka else ""
        places = {
            "http://elasticsearch:9200": elasticsearch,
            "kafka:9092": kafka,
            "http://search:8080": self.url,
            "http://127.0.0.1:8080": self.url,
            STATE: str(self._state),
            "/app/": f"{ROOT}/",
            "/usr/local/bin/prism": str(self._programs / "prism"),
        }
        for inside, here in places.items():
            text = text.replace(inside, here)
        metrics = self._metrics.get(service, 0)
        ports = {"8080": self._search, "9102": metrics, "9100": metrics}
        return re.sub(r"(?<=[:=])9100|^(8080|9102|9100)$", lambda match: str(ports[match[0]]), text)

    def _log(self, service: str) -> Path:
        return self._folder / f"{service}.log"


def settings_in(text: str) -> dict[str, str]:
    """The variables of a file like .env."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def _programs(folder: Path) -> Path:
    """A folder with the programs that the images have in their PATH."""
    folder.mkdir()
    contents = {
        "python": f'exec {sys.executable} "$@"',
        "similarity": f'exec {sys.executable} -m similarity "$@"',
        "healthy": f'exec {sys.executable} {ROOT}/deploy/images/healthy "$@"',
        "prism": f'exec {install_prism()} "$@"',
    }
    for name, line in contents.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends it as docker does: SIGTERM to it, and what is left of its group is killed later."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_TO_STOP)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
