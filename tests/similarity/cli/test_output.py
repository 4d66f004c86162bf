import json
from datetime import UTC, datetime

import pytest

from similarity.cli.output import ListFormat, show_facts, show_rows

MOMENT = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)


def test_rows_are_a_table_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([{"name": "a", "created_at": MOMENT, "count": 12345}], ListFormat.TABLE, nothing="none")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["name", "created", "at", "count"], ["a", "2026-01-31", "12:00:05", "12,345"]]


def test_rows_are_json_for_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([{"name": "a", "at": MOMENT}], ListFormat.JSON, nothing="none")
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "at": "2026-01-31T12:00:05+00:00"}]


def test_no_rows_are_said_or_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([], ListFormat.TABLE, nothing="nobody is here")
    assert capsys.readouterr().out == "nobody is here\n"
    show_rows([], ListFormat.JSON, nothing="nobody is here")
    assert json.loads(capsys.readouterr().out) == []


def test_facts_are_lines_without_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    why = ("a", "[b]")
    facts = {
        "done": True,
        "share": 0.98765,
        "hours": None,
        "speed": 18070.4,
        "rejected": {},
        "why": why,
        "writers": (),
        "gate": {"old_ndcg": 0.5},
    }
    show_facts(facts, ListFormat.TABLE)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "done yes",
        "share 0.9877",
        "speed 18,070",
        "rejected none",
        "why a; [b]",
        "writers none",
        "gate old ndcg 0.5",
    ]


def test_facts_are_a_json_object_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    show_facts({"hours": None, "count": 3}, ListFormat.JSON)
    assert json.loads(capsys.readouterr().out) == {"hours": None, "count": 3}
