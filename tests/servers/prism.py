"""Runs Prism, Beam's runner for one machine, for tests.

    with Prism(tmp_path) as prism:
        options = PipelineOptions(prism.beam_options(streaming=True))
        prism.kill()                         # SIGKILL; also stop()
        prism.start()                        # on the same port; it knows nothing of earlier jobs

The workers are threads of the process that submits the job.
`python -m tests.servers.prism` builds what the tests need, or says why it cannot.
"""

from pathlib import Path

from tests.servers import go
from tests.servers.installing import cache_folder, install_once, main
from tests.servers.ports import free_ports, someone_listens
from tests.servers.program import Program
from tests.servers.server import Server

VERSION = "2.77.0"  # that of the apache-beam in the lock files
FOLDER = f"prism-{VERSION}"
SECONDS_TO_START = 30.0
# How long a job may take, in seconds: the SDK gives up listening to Prism after this time (60 by default).
SECONDS_OF_A_JOB = 24 * 3600


def unavailable_reason() -> str | None:
    """Returns why no Prism can run here, and what to do about it; None if it can."""
    return None if (cache_folder() / FOLDER).exists() or go.find_go() else go.MISSING


def install() -> Path:
    """Returns the program; builds it if it is not there yet, which takes minutes.

    Raises:
        InstallFailed: Go is missing or too old, or there is no network.
    """
    return install_once(FOLDER, _build) / "prism"


def _build(folder: Path) -> None:
    module = f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{VERSION}"
    go.run_go("install", module, folder=folder, GOBIN=str(folder))


class Prism(Server):
    """A job service on a free port of this machine, with its log under one folder.

    As a context manager it runs inside, and no process of it is left afterwards.
    """

    def __init__(self, folder: Path) -> None:
        """Builds Prism if need be; starts nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        (self._port,) = free_ports(1)
        command = [str(install()), f"-job_port={self._port}", "-serve_http=false", "-log_kind=text"]
        self._program = Program("prism", folder, command)

    @property
    def endpoint(self) -> str:
        """The address of the job service, `host:port`, the same after each restart."""
        return f"127.0.0.1:{self._port}"

    @property
    def log(self) -> Path:
        """What Prism and the workers said."""
        return self._program.log

    @property
    def pid(self) -> int | None:
        """The process id, None while it does not run."""
        return self._program.pid

    def beam_options(self, *, streaming: bool = False) -> list[str]:
        """The options with which a pipeline runs here."""
        options = ["--runner=PrismRunner", f"--job_endpoint={self.endpoint}", "--environment_type=LOOPBACK"]
        return [*options, f"--job_server_timeout={SECONDS_OF_A_JOB}", *(["--streaming"] if streaming else [])]

    def start(self) -> None:
        """Starts Prism and waits until it takes jobs."""
        self._program.start()
        self._program.wait_until(lambda: someone_listens(self._port), timeout=SECONDS_TO_START)

    def kill(self) -> None:
        """Ends Prism with SIGKILL, as a crash does; its jobs are gone with it."""
        self._program.kill()

    def stop(self) -> None:
        """Shuts Prism down in order; its jobs are gone all the same."""
        self._program.stop()


if __name__ == "__main__":
    main("Prism", None, install)
