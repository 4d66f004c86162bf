from pathlib import Path

import pytest

from tests.servers.java import find_java, java_version


def make_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n', encoding="utf-8")
    return home


@pytest.mark.parametrize(("version", "major"), [("25.0.3", 25), ("21", 21), ("17.0.15", 17), ("1.8.0_392", 1)])
def test_the_version_is_read_from_the_release_file(tmp_path: Path, version: str, major: int) -> None:
    assert java_version(make_java(tmp_path / "java", version)) == major


def test_a_folder_without_java_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path) == 0


def test_the_java_that_is_named_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "java", "21.0.1")
    monkeypatch.setenv("SOME_JAVA_HOME", str(home))
    assert find_java(variable="SOME_JAVA_HOME", at_least=21) == home
    assert find_java(variable="SOME_JAVA_HOME", at_least=22) is None


def test_the_newest_java_is_taken_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_JAVA_HOME", raising=False)
    monkeypatch.setattr("tests.servers.java.USUAL_FOLDERS", (str(tmp_path / "*"),))
    assert find_java(variable="SOME_JAVA_HOME", at_least=17) is None
    make_java(tmp_path / "java-9", "9.0.4")
    newest = make_java(tmp_path / "java-25", "25.0.3")
    make_java(tmp_path / "java-21", "21.0.1")
    assert find_java(variable="SOME_JAVA_HOME", at_least=17) == newest


def test_a_java_that_is_too_new_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_JAVA_HOME", raising=False)
    monkeypatch.setattr("tests.servers.java.USUAL_FOLDERS", (str(tmp_path / "*"),))
    newest = make_java(tmp_path / "java-25", "25.0.3")
    fitting = make_java(tmp_path / "java-17", "17.0.15")
    assert find_java(variable="SOME_JAVA_HOME", at_least=17, at_most=17) == fitting
    monkeypatch.setenv("SOME_JAVA_HOME", str(newest))
    assert find_java(variable="SOME_JAVA_HOME", at_least=17, at_most=17) is None
