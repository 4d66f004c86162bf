"""Builds Kubernetes' API server and its store, etcd, into the cache folder, once, for all checkouts of one user.

Both are published as source, as Go modules; Go verifies them with its checksum database. The custom resources'
definitions come with the module of the Prometheus operator and with a jar of the Flink operator.
"""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.servers import maven
from tests.servers.go import MISSING, find_go, run_go
from tests.servers.installing import cache_folder, install_once

VERSION = "1.33.13"  # at most one minor version from kubectl's
ETCD_VERSION = "3.6.16"
PROMETHEUS_OPERATOR_VERSION = "0.85.0"
FLINK_OPERATOR_VERSION = "1.10.0"
FOLDER = f"kubernetes-{VERSION}"
DEFINITIONS = f"definitions-{PROMETHEUS_OPERATOR_VERSION}-{FLINK_OPERATOR_VERSION}"
KUBERNETES = "k8s.io/kubernetes"
ETCD = "go.etcd.io/etcd/server/v3"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
FLINK_OPERATOR = f"org.apache.flink:flink-kubernetes-operator-api:{FLINK_OPERATOR_VERSION}:jar"


def unavailable_reason() -> str | None:
    """Why no API server can run here, and what to do about it; None if it can."""
    if not shutil.which("kubectl"):
        return "kubectl is needed to talk to an API server: https://kubernetes.io/docs/tasks/tools"
    if not ((cache_folder() / FOLDER).exists() or find_go()):
        return MISSING
    if not ((cache_folder() / DEFINITIONS).exists() or (find_go() and maven.find_maven())):
        return "Maven is needed to download the definitions of custom resources (Debian: apt-get install maven)"
    return None


def unbuilt_reason() -> str | None:
    """Why tests should not wait for the build, and how to have it; None if it is done."""
    if (cache_folder() / FOLDER).exists() and (cache_folder() / DEFINITIONS).exists():
        return None
    return "Kubernetes' API server takes ten minutes to build, once: python -m tests.servers.kubernetes"


def install() -> Path:
    """The folder of the programs; builds them if they are not there yet: ten minutes of two cores.

    Raises:
        InstallFailed: Go is missing or too old, or there is no network.
    """
    return install_once(FOLDER, _build)


def install_definitions() -> Path:
    """A folder with a file for each definition of a custom resource that the manifests use.

    Raises:
        InstallFailed: Go or Maven is missing, or there is no network.
    """
    return install_once(DEFINITIONS, _fetch_definitions)


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
        run_go("build", *options, "-o", str(program), package, folder=Path(source))


def _lines_of_kubernetes(folder: Path) -> list[str]:
    """Kubernetes' go.mod takes its own parts from folders beside it; here they come in their published versions."""
    module = json.loads(run_go("mod", "download", "-json", f"{KUBERNETES}@v{VERSION}", folder=folder))
    lines = Path(module["GoMod"]).read_text(encoding="utf-8").splitlines()
    language = [line for line in lines if line.startswith("go ")]
    parts = [line.split()[0] for line in lines if "=> ./staging/" in line]
    published = f"v0.{VERSION.partition('.')[2]}"
    replaced = [f"replace {part} => {part} {published}" for part in parts]
    return [*language, f"require {KUBERNETES} v{VERSION}", *replaced]


def _fetch_definitions(folder: Path) -> None:
    module = json.loads(
        run_go("mod", "download", "-json", f"{PROMETHEUS_OPERATOR}@v{PROMETHEUS_OPERATOR_VERSION}", folder=folder)
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
