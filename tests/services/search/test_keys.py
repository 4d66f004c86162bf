"""The command that makes and revokes keys."""

import subprocess
import sys
from pathlib import Path

import pytest

from services.search.guards.callers import Scope
from services.search.guards.key_file import SECRET, hashed, read_keys
from services.search.keys import add, main, revoke
from similarity.errors import InvalidInput
from similarity.upkeep.audit import read_entries

ROOT = Path(__file__).parents[3]


def test_a_secret_is_printed_once_and_kept_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "keys.json"
    main(["add", "ann", "--scope", "read", "--scope", "write", "--expires", "2999-01-01", "--file", str(file)])
    printed = capsys.readouterr()
    secret = printed.out.strip()
    assert SECRET.fullmatch(secret)
    assert "It is shown only now" in printed.err
    (key,) = read_keys(file)
    assert key.sha256 == hashed(secret)
    assert key.scopes == {Scope.READ, Scope.WRITE}
    assert str(key.expires) == "2999-01-01 00:00:00+00:00"
    main(["list", "--file", str(file)])
    listed = capsys.readouterr().out
    assert f"ann  {key.id}  read,write" in listed
    assert secret.split("_", 2)[2] not in listed
    assert key.sha256 not in listed


def test_keys_are_revoked_by_name_or_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    for name in ("ann", "ann", "bob"):
        add(file, name, [Scope.READ])
    first = read_keys(file)[0]
    assert revoke(file, "ann", identity=first.id) == 1
    assert [key.name for key in read_keys(file)] == ["ann", "bob"]
    assert revoke(file, "ann") == 1
    assert [key.name for key in read_keys(file)] == ["bob"]
    with pytest.raises(
        InvalidInput, match=r"there is no key of 'ann'; list the keys with: .* list --file .*keys\.json"
    ):
        revoke(file, "ann")
    with pytest.raises(InvalidInput, match=f"there is no key {first.id} of 'bob'"):
        revoke(file, "bob", identity=first.id)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "ann"], "the key has no scope"),
        (["add", "ann", "--scope", "read", "--expires", "2001-01-01"], "choose a day to come"),
        (["list"], "there is no file of keys"),
        (["revoke", "ann"], "there is no file of keys"),
    ],
)
def test_a_mistake_is_one_line_and_a_failure(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*arguments, "--file", str(tmp_path / "keys.json")])
    assert str(exit_.value.code).startswith("services.search.keys: ")
    assert message in str(exit_.value.code)


def test_a_key_is_revoked_in_the_file_that_a_link_names(tmp_path: Path) -> None:
    real, link = tmp_path / "secrets" / "keys.json", tmp_path / "keys.json"
    real.parent.mkdir()
    link.symlink_to(real)
    add(link, "ann", [Scope.READ])
    assert [key.name for key in read_keys(real)] == ["ann"]
    assert revoke(link, "ann") == 1
    assert read_keys(real) == []
    assert link.is_symlink()


def test_a_broken_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text("precious")
    with pytest.raises(InvalidInput, match="not a file of keys"):
        add(file, "ann", [Scope.READ])
    assert file.read_text() == "precious"


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        add(tmp_path / "no" / "keys.json", "ann", [Scope.READ])


@pytest.mark.integration
def test_keys_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "services.search.keys", "add", "ann", "--scope", "read", "--file"]
    running = [
        subprocess.Popen(
            [*command, str(tmp_path / "keys.json")], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(6)
    ]
    assert [process.wait() for process in running if process.communicate()] == [0] * 6
    assert len(read_keys(tmp_path / "keys.json")) == 6


def test_changes_of_keys_are_on_record_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMILARITY_AUDIT", str(tmp_path / "audit.jsonl"))
    file = str(tmp_path / "keys.json")
    main(["add", "ann", "--scope", "write", "--scope", "read", "--file", file])
    secret = capsys.readouterr().out.strip()
    identity = read_keys(Path(file))[0].id
    main(["revoke", "ann", "--id", identity, "--file", file])
    with pytest.raises(SystemExit):
        main(["revoke", "bob", "--file", file])
    entries = list(read_entries(str(tmp_path / "audit.jsonl")))
    assert [
        (entry["action"], entry["outcome"], entry["subject"]) for entry in entries if entry["outcome"] != "begun"
    ] == [
        ("key-add", "done", f"ann {identity} read,write"),
        ("key-revoke", "done", f"ann {identity}"),
        ("key-revoke", "failed", "bob"),
    ]
    assert secret.split("_", 2)[2] not in (tmp_path / "audit.jsonl").read_text()


def test_without_an_index_the_record_is_beside_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIMILARITY_AUDIT", "SIMILARITY_INDEX"):
        monkeypatch.delenv(name, raising=False)
    main(["add", "ann", "--scope", "read", "--file", str(tmp_path / "keys.json")])
    assert len(list(read_entries(str(tmp_path / "keys.json.audit.jsonl")))) == 2
