"""Builds Kubernetes' API server and its store, etcd, into the cache folder, once, for all checkouts of one user.

Both are published as source, as Go modules; Go verifies them with its checksum database. The custom resources'
definitions come with the module of the Prometheus operator and with a jar of the Flink operator.
"""

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.servers import maven
from tests.servers.cache import cache_folder
from tests.servers.installing import install_once
from tests.servers.prism_installation import BuildFailed, find_go

VERSION = "1.33.13"  # at most one minor version from kubectl's
ETCD_VERSION = "3.6.16"
PROMETHEUS_OPERATOR_VERSION = "0.85.0"
FLINK_OPERATOR_VERSION = "1.10.0"
KUBERNETES = "k8s.io/kubernetes"
ETCD = "go.etcd.io/etcd/server/v3"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
FLINK_OPERATOR = f"org.apache.flink:flink-kubernetes-operator-api:{FLINK_OPERATOR_VERSION}:jar"


def unavailable_reason() -> str | None:
    """Why no API server can run here, and what to do about it; None if it can."""
    if not shutil.which("kubectl"):
        return "kubectl is needed to talk to an API server: https://kubernetes.io/docs/tasks/tools"
    if not (_home().exists() or find_go()):
        return (
            "Go is needed to build Kubernetes' API server: install it (https://go.dev/dl) so that `go` is on the PATH"
        )
    if not (_definitions().exists() or (find_go() and maven.find_maven())):
        return "Maven is needed to download the definitions of custom resources (Debian: apt-get install maven)"
    return None


def unbuilt_reason() -> str | None:
    """Why tests should not wait for the build, and how to have it; None if it is done."""
    if _home().exists() and _definitions().exists():
        return None
    return "Kubernetes' API server takes ten minutes to build, once: python -m tests.servers.kubernetes"


def install() -> Path:
    """The folder of the programs; builds them if they are not there yet: ten minutes of two cores.

    Raises:
        BuildFailed: Go is missing or too old, or there is no network.
    """
    return install_once(_home(), _build)


def install_definitions() -> Path:
    """A folder with a file for each definition of a custom resource that the manifests use.

    Raises:
        BuildFailed: Go is missing, or there is no network.
        maven.DownloadFailed: Maven is missing, or there is no network.
    """
    return install_once(_definitions(), _fetch_definitions)


def _home() -> Path:
    return cache_folder() / f"kubernetes-{VERSION}"


def _definitions() -> Path:
    return cache_folder() / f"definitions-{PROMETHEUS_OPERATOR_VERSION}-{FLINK_OPERATOR_VERSION}"


def _build(folder: Path) -> None:
    named = f"-X k8s.io/component-base/version.gitVersion=v{VERSION}"
    lines = _lines_of_kubernetes(folder)
    _build_program(folder / "kube-apiserver", f"{KUBERNETES}/cmd/kube-apiserver", lines=lines, linking=named)
    _build_program(folder / "etcd", ETCD, lines=["go 1.24.0", f"require {ETCD} v{ETCD_VERSION}"])


def _build_program(program: Path, package: str, *, lines: Sequence[str], linking: str = "") -> None:
    """Builds from a module of its own, of these lines: what a go.mod replaces counts only where one builds."""
    with tempfile.TemporaryDirectory() as source:
        Path(source, "go.mod").write_text("\n".join(["module tests/build", *lines]), encoding="utf-8")
        options = ["-mod=mod", "-trimpath", f"-ldflags=-s -w {linking}"]
        _go(Path(source), "build", *options, "-o", str(program), package)


def _lines_of_kubernetes(folder: Path) -> list[str]:
    """Kubernetes' go.mod takes its own parts from folders beside it; here they come in their published versions."""
    module = json.loads(_go(folder, "mod", "download", "-json", f"{KUBERNETES}@v{VERSION}"))
    lines = Path(module["GoMod"]).read_text(encoding="utf-8").splitlines()
    language = [line for line in lines if line.startswith("go ")]
    parts = [line.split()[0] for line in lines if "=> ./staging/" in line]
    published = f"v0.{VERSION.partition('.')[2]}"
    replaced = [f"replace {part} => {part} {published}" for part in parts]
    return [*language, f"require {KUBERNETES} v{VERSION}", *replaced]


def _fetch_definitions(folder: Path) -> None:
    module = json.loads(
        _go(folder, "mod", "download", "-json", f"{PROMETHEUS_OPERATOR}@v{PROMETHEUS_OPERATOR_VERSION}")
    )
    for kind in ("podmonitors", "prometheusrules", "servicemonitors"):
        file = Path(module["Dir"], "example", "prometheus-operator-crd", f"monitoring.coreos.com_{kind}.yaml")
        (folder / file.name).write_bytes(file.read_bytes())
    maven.fetch(FLINK_OPERATOR, folder)
    [jar] = folder.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        name = "flinkdeployments.flink.apache.org-v1.yml"
        (folder / name).write_bytes(archive.read(f"META-INF/fabric8/{name}"))
    jar.unlink()


def _go(folder: Path, *arguments: str) -> str:
    """What Go says on standard output. Outside any workspace, and with the toolchain that is there."""
    go = find_go()
    if not go:
        raise BuildFailed(str(unavailable_reason()))
    environment = {**os.environ, "GOFLAGS": "", "GOWORK": "off"}
    done = subprocess.run([go, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"Go could not do {' '.join(arguments)}; is there a network?\n{done.stderr[-2000:]}")
    return done.stdout
