"""The keys of a running service."""

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.search.guards.callers import Caller, Scope
from services.search.guards.key_file import Key, hashed, new_key, write_keys
from services.search.guards.key_ring import KeyRing
from similarity.errors import InvalidInput
from tests.services.search.asgi import Clock

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Case:
    """A file with one key of `ann`, and a ring that reads it; `later` moves the clock past the next look."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys.json"
        self.now = NOW
        self.clock = Clock()
        self.key, self.secret = new_key("ann", [Scope.READ], now=NOW, expires=NOW + timedelta(days=30))
        write_keys(self.path, [self.key])
        self.ring = KeyRing(self.path, now=lambda: self.now, clock=self.clock)

    def later(self) -> None:
        self.clock.now += 1.5


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_secret_finds_its_caller(case: Case) -> None:
    assert case.ring.caller(case.secret) == Caller(name="ann", scopes=frozenset({Scope.READ}))


@pytest.mark.parametrize("change", ["", "x", "ä", "\ud800", "cs_000000000000_" + "A" * 43, "cs__"])
def test_no_other_secret_does(case: Case, change: str) -> None:
    assert case.ring.caller(change) is None


def test_the_right_id_with_a_wrong_secret_finds_nobody(case: Case) -> None:
    last = "B" if case.secret[-1] != "B" else "C"
    assert case.ring.caller(case.secret[:-1] + last) is None
    assert case.ring.caller(hashed(case.secret)) is None


def test_secrets_are_compared_in_constant_time_and_unknown_ids_are_compared_too(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []

    def compare(given: str, kept: str) -> bool:
        compared.append((given, kept))
        return given == kept

    monkeypatch.setattr("hmac.compare_digest", compare)
    unknown = "cs_000000000000_" + "A" * 43
    assert case.ring.caller(unknown) is None
    assert case.ring.caller(case.secret) is not None
    assert compared == [(hashed(unknown), "0" * 64), (hashed(case.secret), case.key.sha256)]


def test_an_expired_key_finds_nobody(case: Case) -> None:
    case.now = NOW + timedelta(days=30)
    assert case.ring.caller(case.secret) is None


def test_two_keys_of_one_name_are_one_caller_while_they_are_rotated(case: Case) -> None:
    second, new_secret = new_key("ann", [Scope.READ], now=NOW)
    write_keys(case.path, [case.key, second])
    case.later()
    assert case.ring.caller(case.secret) == case.ring.caller(new_secret) == second.caller
    write_keys(case.path, [second])
    case.later()
    assert case.ring.caller(case.secret) is None
    assert case.ring.caller(new_secret) == second.caller


def test_a_broken_file_leaves_the_last_good_keys_and_is_reported_once(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    case.path.write_text('{"keys": [')
    for _ in range(3):
        case.later()
        assert case.ring.caller(case.secret) is not None
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the earlier keys stay in use" in caplog.text
    write_keys(case.path, [])
    case.later()
    assert case.ring.caller(case.secret) is None


def test_a_file_that_is_gone_leaves_the_last_good_keys(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    case.path.unlink()
    case.later()
    assert case.ring.caller(case.secret) is not None
    assert "the earlier keys stay in use" in caplog.text


def test_the_file_is_looked_at_once_a_second_and_read_only_when_it_changed(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def read(path: Path) -> list[Key]:
        reads.append(path)
        return []

    monkeypatch.setattr("services.search.guards.key_ring.read_keys", read)
    case.later()
    case.ring.caller(case.secret)
    assert reads == []
    os.utime(case.path, (1, 1))
    case.ring.caller(case.secret)
    assert reads == []
    case.later()
    case.ring.caller(case.secret)
    assert reads == [case.path]


def test_a_service_does_not_start_with_a_file_that_holds_no_key(case: Case) -> None:
    write_keys(case.path, [])
    with pytest.raises(InvalidInput, match=f"holds no key; make one with: python -m .* --file {case.path}$"):
        KeyRing(case.path)
    case.path.write_bytes(b"")
    with pytest.raises(InvalidInput, match="is not a file of keys"):
        KeyRing(case.path)


def test_a_file_that_others_may_read_is_warned_of(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    assert caplog.records == []
    case.path.chmod(0o640)
    KeyRing(case.path)
    assert "chmod 600 keeps it private" in caplog.text
