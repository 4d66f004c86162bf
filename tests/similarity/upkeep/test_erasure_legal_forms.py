"""Erasing a company that is known by one name with a legal form: its name without the form is found too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.ledger import ErasureState
from similarity.index.sqlite import SqliteIndex
from similarity.upkeep.erasure import Eraser
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.workspace_records import make_event, make_list


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "live")
    yield index
    index.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[SqliteWorkspace]:
    workspace = SqliteWorkspace(tmp_path / "index.db.workspace")
    yield workspace
    workspace.close()


def erase(index: SqliteIndex, workspace: SqliteWorkspace, name: str, word: str) -> dict[str, int]:
    """Saves a note and lists that hold `word`, and erases a company with that name; how much was forgotten."""
    workspace.add_event(make_event("note", note=f"we saw {word} in Bonn"))
    workspace.save_list(make_list(f"Like {word}"))
    workspace.save_list(make_list("exclude", exclude=[word]))
    workspace.save_list(make_list("filter", filters=[{"field": "attributes.supplier", "any_of": [word]}]))
    workspace.save_list(make_list("text", negatives=[{"text": f"not like {word}"}]))
    index.upsert("live", [make_embedded("c1", name=name)])
    eraser = Eraser(index, workspace)
    eraser.accept("c1")
    [record] = eraser.finish()
    assert record.state is ErasureState.DONE
    return dict(record.forgotten)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Zorvik A.Ş.", "Zorvik"),
        ("Zorvik Sp. z o.o.", "zorvik"),
        ("Zorvik Private Limited", "Zorvik"),
        ("Zorvik S.à r.l.", "Zorvik"),
        ("UAB Zorvik", "Zorvik"),
        ("AB Zorvik", "Zorvik"),
        ("ООО «Зорвик»", "Зорвик"),
        ("บริษัท ซอร์วิก จำกัด (มหาชน)", "ซอร์วิก"),
        ("Kelvo Drimpax OÜ", "KelvoDrimpax"),
        ("O'Neill Söhne EURL", "oneill sohne"),
    ],
)
def test_nothing_of_a_name_stays(
    index: SqliteIndex, workspace: SqliteWorkspace, tmp_path: Path, name: str, word: str
) -> None:
    assert erase(index, workspace, name, word) == {"events": 0, "lists": 4, "looks": 0, "notes": 1}
    workspace.close()
    assert word.encode() not in (tmp_path / "index.db.workspace").read_bytes()


@pytest.mark.parametrize(
    ("name", "word"),
    [("AB Foods", "Foods"), ("Fitness Sp. z o.o.", "fitness"), ("Ab Initio", "initio"), ("A.S. Watson", "Watson")],
)
def test_ordinary_words_and_parts_of_names_stay_in_texts(
    index: SqliteIndex, workspace: SqliteWorkspace, name: str, word: str
) -> None:
    assert erase(index, workspace, name, word)["notes"] == 0
    assert workspace.saved_list(f"Like {word}").name == f"Like {word}"
    assert workspace.saved_list("text").question["negatives"]
