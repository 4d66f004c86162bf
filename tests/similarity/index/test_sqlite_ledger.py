"""Damage to what the embedded index keeps for erasures: noticed, named by the check, and others go on."""

import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable
from similarity.index.ledger import DamagedErasure, ErasureState
from similarity.index.sqlite import SqliteIndex
from tests.contract.test_ledger import RECORD
from tests.faults.bit_flips import flipped
from tests.similarity.index.inspection import tamper

NAMES = {"acme": ["1:aa", "2:bb"], "bolt": ["1:cc"]}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """Running erasures of acme and bolt, one of cog that is done, and hashes of names of acme and bolt."""
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        fill(index)
        yield index


def fill(index: SqliteIndex) -> None:
    index.ledger.remember(NAMES)
    for company_id, state in {"acme": "running", "bolt": "running", "cog": "done"}.items():
        index.ledger.save_erasure(replace(RECORD, id=company_id, state=ErasureState(state)))


def running(index: SqliteIndex) -> list[str]:
    return [record.id for record in index.ledger.running_erasures()]


@pytest.mark.parametrize(
    "damage",
    [
        "record = replace(record, 'requested_at', 'requested_au')",
        "record = replace(record, '4503', '4502')",
        "record = CAST(X'80' AS TEXT)",
        "record = X'7b7d'",
        "state = 'runnins'",
        "state = 'done'",
        "checksum = checksum + 1",
    ],
)
def test_a_damaged_record_is_left_out_and_logged(
    index: SqliteIndex, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    tamper(index.path, f"UPDATE erasures SET {damage} WHERE id = 'acme'")
    with caplog.at_level(logging.ERROR):
        assert running(index) == ["bolt"]
    assert "the erasure of 'acme': the row ('acme',) of erasures differs from its checksum" in caplog.text
    with pytest.raises(DamagedErasure, match="restore a backup, or erase the company again") as refused:
        index.ledger.erasure("acme")
    assert refused.value.reason.startswith("the stored data of this erasure is damaged")
    assert index.ledger.erasure("bolt") is not None
    assert index.damage() == ["the row ('acme',) of erasures differs from its checksum"]


def test_a_damaged_id_hides_no_running_erasure(index: SqliteIndex, caplog: pytest.LogCaptureFixture) -> None:
    tamper(index.path, "UPDATE erasures SET id = 'acmf' WHERE id = 'acme'")
    assert running(index) == ["bolt"]
    assert "the row ('acmf',) of erasures differs" in caplog.text
    with pytest.raises(DamagedErasure, match="the erasure of 'acme': a look-up by the id does not find its row"):
        index.ledger.erasure("acme")
    assert index.ledger.erasure("dot") is None


def test_erasing_again_replaces_a_damaged_record(index: SqliteIndex) -> None:
    tamper(index.path, "UPDATE erasures SET record = '{}' WHERE id = 'acme'")
    index.ledger.save_erasure(RECORD)
    assert index.ledger.erasure("acme") == RECORD
    assert running(index) == ["acme", "bolt"]
    assert index.damage() == []


def test_a_record_that_is_damaged_is_not_purged_and_others_are(index: SqliteIndex) -> None:
    index.ledger.save_erasure(replace(RECORD, state=ErasureState.DONE))
    tamper(index.path, "UPDATE erasures SET record = '{}' WHERE id = 'acme'")
    index.ledger.purge_erasures(before=RECORD.requested_at.replace(year=2030))
    assert index.ledger.erasure("cog") is None
    with pytest.raises(DamagedErasure):
        index.ledger.erasure("acme")


@pytest.mark.parametrize("statement", ["UPDATE registry SET name_key = zeroblob(32)", "DELETE FROM registry"])
def test_a_damaged_key_is_refused(index: SqliteIndex, statement: str) -> None:
    tamper(index.path, statement)
    with pytest.raises(IndexUnavailable, match=r"is damaged; restore a backup.*registry"):
        index.ledger.key()


def test_the_check_names_a_damaged_key(index: SqliteIndex) -> None:
    tamper(index.path, "UPDATE registry SET name_key = zeroblob(32)")
    assert index.damage() == ["the row of registry differs from its checksum"]


def test_names_whose_hash_is_damaged_are_refused_for_their_company_alone(index: SqliteIndex) -> None:
    tamper(index.path, "UPDATE former_names SET hash = '1:ab' WHERE hash = '1:aa'")
    with pytest.raises(DamagedErasure, match="the erasure of 'acme': a hash of a name differs"):
        index.ledger.remembered("acme")
    assert index.ledger.remembered("bolt") == {"1:cc"}
    assert index.damage() == ["the row ('acme', '1:ab') of former_names differs from its checksum"]


def test_names_whose_company_id_is_damaged_are_found_by_their_checksum(index: SqliteIndex) -> None:
    tamper(index.path, "UPDATE former_names SET id = 'acmf' WHERE hash = '1:aa'")
    assert index.ledger.remembered("acme") == {"1:aa", "2:bb"}
    assert index.ledger.remembered("bolt") == {"1:cc"}
    assert index.damage() == ["the row ('acmf', '1:aa') of former_names differs from its checksum"]


def test_flipped_bits_change_nothing_in_silence(tmp_path: Path) -> None:
    original, path = tmp_path / "original.db", tmp_path / "index.db"
    with closing(SqliteIndex(original)) as index:
        fill(index)
        key = index.ledger.key()
    content = original.read_bytes()
    parts = [key, b'acmerunning{"id"', b"acme1:aa", b"acme2:bb", b"bolt1:cc"]
    places = [8 * content.index(part) + bit for part in parts for bit in range(8 * len(part))]
    outcomes: Counter[str] = Counter()
    for place in random.Random(1).sample(places, 100):
        for log in tmp_path.glob("index.db-*"):
            log.unlink()
        path.write_bytes(flipped(content, [place]))
        with closing(SqliteIndex(path)) as index:
            assert index.damage(), place
            assert "bolt" in running(index)
            try:
                found = index.ledger.key(), index.ledger.remembered("acme"), index.ledger.remembered("bolt")
            except IndexUnavailable:
                outcomes["refused"] += 1
            else:
                assert found == (key, frozenset(NAMES["acme"]), frozenset(NAMES["bolt"]))
            outcomes["left out"] += running(index) == ["bolt"]
    assert outcomes["refused"] > 40
    assert outcomes["left out"] > 10
