"""Installations of servers name what they need, and never keep half of a download or build."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers import elasticsearch_installation, kubernetes_installation, maven, prism
from tests.servers.flink import FLINK
from tests.servers.flink_settings import job_server_class_path
from tests.servers.installing import InstallFailed
from tests.servers.java import find_java, java_version
from tests.servers.kafka import KAFKA

GO_MOD = """module k8s.io/kubernetes
go 1.24.0
replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
"""


def make_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n', encoding="utf-8")
    return home


def make_program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and only this folder on the PATH."""
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tests.servers.go.USUAL_GO", tmp_path / "no-go")
    monkeypatch.setattr("tests.servers.java.USUAL_FOLDERS", (str(tmp_path / "java-*"),))


@pytest.mark.parametrize(("version", "major"), [("25.0.3", 25), ("21", 21), ("1.8.0_392", 1)])
def test_the_java_version_is_read_from_the_release_file(tmp_path: Path, version: str, major: int) -> None:
    assert java_version(tmp_path) == 0
    assert java_version(make_java(tmp_path / "java", version)) == major


def test_the_newest_java_that_fits_is_taken_unless_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_java(variable="SOME_JAVA_HOME", at_least=17) is None
    old, fitting, newest = (make_java(tmp_path / f"java-{version}", version) for version in ("9.0.4", "17.0.15", "25"))
    assert find_java(variable="SOME_JAVA_HOME", at_least=17) == newest
    assert find_java(variable="SOME_JAVA_HOME", at_least=17, at_most=17) == fitting
    monkeypatch.setenv("SOME_JAVA_HOME", str(old))
    assert find_java(variable="SOME_JAVA_HOME", at_least=9) == old
    assert find_java(variable="SOME_JAVA_HOME", at_least=17) is None


@pytest.mark.parametrize(
    ("java", "needed"), [("11.0.2", "Flink needs Java 17: install"), ("25.0.3", "Flink needs Java 17: install")]
)
def test_a_server_names_the_java_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: str, needed: str
) -> None:
    monkeypatch.setenv(FLINK.java_variable, str(make_java(tmp_path / "java", java)))
    assert needed in str(FLINK.unavailable_reason())
    assert "Kafka needs Java 17 or newer" in str(KAFKA.unavailable_reason())


@pytest.mark.parametrize(
    ("installation", "variable"), [(elasticsearch_installation, "ES_JAVA_HOME"), (KAFKA, "KAFKA_JAVA_HOME")]
)
def test_a_download_needs_maven_and_must_be_the_expected_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installation: Any, variable: str
) -> None:
    monkeypatch.setenv(variable, str(make_java(tmp_path / "java", "25.0.3")))
    assert "Maven is needed" in installation.unavailable_reason()
    with pytest.raises(InstallFailed, match="Maven is needed"):
        installation.install()
    monkeypatch.setattr(maven, "fetch_all", lambda jars, folder: (folder / "other.jar").touch())
    monkeypatch.setattr(maven, "fetch", lambda zip_file, folder: (folder / "elasticsearch-9.5.0.zip").touch())
    with pytest.raises(ValueError, match="than expected"):
        installation.install()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_only_known_versions_of_elasticsearch_are_installed() -> None:
    with pytest.raises(ValueError, match="not known"):
        elasticsearch_installation.install("1.0.0")


def test_a_job_server_sends_only_the_jars_of_flink_and_its_runner(tmp_path: Path) -> None:
    for name in ("beam-runners-flink-1.jar", "flink-java-1.jar", "flink-shaded-netty-1.jar", "guava-1.jar"):
        (tmp_path / name).touch()
    assert job_server_class_path(tmp_path) == [
        f"-Xbootclasspath/a:{tmp_path}/flink-shaded-netty-1.jar:{tmp_path}/guava-1.jar",
        "-cp",
        f"{tmp_path}/beam-runners-flink-1.jar:{tmp_path}/flink-java-1.jar",
    ]


@pytest.mark.parametrize("install", [prism.install, kubernetes_installation.install])
def test_of_a_failed_build_nothing_is_kept(tmp_path: Path, install: Callable[[], Path]) -> None:
    make_program(tmp_path, "go", 'echo half > "$GOBIN/prism"; echo no network >&2; exit 1')
    with pytest.raises(InstallFailed, match="no network"):
        install()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_prism_is_built_once_and_needs_go(tmp_path: Path) -> None:
    assert "Go is needed" in str(prism.unavailable_reason())
    make_program(tmp_path, "go", 'echo "$2" > "$GOBIN/prism"')
    program = prism.install()
    assert program.read_text().endswith(f"/prism@v{prism.VERSION}\n")
    (tmp_path / "go").unlink()
    assert prism.unavailable_reason() is None
    assert prism.install() == program


def test_an_api_server_is_built_of_the_published_parts_and_says_what_it_needs(tmp_path: Path) -> None:
    assert "kubectl is needed" in str(kubernetes_installation.unavailable_reason())
    make_program(tmp_path, "kubectl", "")
    assert "Go is needed" in str(kubernetes_installation.unavailable_reason())
    (tmp_path / "published.mod").write_text(GO_MOD, encoding="utf-8")
    answer = json.dumps({"GoMod": str(tmp_path / "published.mod")})
    # `go mod download` answers; `go build` writes its go.mod to where -o says.
    build = 'while [ "$1" != -o ]; do shift; done; /bin/cat go.mod > "$2"'
    make_program(tmp_path, "go", f"if [ \"$1\" = mod ]; then echo '{answer}'; else {build}; fi")
    assert "Maven is needed" in str(kubernetes_installation.unavailable_reason())
    assert "python -m tests.servers.kubernetes" in str(kubernetes_installation.unbuilt_reason())
    folder, version = kubernetes_installation.install(), kubernetes_installation.VERSION
    built = (folder / "kube-apiserver").read_text(encoding="utf-8")
    assert f"require k8s.io/kubernetes v{version}" in built
    assert f"replace k8s.io/api => k8s.io/api v0.{version.partition('.')[2]}" in built
    assert "go 1.24.0" in built
    assert "etcd/server" in (folder / "etcd").read_text(encoding="utf-8")
