"""Damage to what one erasure needs does not hold up the others."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.ledger import DamagedErasure, ErasureState
from similarity.index.sqlite import SqliteIndex
from similarity.upkeep.erasure import STORE_UNAVAILABLE, Eraser
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.similarity.index.inspection import tamper
from tests.workspace_records import make_event


@pytest.fixture
def eraser(tmp_path: Path) -> Iterator[Eraser]:
    """Running erasures of acme, bolt and cog."""
    with (
        closing(SqliteIndex(tmp_path / "index.db")) as index,
        closing(SqliteWorkspace(tmp_path / "index.db.workspace")) as workspace,
    ):
        index.upsert(add_live(index, "live"), [make_embedded(each) for each in ("acme", "bolt", "cog")])
        eraser = Eraser(index, workspace)
        for company_id in ("acme", "bolt", "cog"):
            workspace.add_event(make_event(company_id, note=f"as company {company_id} does"))
            eraser.accept(company_id)
        yield eraser


def states(eraser: Eraser) -> dict[str, ErasureState]:
    found = {each: eraser.index.ledger.erasure(each) for each in ("acme", "bolt", "cog")}
    return {each: record.state for each, record in found.items() if record}


def notes(eraser: Eraser) -> list[str]:
    assert eraser.workspace is not None
    return sorted(event.note for event in eraser.workspace.events() if event.note)


def test_a_damaged_record_is_skipped_until_the_company_is_erased_again(eraser: Eraser) -> None:
    tamper(Path(eraser.index.location), "UPDATE erasures SET record = replace(record, '{', '[') WHERE id = 'bolt'")
    assert [(each.id, each.state) for each in eraser.finish()] == [("acme", "done"), ("cog", "done")]
    with pytest.raises(DamagedErasure):
        eraser.index.ledger.erasure("bolt")
    eraser.accept("bolt")
    eraser.finish()
    assert set(states(eraser).values()) == {ErasureState.DONE}
    assert notes(eraser) == []


def test_damaged_names_fail_the_erasure_of_their_company_alone(eraser: Eraser) -> None:
    tamper(Path(eraser.index.location), "UPDATE former_names SET hash = hash || '0' WHERE id = 'bolt'")
    ended = {each.id: each for each in eraser.finish()}
    assert {each.id: each.state for each in ended.values()} == {"acme": "done", "bolt": "failed", "cog": "done"}
    assert ended["bolt"].problem.startswith("the stored data of this erasure is damaged; restore a backup")
    assert notes(eraser) == ["as company bolt does"]


def test_a_damaged_key_ends_no_erasure_as_if_nothing_were_found(eraser: Eraser) -> None:
    tamper(Path(eraser.index.location), "UPDATE registry SET name_key = zeroblob(32)")
    for erase in (eraser.finish, lambda: eraser.accept("acme")):
        with pytest.raises(IndexUnavailable, match="the row of registry differs from its checksum"):
            erase()
    assert set(states(eraser).values()) == {ErasureState.RUNNING}
    record = eraser.index.ledger.erasure("acme")
    assert record is not None
    assert record.problem == STORE_UNAVAILABLE
    assert len(notes(eraser)) == 3


def test_an_erasure_refuses_an_index_of_ids_that_differs_from_its_rows(eraser: Eraser) -> None:
    path = Path(eraser.index.location)
    eraser.index.compact("live")  # empties the write-ahead log
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'erasures'").fetchone()
    eraser.index.close()
    content = bytearray(path.read_bytes())
    place = content.index(b"boltrunning", 8192 * (root - 1))
    content[place] ^= 1
    path.write_bytes(content)
    with closing(SqliteIndex(path)) as index:
        damaged = Eraser(index, eraser.workspace)
        with pytest.raises(IndexUnavailable, match=r"is damaged.*row 'bolt' differs from its index;"):
            damaged.accept("bolt")
        assert index.damage()
        assert [each.id for each in damaged.finish()] == ["acme", "cog"]
