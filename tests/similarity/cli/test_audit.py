"""What the commands leave in the audit record, and `similarity audit` as a user types it."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.ledger import ErasureRecord, ErasureState
from similarity.upkeep.audit import file_subject, hashed
from similarity.upkeep.erasure import WRITTEN_AGAIN, Eraser
from tests.similarity.cli.test_generations import QuickShell
from tests.similarity.cli.test_main import Shell
from tests.tiny_bundle import write_tiny_bundle
from tests.workspace_records import make_event

WORDS = ("anvils", "boats", "cars")
ROWS = [(f"c{number:02}", f"Firm {number}", WORDS[number % 3], "", "") for number in range(30)]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> QuickShell:
    """An index of thirty companies."""
    write_tiny_bundle(tmp_path / "tiny")
    shell = QuickShell(tmp_path, monkeypatch, capsys)
    shell("ingest", shell.write("companies.csv", ROWS), "--bundle", "tiny")
    return shell


def entries(shell: Shell, *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("audit", "--format", "json", *options).splitlines()]


def told(shell: Shell, *options: str) -> list[tuple[str, str]]:
    return [(entry["action"], entry["outcome"]) for entry in entries(shell, *options)]


def test_a_load_is_a_line_with_counts_and_one_for_each_delete(shell: QuickShell) -> None:
    assert told(shell) == [("ingest", "begun"), ("ingest", "done"), ("promote", "begun"), ("promote", "done")]
    assert entries(shell)[1]["counts"] == {"rows": 30, "applied": 30, "deleted": 0, "failed_deletes": 0}
    assert entries(shell)[1]["subject"] == file_subject(Path("companies.csv"))
    assert entries(shell)[1]["who"].startswith("user:")
    shell("sync", shell.write("fewer.csv", ROWS[1:]))
    assert told(shell, "--company", "c00") == [("delete", "applied")]
    assert entries(shell, "--action", "sync")[1]["counts"]["deleted"] == 1
    deleted = shell.write(
        "deleted.csv", [("c01", "", "", "", "", "true")], "id,name,description,website,country,deleted"
    )
    shell("ingest", deleted)
    assert told(shell, "--company", "c01") == [("delete", "applied")]
    assert entries(shell, "--action", "ingest")[-1]["counts"] == {
        "rows": 1,
        "applied": 1,
        "deleted": 1,
        "failed_deletes": 0,
    }


def test_an_erasure_and_a_failure_are_on_record(shell: QuickShell) -> None:
    shell("erase", "c00", "--dry-run")
    shell("erase", "c00")
    shell("ingest", shell.write("bad.csv", [("c99", "", "", "", "")]), fails=True)
    shell("generations", "rollback", fails=True)
    assert told(shell)[4:] == [
        ("erase", "begun"),
        ("erase", "done"),
        ("ingest", "begun"),
        ("ingest", "done"),
        ("rollback", "begun"),
        ("rollback", "failed"),
    ]
    assert told(shell, "--company", "c00") == [("erase", "begun"), ("erase", "done")]
    record = (shell.folder / "similarity.db.audit.jsonl").read_text()
    assert hashed("c00") in record
    assert '"c00"' not in record


def test_an_erasure_searches_a_workspace_that_a_service_made_meanwhile(
    shell: QuickShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = Eraser.accept

    def made_first(eraser: Eraser, company_id: str) -> ErasureRecord:
        with closing(SqliteWorkspace(shell.folder / "similarity.db.workspace")) as workspace:
            workspace.add_event(make_event(anchor=company_id))
        return accept(eraser, company_id)

    monkeypatch.setattr(Eraser, "accept", made_first)
    assert "forgotten: 1 verdicts" in shell("erase", "c00")


def test_an_erasure_that_another_process_failed_is_not_called_done(
    shell: QuickShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(eraser: Eraser, *, only: str, compact: bool) -> list[ErasureRecord]:
        [record] = eraser.index.ledger.running_erasures()
        eraser.index.ledger.save_erasure(replace(record, state=ErasureState.FAILED, problem=WRITTEN_AGAIN))
        return []  # it found none that runs

    monkeypatch.setattr(Eraser, "finish", another)
    assert "c00 is not erased: the company was written again" in shell("erase", "c00", fails=True)
    assert told(shell, "--company", "c00") == [("erase", "begun"), ("erase", "failed")]


@pytest.mark.parametrize(
    "command", [("ingest", "companies.csv", "--rejects"), ("backup", "--overwrite")], ids=["rejects", "backup"]
)
def test_no_output_replaces_the_record(shell: QuickShell, command: tuple[str, ...]) -> None:
    record = shell.folder / "similarity.db.audit.jsonl"
    before = record.read_bytes()
    assert "name another file" in shell(*command, record.name, fails=True)
    assert record.read_bytes() == before


def test_a_move_to_another_model_and_back_is_on_record(shell: QuickShell) -> None:
    write_tiny_bundle(shell.folder / "new", max_tokens=7)
    shell("generations", "reembed", "--bundle", "new", "--without-gate")
    shell("generations", "rollback")
    shell("generations", "prune", "--keep", "0", "--older-than", "0")
    done = [(entry["action"], entry["subject"]) for entry in entries(shell)[4:] if entry["outcome"] == "done"]
    first, second = done[1][1], done[0][1]
    assert done == [("promote", second), ("rollback", first), ("retire", second)]


def test_the_record_is_read_by_time_action_and_company(shell: QuickShell) -> None:
    assert told(shell, "--since", "2999-01-01") == []
    assert len(told(shell, "--since", "2020-01-31T12:00:00Z")) == 4
    assert told(shell, "--action", "promote", "--action", "retire") == [("promote", "begun"), ("promote", "done")]
    lines = shell("audit").splitlines()
    assert f"  ingest  done  subject={file_subject(Path('companies.csv'))}  rows=30  applied=30" in lines[1]
    assert "no entry is of a company with the id 'C00'" in shell.run("audit", "--company", "C00").stderr
    assert "--since is 'yesterday', which is not a time" in shell("audit", "--since", "yesterday", fails=True)
    shell("erase", "c00", SIMILARITY_AUDIT="elsewhere.jsonl")
    assert len(shell("audit", SIMILARITY_AUDIT="elsewhere.jsonl").splitlines()) == 2
    assert f"company={hashed('c00')[:12]}" in shell("audit", SIMILARITY_AUDIT="elsewhere.jsonl")


def test_what_cannot_be_recorded_is_not_done(shell: QuickShell) -> None:
    refused = shell("erase", "c00", fails=True, SIMILARITY_AUDIT="no/audit.jsonl")
    assert "the audit record no/audit.jsonl cannot be written" in refused
    assert "c00" in shell("find", "Firm 0")


def test_an_id_that_is_not_text_is_refused(shell: QuickShell) -> None:
    for command in (("erase", "\udcff"), ("audit", "--company", "\udcff")):
        assert "is not UTF-8 text" in shell(*command, fails=True)
    assert "36500" in shell("generations", "purge-deleted", "--older-than", "1e12", fails=True)


def test_an_export_does_not_replace_the_record(shell: QuickShell) -> None:
    (shell.folder / "similarity.db.audit.jsonl").rename(record := shell.folder / "record.parquet")
    message = shell("export", "record.parquet", fails=True, SIMILARITY_AUDIT="record.parquet")
    assert "is the audit record, which would be lost" in message
    assert record.read_bytes().startswith(b'{"time"')


def test_pairs_do_not_replace_an_index(shell: QuickShell) -> None:
    for command in (("pairs", "similarity.db"), ("pairs", "p.jsonl", "--companies", "similarity.db")):
        assert "is a database, which would be lost" in shell(*command, "--url", "http://127.0.0.1:9", fails=True)
