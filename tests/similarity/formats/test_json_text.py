"""JSON that nests too deeply, or names a member twice, is an error of ours wherever it is read."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.bundle import ModelBundle
from similarity.errors import IndexUnavailable, InvalidBundle, InvalidCompany, InvalidInput
from similarity.feedback.sqlite import LISTS, SqliteWorkspace
from similarity.formats.json_text import MOST_LEVELS, check_depth, read_json
from similarity.ingest.dead_letters import DeadLetter
from similarity.ingest.files import read_rows
from similarity.ingest.messages import Message, decode
from tests.services.search.corpus import filled_index
from tests.services.search.wire.test_failures import problem
from tests.similarity.index.inspection import connect
from tests.tiny_bundle import write_tiny_bundle
from tests.workspace_records import forget

# One level too many, somewhat below Python's own limit, and far above it.
DEPTHS = [MOST_LEVELS + 1, 600, 940, 100_000]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def nested(depth: int, inside: str = "1") -> str:
    return "[" * depth + inside + "]" * depth


@pytest.mark.parametrize("text", ["1", '"[[["', "[]", '{"a": [1, {"b": null}]}', nested(MOST_LEVELS), " [1] "])
def test_json_of_usual_depth_is_read(text: str) -> None:
    assert read_json(text) == read_json(text.encode()) == json.loads(text)


def test_no_decoder_is_made_for_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(json, "JSONDecoder")
    assert read_json('["Acme"]') == ["Acme"]


def test_a_byte_order_mark_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="BOM"):
        read_json("\ufeff[]")


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_deeper_json_is_a_value_error(depth: int, pair: str) -> None:
    opening, closing = pair[:-1], pair[-1]
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(opening * depth + "1" + closing * depth)
    with pytest.raises(ValueError, match=r"nested too deeply|Expecting"):
        read_json(opening * depth)


def test_depth_is_counted_without_recursion() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": [value]}
    with pytest.raises(ValueError, match="nested too deeply"):
        check_depth(value)
    while value:
        value = value["a"][0]


@pytest.mark.parametrize("depth", DEPTHS)
def test_messages_dead_letters_files_and_manifests(tmp_path: Path, depth: int) -> None:
    deep = f'{{"id": "a", "name": "A", "description": "Makes a.", "attributes": {{"size": {nested(depth)}}}}}'
    with pytest.raises(InvalidCompany, match="nested too deeply"):
        decode(Message(position="t/0/1", value=deep.encode(), time=NOW))
    with pytest.raises(InvalidInput, match="nested too deeply"):
        DeadLetter.from_line(f'{{"position": {nested(depth)}}}')
    (tmp_path / "rows.jsonl").write_text(f"{deep}\n")
    [row] = read_rows(tmp_path / "rows.jsonl")
    assert "nested too deeply" in row.unreadable
    write_tiny_bundle(tmp_path / "bundle")
    (tmp_path / "bundle" / "manifest.json").write_text(nested(depth))
    with pytest.raises(InvalidBundle, match="nested too deeply"):
        ModelBundle.load(tmp_path / "bundle")


@pytest.mark.parametrize("text", ['{"id": "b", "id": "a"}', '{"id": "a", "attributes": {"n": 1, "m": 2, "n": 3}}'])
def test_a_member_that_occurs_twice_is_refused_in_messages_dead_letters_files_and_manifests(
    tmp_path: Path, text: str
) -> None:
    twice = r"the member '(id|n)' occurs twice; keep one of them"
    with pytest.raises(ValueError, match=twice):
        read_json(text)
    with pytest.raises(InvalidCompany, match=twice):
        decode(Message(position="t/0/1", value=text.encode(), time=NOW))
    with pytest.raises(InvalidInput, match=twice):
        DeadLetter.from_line(text)
    (tmp_path / "rows.jsonl").write_text(f'{text}\n{{"id": "c"}}\n')
    bad, good = read_rows(tmp_path / "rows.jsonl")
    assert re.search(twice, bad.unreadable)
    assert good.record == {"id": "c"}
    write_tiny_bundle(tmp_path / "bundle")
    (tmp_path / "bundle" / "manifest.json").write_text(text)
    with pytest.raises(InvalidBundle, match=twice):
        ModelBundle.load(tmp_path / "bundle")


# SQLite itself takes no attributes that are nested more than 1,000 deep.
@pytest.mark.parametrize(
    ("column", "depth"),
    [("attributes", depth) for depth in DEPTHS[:-1]]
    + [(name, depth) for name in ("aliases", "tags") for depth in DEPTHS],
)
def test_a_stored_company(tmp_path: Path, column: str, depth: int) -> None:
    text = f'{{"size": {nested(depth)}}}' if column == "attributes" else nested(depth)
    with closing(filled_index(tmp_path / "index.db")) as index:
        with closing(connect(tmp_path / "index.db")) as file:
            file.execute(f"UPDATE companies SET {column} = ? WHERE name = 'Boots GmbH'", (text,))
        with pytest.raises(IndexUnavailable, match="boots"):
            index.get("first", ["boots"])
        with TestClient(create_app(index=index)) as client:
            for path in ("/companies/boots", "/similar/boots", "/similar/acme?k=5", "/companies?q=boots"):
                assert problem(client.get(path), "index-unavailable")["status"] == 503
            assert client.get("/companies/clogs").status_code == 200


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_saved_list_and_a_look(tmp_path: Path, depth: int) -> None:
    with closing(filled_index(tmp_path / "index.db")) as index, closing(SqliteWorkspace(tmp_path / "w")) as workspace:
        with TestClient(create_app(index=index, workspace=workspace)) as client:
            question = {"question": {"anchors": [{"company": "acme"}]}}
            assert client.put("/lists/shoes", json=question).status_code in {200, 201}
            with workspace._file.writing() as connection:
                LISTS.write(connection, [("shoes", f'{{"anchors": {nested(depth)}}}', "ann", 1)])
            for path in ("/lists", "/lists/shoes"):
                assert problem(client.get(path), "index-unavailable")["status"] == 503
        with pytest.raises(IndexUnavailable, match=r"nested too deeply|not JSON|cannot be read"):
            forget(workspace, "acme")
