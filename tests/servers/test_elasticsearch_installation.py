from pathlib import Path

import pytest

from tests.servers.elasticsearch_installation import JAVA_VARIABLE, install, unavailable_reason
from tests.servers.test_java import make_java


def test_elasticsearch_says_which_java_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_VARIABLE, str(make_java(tmp_path / "java", "17.0.15")))
    reason = unavailable_reason()
    assert reason
    assert "needs Java 21 or newer" in reason
    assert JAVA_VARIABLE in reason


def test_elasticsearch_says_that_it_needs_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_VARIABLE, str(make_java(tmp_path / "java", "25.0.3")))
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = unavailable_reason()
    assert reason
    assert "Maven is needed" in reason


def test_only_known_versions_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="not known"):
        install("1.0.0")


def test_a_zip_other_than_the_expected_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANY_SIMILARITY_CACHE", str(tmp_path))
    zip_file = tmp_path / "dl" / "elasticsearch-9.5.0.zip"
    zip_file.parent.mkdir()
    zip_file.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the zip that was expected"):
        install("9.5.0")
    assert not (tmp_path / "elasticsearch-9.5.0").exists()
