"""Runs Kubernetes' API server with its store for tests, as processes of this machine.

    with KubernetesApi(tmp_path) as api:
        api.kubectl("apply", "--filename=-", text=manifests)

It checks, defaults, admits and keeps objects as in a cluster. Nothing acts on them: there are no
controllers and no nodes, so no pod ever runs.

`python -m tests.servers.kubernetes` builds what the tests need, or says why it cannot.
"""

import secrets
import shutil
import subprocess
from pathlib import Path

from tests.servers.installing import main
from tests.servers.kubernetes_installation import install, install_definitions, unavailable_reason
from tests.servers.ports import free_ports, someone_listens
from tests.servers.program import Program
from tests.servers.server import Server

SECONDS_TO_START = 120.0
# Whom the token makes: may do everything.
USER = "tests,tests,system:masters"
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: tests, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: "{authority}"}}}}]
users: [{{name: tests, user: {{token: "{token}"}}}}]
contexts: [{{name: tests, context: {{cluster: tests, user: tests}}}}]
current-context: tests
"""


class Refused(Exception):
    """kubectl ended with an error; the message is its own."""


class KubernetesApi(Server):
    """An API server and etcd on free ports of this machine, with all they write under one folder."""

    def __init__(self, folder: Path) -> None:
        """Builds both if need be; starts nothing."""
        programs = install()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._etcd_port, peer_port, self._port = free_ports(3)
        self._token = secrets.token_hex(16)
        store, peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{peer_port}"
        self._etcd = Program(
            "etcd",
            folder,
            [
                *(str(programs / "etcd"), "--name=tests", f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync"),
                *(f"--listen-client-urls={store}", f"--advertise-client-urls={store}"),
                *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
                f"--initial-cluster=tests={peers}",
            ],
        )
        self._server = Program(
            "kube-apiserver",
            folder,
            [
                *(str(programs / "kube-apiserver"), f"--etcd-servers={store}"),
                *("--bind-address=127.0.0.1", f"--secure-port={self._port}", f"--cert-dir={folder / 'certificates'}"),
                *(f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC"),
                *("--service-account-issuer=https://tests", f"--service-account-key-file={folder / 'accounts.key'}"),
                *(
                    f"--service-account-signing-key-file={folder / 'accounts.key'}",
                    "--service-cluster-ip-range=10.0.0.0/16",
                ),
            ],
        )

    def start(self) -> None:
        """Starts both, and waits until the server is ready."""
        (self._folder / "tokens.csv").write_text(f"{self._token},{USER}\n", encoding="utf-8")
        make = ["openssl", "genrsa", "-out", str(self._folder / "accounts.key"), "2048"]
        subprocess.run(make, check=True, capture_output=True)
        self._etcd.start()
        self._etcd.wait_until(lambda: someone_listens(self._etcd_port), timeout=SECONDS_TO_START)
        self._server.start()
        self._server.wait_until(lambda: someone_listens(self._port), timeout=SECONDS_TO_START)
        # It makes its certificate itself; the file holds the authority's too.
        authority = self._folder / "certificates" / "apiserver.crt"
        settings = KUBECONFIG.format(port=self._port, authority=authority, token=self._token)
        (self._folder / "kubeconfig").write_text(settings, encoding="utf-8")
        self._server.wait_until(self._ready, timeout=SECONDS_TO_START)

    def kill(self) -> None:
        """Ends both with SIGKILL."""
        self._server.kill()
        self._etcd.kill()

    def kubectl(self, *arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        """Runs kubectl against this server, with `text` on its standard input.

        Raises:
            Refused: it ended with an error.
        """
        done = self._kubectl(*arguments, text=text)
        if done.returncode:
            raise Refused(done.stderr)
        return done

    def define(self) -> None:
        """Makes the kinds of the Prometheus operator and of the Flink operator known."""
        folder = str(install_definitions())
        # On the server's side: the definitions are too long for kubectl's own annotation.
        self.kubectl("apply", "--server-side", f"--filename={folder}")
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"--filename={folder}")

    def _ready(self) -> bool:
        return self._kubectl("get", "--raw=/readyz").returncode == 0

    def _kubectl(self, *arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        # A cache of its own: others on this machine may talk to other servers at the same port.
        own = [f"--kubeconfig={self._folder / 'kubeconfig'}", f"--cache-dir={self._folder / 'cache'}"]
        command = [shutil.which("kubectl") or "kubectl", *own, *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main("Kubernetes' API server", unavailable_reason(), install, install_definitions)
