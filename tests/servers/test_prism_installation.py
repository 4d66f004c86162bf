from pathlib import Path

import pytest

from tests.servers import prism_installation
from tests.servers.prism_installation import BuildFailed, install, unavailable_reason


@pytest.fixture(autouse=True)
def no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prism_installation, "USUAL_GO", tmp_path / "no-go")


def make_go(folder: Path, script: str) -> None:
    (folder / "go").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "go").chmod(0o755)


def test_prism_says_that_it_needs_go() -> None:
    assert "Go is needed" in str(unavailable_reason())
    with pytest.raises(BuildFailed, match="Go is needed"):
        install()


def test_prism_is_built_once(tmp_path: Path) -> None:
    make_go(tmp_path, 'echo "$2" > "$GOBIN/prism"')
    program = install()
    assert program.read_text().endswith(f"/prism@v{prism_installation.VERSION}\n")
    (tmp_path / "go").unlink()
    assert unavailable_reason() is None
    assert install() == program


def test_of_a_failed_build_nothing_is_kept(tmp_path: Path) -> None:
    make_go(tmp_path, 'echo half > "$GOBIN/prism"; echo no network >&2; exit 1')
    with pytest.raises(BuildFailed, match="no network"):
        install()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"prism-{prism_installation.VERSION}.lock"]
