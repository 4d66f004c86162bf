from pathlib import Path

import pytest

from tests.servers import maven
from tests.servers.kafka_installation import JAVA_VARIABLE, install, unavailable_reason
from tests.servers.test_java import make_java


def test_kafka_says_which_java_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_VARIABLE, str(make_java(tmp_path / "java", "11.0.2")))
    reason = unavailable_reason()
    assert reason
    assert "needs Java 17 or newer" in reason
    assert JAVA_VARIABLE in reason


def test_kafka_says_that_it_needs_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_VARIABLE, str(make_java(tmp_path / "java", "17.0.15")))
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = unavailable_reason()
    assert reason
    assert "Maven is needed" in reason


def test_jars_other_than_the_expected_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path))
    monkeypatch.setattr(maven, "fetch_all", lambda jars, folder: (folder / "kafka.jar").write_bytes(b"something else"))
    with pytest.raises(ValueError, match="other jars of Kafka"):
        install()
    assert not list(tmp_path.glob("kafka-*.jar"))
    assert not (tmp_path / "kafka-4.1.1").exists()
