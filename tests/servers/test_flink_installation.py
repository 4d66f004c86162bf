from pathlib import Path

import pytest

from tests.servers.flink_installation import JAVA_VARIABLE, install, unavailable_reason
from tests.servers.flink_settings import job_server_class_path
from tests.servers.test_java import make_java


@pytest.mark.parametrize("version", ["11.0.2", "25.0.3"])
def test_flink_says_which_java_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv(JAVA_VARIABLE, str(make_java(tmp_path / "java", version)))
    reason = str(unavailable_reason())
    assert "needs Java 17" in reason
    assert JAVA_VARIABLE in reason


def test_flink_says_that_it_needs_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_VARIABLE, str(make_java(tmp_path / "java", "17.0.15")))
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Maven is needed" in str(unavailable_reason())


def test_jars_other_than_the_expected_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tests.servers.maven.fetch_all", lambda jars, folder: (folder / "other.jar").touch())
    with pytest.raises(ValueError, match="other jars of Flink"):
        install()
    assert not list((tmp_path / "cache").glob("*/*.jar"))


def test_a_job_server_sends_only_the_jars_of_flink_and_its_runner(tmp_path: Path) -> None:
    for name in ("beam-runners-flink-1.jar", "flink-java-1.jar", "flink-shaded-netty-1.jar", "guava-1.jar"):
        (tmp_path / name).touch()
    assert job_server_class_path(tmp_path) == [
        f"-Xbootclasspath/a:{tmp_path}/flink-shaded-netty-1.jar:{tmp_path}/guava-1.jar",
        "-cp",
        f"{tmp_path}/beam-runners-flink-1.jar:{tmp_path}/flink-java-1.jar",
    ]
