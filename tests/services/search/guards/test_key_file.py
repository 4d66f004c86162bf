"""The file of keys: what is in it, and what is not."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.search.guards.callers import Scope
from services.search.guards.key_file import SECRET, Key, hashed, new_key, read_keys, write_keys
from similarity.errors import InvalidInput

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def a_key(name: str = "ann") -> tuple[Key, str]:
    return new_key(name, [Scope.READ, Scope.FEEDBACK], now=NOW, expires=NOW + timedelta(days=1))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    keys = [a_key("ann")[0], new_key("bob", [Scope.ADMIN], now=NOW)[0]]
    write_keys(tmp_path / "keys.json", keys)
    assert read_keys(tmp_path / "keys.json") == keys


def test_the_file_holds_a_hash_and_never_the_secret(tmp_path: Path) -> None:
    key, secret = a_key()
    write_keys(tmp_path / "keys.json", [key])
    text = (tmp_path / "keys.json").read_text()
    assert secret.split("_", 2)[2] not in text
    assert hashed(secret) in text


def test_a_secret_has_256_random_bits_and_its_public_id() -> None:
    key, secret = a_key()
    parts = SECRET.fullmatch(secret)
    assert parts is not None
    assert parts["id"] == key.id
    # 43 characters of 6 bits hold 32 bytes.
    assert len(secret.removeprefix(f"cs_{key.id}_")) == 43
    assert len({a_key()[1] for _ in range(50)}) == 50


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("{}")
    path.chmod(0o644)
    write_keys(path, [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.json"
    write_keys(path, [a_key()[0]])
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_keys(path, [])
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["keys.json"]


def test_a_key_expires_to_the_second() -> None:
    key = a_key()[0]
    assert key.valid(NOW + timedelta(days=1, seconds=-1))
    assert not key.valid(NOW + timedelta(days=1))


@pytest.mark.parametrize(
    ("name", "scopes", "expires", "message"),
    [
        ("an n", [Scope.READ], None, "the name 'an n' cannot be used"),
        ("ann\n", [Scope.READ], None, "cannot be used"),
        ("ann", [], None, "the key has no scope; give one or more of read, write, feedback, admin"),
        ("ann", [Scope.READ], NOW, "choose a day to come"),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(
    name: str, scopes: list[Scope], expires: datetime | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        new_key(name, scopes, now=NOW, expires=expires)


def members(**changes: Any) -> dict[str, Any]:
    return {
        "id": "0123456789ab",
        "name": "ann",
        "scopes": ["read"],
        "sha256": "0" * 64,
        "created": "2026-05-01T00:00:00+00:00",
        "expires": None,
        **changes,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "the document: Input should be a valid dictionary"),
        ('{"keys": {}}', "keys: Input should be a valid list"),
        ({"keys": [{"name": "ann"}]}, "keys.0.id: Field required"),
        ({"keys": [members(scopes=["raed"])]}, "keys.0.scopes.0: Input should be 'read', 'write'"),
        ({"keys": [members(expires="soon")]}, "keys.0.expires: Input should be a valid datetime"),
        (
            {"keys": [members(sha256="a secret by mistake")]},
            "keys.0.sha256: String should match pattern .*keys add NAME --scope read --file makes one",
        ),
        ({"keys": [members(id="../..")]}, "keys.0.id: String should match pattern"),
        ({"keys": [members(name="ann\n")]}, "keys.0.name: String should match pattern"),
        ({"keys": [members(secret="a secret by mistake")]}, "keys.0.secret: Extra inputs are not permitted"),
        ({"keys": [members(), members()]}, f"two keys have the same id {members()['id']}; remove one"),
    ],
)
def test_a_wrong_file_is_refused_without_its_contents(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(InvalidInput, match=message) as refusal:
        read_keys(path)
    assert "a secret by mistake" not in str(refusal.value)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"python -m services\.search\.keys add"):
        read_keys(tmp_path / "keys.json")
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        read_keys(tmp_path)


def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [members(expires="2027-01-01")]}))
    assert read_keys(path)[0].expires == datetime(2027, 1, 1, tzinfo=UTC)
