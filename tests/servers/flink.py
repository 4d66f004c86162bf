"""Runs a real Flink cluster with Beam's job server and Python workers for tests, as processes of this machine.

    with FlinkCluster(tmp_path, taskmanagers=2) as flink:
        options = PipelineOptions([*flink.beam_options(checkpoint_ms=1000), "--streaming"])
        flink.kill_taskmanager(0)            # SIGKILL
        flink.start_taskmanager(0)
        flink.kill_worker()                  # SIGKILL of a Python worker
        flink.rest.jobs()                    # Flink's REST API

`python -m tests.servers.flink` installs what the tests need, or says why it cannot.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.servers.children import children
from tests.servers.flink_rest import FlinkRest, Job, NoAnswer
from tests.servers.flink_settings import (
    Heaps,
    JobManagerPorts,
    class_path,
    cluster_settings,
    java_command,
    job_server_class_path,
    task_manager_memory,
    task_manager_settings,
    write_settings,
)
from tests.servers.installing import InstallFailed, main
from tests.servers.java import JavaServer
from tests.servers.ports import free_ports, someone_listens
from tests.servers.program import Program
from tests.servers.server import Server

ROOT = Path(__file__).parents[2]
# Beam publishes its job server for Flink to Maven Central with all that it needs, and that is Flink itself.
FLINK = JavaServer(
    name="Flink",
    version="1.19-2.70.0",
    jars=(
        "org.apache.beam:beam-runners-flink-1.19:2.70.0",
        # The job service of 2.70 could not be had when this was tried; 2.65 was the newest. What that needs must be of
        # the runner's version all the same: the harness holds copies of the runner's classes.
        "org.apache.beam:beam-runners-java-job-service:2.65.0",
        "org.apache.beam:beam-sdks-java-expansion-service:2.70.0",
        "org.apache.beam:beam-sdks-java-harness:2.70.0",
        "org.apache.logging.log4j:log4j-slf4j2-impl:2.24.3",
        "org.apache.logging.log4j:log4j-core:2.24.3",
        "org.apache.logging.log4j:log4j-api:2.24.3",
    ),
    digest="77f2274ebc83fada2348fd9f5534d9e355bdffecea8721a0233ef8526fb26b67",
    java_variable="FLINK_JAVA_HOME",
    oldest_java=17,
    newest_java=17,  # the newest that Flink 1.19 supports
)
SECONDS_TO_START = 180.0


class FlinkCluster(Server):
    """JobManager, TaskManagers, job server and a pool of Python workers on free ports of this machine.

    Everything they write is under one folder. As a context manager it runs inside, and no process of it is left
    afterwards. All TaskManagers share the one pool, because a job names one address for its workers (in production
    that is "localhost", a pool beside each TaskManager).
    """

    def __init__(
        self, folder: Path, *, taskmanagers: int = 2, slots: int = 2, restarts: int = 20, heaps: Heaps | None = None
    ) -> None:
        """Installs Flink if need be and writes the configuration; starts nothing.

        Args:
            folder: for checkpoints, staged artifacts, configuration and logs; made if it is missing.
            slots: of each TaskManager, that is how many parallel parts of jobs it takes.
            restarts: how often a job is restarted after failures before it fails for good.
        """
        self.folder = folder
        self._jars = FLINK.install()
        self._heaps = heaps or Heaps()
        rest, rpc, blobs, self._job_port, self._artifact_port, self._pool_port = free_ports(6)
        self.rest = FlinkRest(rest)
        for name in ("tmp", "checkpoints", "artifacts"):
            (folder / name).mkdir(parents=True)
        settings = cluster_settings(folder, JobManagerPorts(rest, rpc, blobs), restarts=restarts)
        self.job_manager = self._job_manager(settings)
        self.task_managers = [self._task_manager(f"taskmanager-{i}", settings, slots) for i in range(taskmanagers)]
        self.job_server = self._job_server(rest)
        self.pool = self._pool()

    @property
    def programs(self) -> list[Program]:
        """All processes, in the order of their start."""
        return [self.job_manager, *self.task_managers, self.pool, self.job_server]

    def start(self, *, timeout: float = SECONDS_TO_START) -> None:
        """Starts whatever does not run, and waits until jobs can be submitted."""
        for program in self.programs:
            if not program.running:
                program.start()
        self.job_manager.wait_until(self._has(len(self.task_managers)), timeout=timeout)
        self.pool.wait_until(lambda: someone_listens(self._pool_port), timeout=timeout)
        self.job_server.wait_until(lambda: someone_listens(self._job_port), timeout=timeout)

    def kill(self) -> None:
        """Ends all processes with SIGKILL."""
        for program in reversed(self.programs):
            program.kill()

    def beam_options(self, *, parallelism: int = 1, checkpoint_ms: int | None = None) -> list[str]:
        """The options with which a pipeline runs here.

        Args:
            checkpoint_ms: time between checkpoints; without it a job has none, and commits no offsets.
        """
        options = [
            "--runner=PortableRunner",
            f"--job_endpoint=127.0.0.1:{self._job_port}",
            f"--artifact_endpoint=127.0.0.1:{self._artifact_port}",
            "--environment_type=EXTERNAL",
            f"--environment_config=127.0.0.1:{self._pool_port}",
            f"--parallelism={parallelism}",
        ]
        if checkpoint_ms is not None:
            # A checkpoint amid a bundle keeps the bundle's output back until the next bundle ends. The impulse that
            # starts a source is a bundle without a next one: without the second option such a stream reads nothing.
            options += [f"--checkpointing_interval={checkpoint_ms}", "--finish_bundle_before_checkpointing"]
        return options

    def jobs(self) -> list[Job]:
        """All jobs that the cluster knows, the newest first."""
        return self.rest.jobs()

    def kill_taskmanager(self, number: int) -> None:
        """Ends one TaskManager with SIGKILL, and whatever it had not checkpointed is lost."""
        self.task_managers[number].kill()

    def start_taskmanager(self, number: int, *, timeout: float = SECONDS_TO_START) -> None:
        """Starts a TaskManager that was killed and waits until the JobManager counts it in."""
        program = self.task_managers[number]
        program.start()
        program.wait_until(self._knows(program.name), timeout=timeout)

    def workers(self) -> list[int]:
        """The process ids of the Python workers, the newest last."""
        return children(self.pool.pid) if self.pool.pid else []

    def kill_worker(self) -> int:
        """Ends the newest Python worker with SIGKILL and returns the process id that it had."""
        workers = self.workers()
        if not workers:
            raise RuntimeError("there is no Python worker to kill: submit a job and wait until it runs")
        os.kill(workers[-1], signal.SIGKILL)
        return workers[-1]

    def _has(self, count: int) -> Callable[[], bool]:
        return lambda: len(self._registered()) >= count

    def _knows(self, name: str) -> Callable[[], bool]:
        return lambda: name in self._registered()

    def _registered(self) -> Sequence[str]:
        try:
            return self.rest.task_managers()
        except NoAnswer:
            return ()

    def _job_manager(self, settings: dict[str, object]) -> Program:
        folder = write_settings(self.folder / "jobmanager", settings)
        main = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        return self._java(
            "jobmanager",
            main,
            "--configDir",
            str(folder),
            heap=self._heaps.job_manager,
            logging=folder,
            options=class_path(self._jars),
        )

    def _task_manager(self, name: str, settings: dict[str, object], slots: int) -> Program:
        heap = self._heaps.task_manager
        own = task_manager_settings(name, heap=heap, slots=slots)
        folder = write_settings(self.folder / name, {**settings, **own})
        main = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        options = [*class_path(self._jars), *task_manager_memory()]
        return self._java(name, main, "--configDir", str(folder), heap=heap, logging=folder, options=options)

    def _job_server(self, rest_port: int) -> Program:
        arguments = [
            "--job-host=127.0.0.1",
            f"--job-port={self._job_port}",
            f"--artifact-port={self._artifact_port}",
            "--expansion-port=-1",  # none: everything here is Python
            f"--artifacts-dir={self.folder / 'artifacts'}",
            f"--flink-master=127.0.0.1:{rest_port}",
        ]
        logging = self.folder / "jobmanager"
        main = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        options = job_server_class_path(self._jars)
        return self._java("jobserver", main, *arguments, heap=self._heaps.job_server, logging=logging, options=options)

    def _java(self, name: str, main: str, *arguments: str, heap: int, logging: Path, options: Sequence[str]) -> Program:
        java = FLINK.java_home()
        if not java:
            raise InstallFailed(str(FLINK.unavailable_reason()))
        command = java_command(main, *arguments, java=java, heap=heap, logging=logging / "log4j2.xml", options=options)
        return Program(name, self.folder, command)

    def _pool(self) -> Program:
        # The pool starts its workers as "python", so this environment's comes first.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        command = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main"]
        environment = {"PATH": path, "PYTHONPATH": str(ROOT)}
        return Program("pool", self.folder, [*command, f"--service_port={self._pool_port}"], environment=environment)


if __name__ == "__main__":
    main("real Flink", FLINK.unavailable_reason(), FLINK.install)
