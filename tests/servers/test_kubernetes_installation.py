import json
from pathlib import Path

import pytest

from tests.servers import prism_installation
from tests.servers.kubernetes_installation import VERSION, install, unavailable_reason, unbuilt_reason
from tests.servers.prism_installation import BuildFailed
from tests.servers.test_prism_installation import make_go

GO_MOD = """module k8s.io/kubernetes
go 1.24.0
replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
"""


@pytest.fixture(autouse=True)
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setattr(prism_installation, "USUAL_GO", tmp_path / "no-go")


def make_kubectl(folder: Path) -> None:
    (folder / "kubectl").touch()
    (folder / "kubectl").chmod(0o755)


def test_an_api_server_says_what_it_needs(tmp_path: Path) -> None:
    assert "kubectl is needed" in str(unavailable_reason())
    make_kubectl(tmp_path)
    assert "Go is needed" in str(unavailable_reason())
    make_go(tmp_path, "exit 1")
    assert "Maven is needed" in str(unavailable_reason())
    assert "python -m tests.servers.kubernetes" in str(unbuilt_reason())


def test_programs_are_built_of_the_published_parts(tmp_path: Path) -> None:
    (tmp_path / "published.mod").write_text(GO_MOD, encoding="utf-8")
    answer = json.dumps({"GoMod": str(tmp_path / "published.mod")})
    # `go mod download` answers; `go build` writes its go.mod to where -o says.
    build = 'while [ "$1" != -o ]; do shift; done; /bin/cat go.mod > "$2"'
    make_go(tmp_path, f"if [ \"$1\" = mod ]; then echo '{answer}'; else {build}; fi")
    folder = install()
    built = (folder / "kube-apiserver").read_text(encoding="utf-8")
    assert f"require k8s.io/kubernetes v{VERSION}" in built
    assert f"replace k8s.io/api => k8s.io/api v0.{VERSION.partition('.')[2]}" in built
    assert "go 1.24.0" in built
    assert "etcd/server" in (folder / "etcd").read_text(encoding="utf-8")


def test_of_a_failed_build_nothing_is_kept(tmp_path: Path) -> None:
    make_go(tmp_path, "echo no network >&2; exit 1")
    with pytest.raises(BuildFailed, match="no network"):
        install()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"kubernetes-{VERSION}.lock"]
