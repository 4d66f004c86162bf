"""What the processes of a small Flink cluster are told: configuration, memory and commands."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MEMORY_OF_BEAM = 96  # MB of a TaskManager outside its heap, by kind: managed, network, off-heap
METASPACE = 256
# Half of Java's compiler: starts sooner on few cores. For tests that measure no speed.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
OPENED = "lang net io nio lang.reflect text time util util.concurrent util.concurrent.atomic util.concurrent.locks"
LOGGING = """<Configuration status="ERROR">
  <Appenders><Console name="console"><PatternLayout pattern="%d{ABSOLUTE} %p %c{1} %m%n"/></Console></Appenders>
  <Loggers>
    <Root level="WARN"><AppenderRef ref="console"/></Root>
    <Logger name="org.apache.flink.runtime.executiongraph" level="INFO"/>
    <Logger name="org.apache.flink.runtime.checkpoint" level="INFO"/>
    <Logger name="org.apache.beam.runners.jobsubmission" level="INFO"/>
  </Loggers>
</Configuration>
"""


# A job server sends its whole class path to the cluster with every job, 150 MB that the cluster has. What it finds
# on the boot class path it does not send. Flink's own classes must stay on the other one: they ask for their loader,
# and for java.sql, which the boot loader does not know. What starts Flink inside a process is not needed at all.
SENT = ("beam-runners-flink-", "flink-")
NOT_SENT = ("flink-shaded-",)
LEFT_OUT = ("flink-rpc-akka-loader-",)


@dataclass(frozen=True)
class Heaps:
    """Megabytes of Java's heap, of each process of a kind."""

    job_manager: int = 256
    task_manager: int = 384
    job_server: int = 256


@dataclass(frozen=True)
class JobManagerPorts:
    """Ports of the one JobManager."""

    rest: int
    rpc: int
    blobs: int


def cluster_settings(folder: Path, ports: JobManagerPorts, *, restarts: int) -> dict[str, object]:
    """What JobManager and TaskManagers agree on. Everything they write is under `folder`."""
    return {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.bind-host": "127.0.0.1",
        "jobmanager.rpc.port": ports.rpc,
        "blob.server.port": ports.blobs,
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": ports.rest,
        # What a job server sends is here already, in the same version.
        "classloader.resolve-order": "parent-first",
        "io.tmp.dirs": str(folder / "tmp"),
        "state.checkpoints.dir": (folder / "checkpoints").as_uri(),
        # So that the loss of a process is noticed and mended within seconds.
        "heartbeat.interval": 1000,
        "heartbeat.timeout": 6000,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": restarts,
        "restart-strategy.fixed-delay.delay": "1 s",
    }


def task_manager_settings(name: str, *, heap: int, slots: int) -> dict[str, object]:
    """What one TaskManager is told; outside Flink's own scripts all its memory must be spelled out."""
    memory = "taskmanager.memory"
    framework, kind = heap // 3, f"{MEMORY_OF_BEAM}m"
    return {
        "taskmanager.resource-id": name,
        "taskmanager.host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.numberOfTaskSlots": slots,
        "taskmanager.cpu.cores": 1,
        f"{memory}.framework.heap.size": f"{framework}m",
        f"{memory}.task.heap.size": f"{heap - framework}m",
        f"{memory}.framework.off-heap.size": kind,
        f"{memory}.task.off-heap.size": kind,
        f"{memory}.managed.size": kind,
        f"{memory}.network.min": kind,
        f"{memory}.network.max": kind,
        f"{memory}.jvm-metaspace.size": f"{METASPACE}m",
        f"{memory}.jvm-overhead.min": kind,
        f"{memory}.jvm-overhead.max": kind,
    }


def write_settings(folder: Path, settings: Mapping[str, object]) -> Path:
    """Makes a configuration folder and returns it."""
    folder.mkdir(parents=True)
    # Every line of JSON values is YAML, too.
    lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items()]
    (folder / "config.yaml").write_text("".join(lines), encoding="utf-8")
    (folder / "log4j2.xml").write_text(LOGGING, encoding="utf-8")
    return folder


def java_command(main: str, *arguments: str, java: Path, heap: int, logging: Path, options: Sequence[str]) -> list[str]:
    """The command that runs a Java program with a heap of so many MB; `options` hold the class path."""
    opens = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED.split()]
    opens.append("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
    log = f"-Dlog4j2.configurationFile={logging}"
    return [str(java / "bin" / "java"), f"-Xmx{heap}m", *QUICK_START, *opens, log, *options, main, *arguments]


def class_path(jars: Path) -> list[str]:
    """All jars of the installation, as Java options."""
    return ["-cp", f"{jars}/*"]


def job_server_class_path(jars: Path) -> list[str]:
    """All jars of the installation so that few of them are sent with a job, as Java options."""
    files = [jar for jar in sorted(jars.glob("*.jar")) if not jar.name.startswith(LEFT_OUT)]
    sent = [str(jar) for jar in files if jar.name.startswith(SENT) and not jar.name.startswith(NOT_SENT)]
    kept = [str(jar) for jar in files if str(jar) not in sent]
    return [f"-Xbootclasspath/a:{os.pathsep.join(kept)}", "-cp", os.pathsep.join(sent)]


def task_manager_memory() -> list[str]:
    """The limits of a TaskManager's memory outside its heap, as Java options."""
    return [f"-XX:MaxDirectMemorySize={3 * MEMORY_OF_BEAM}m", f"-XX:MaxMetaspaceSize={METASPACE}m"]
