"""The audit record: whole lines that are only appended, by several processes, and read in spite of damage."""

import gzip
import json
import os
import pwd
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from similarity.errors import AuditUnavailable, GenerationConflict, InvalidInput
from similarity.generations.promotion import promote
from similarity.index.sqlite import SqliteIndex
from similarity.settings import Settings
from similarity.upkeep.audit import (
    STANDARD_ERROR,
    Action,
    AuditRecord,
    Entry,
    audit_target,
    audited,
    file_subject,
    hashed,
    read_entries,
    system_user,
)
from tests.contract.steps import add_candidate, add_live

ROOT = Path(__file__).parents[3]
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PROCESSES, BATCHES, ENTRIES = 4, 50, 100

APPEND_MUCH = f"""
import sys
from similarity.upkeep.audit import Action, AuditRecord, Entry
audit = AuditRecord(sys.argv[1])
for batch in range({BATCHES}):
    audit.write([
        Entry(action=Action.WRITE, outcome="applied", who="user:" + sys.argv[2], company_id="c" * 100, version=batch)
        for _ in range({ENTRIES})
    ])
"""


def entry(company_id: str = "acme", **members: int | str) -> Entry:
    given: dict[str, object] = {"action": Action.WRITE, "outcome": "applied", "who": "key:ann", **members}
    return Entry(company_id=company_id, **given)  # type: ignore[arg-type]  # any member may be given


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "similarity.db.audit.jsonl"


@pytest.fixture
def audit(file: Path) -> AuditRecord:
    return AuditRecord(str(file), clock=lambda: NOON)


def companies(file: Path) -> list[str]:
    return [each["company_sha256"] for each in read_entries(str(file))]


def test_a_line_says_who_did_what_when_and_not_to_whom_in_clear(file: Path, audit: AuditRecord) -> None:
    audit.write([entry(version=17, request_id="9f86d081")])
    assert json.loads(file.read_text()) == {
        "time": "2026-01-31T12:00:00.000+00:00",
        "logger": "audit",
        "action": "write",
        "outcome": "applied",
        "who": "key:ann",
        "request_id": "9f86d081",
        "company_sha256": hashed("acme"),
        "version": 17,
    }
    assert file.stat().st_mode & 0o777 == 0o600


def test_half_a_line_costs_nothing_but_itself(file: Path, audit: AuditRecord, caplog: pytest.LogCaptureFixture) -> None:
    audit.write([entry("a")])
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:40])  # the process was killed while it wrote
    assert companies(file) == [hashed("a")]
    assert f"{file}, line 2 is truncated" in caplog.text
    audit.write([entry("b")])
    assert companies(file) == [hashed("a"), hashed("b")]


def test_a_line_that_is_no_entry_is_skipped(file: Path, audit: AuditRecord, caplog: pytest.LogCaptureFixture) -> None:
    audit.write([entry("a")])
    with file.open("ab") as stream:
        stream.write(b"[" * 100_000 + b'\n[1]\n"x"\n{}\n{"time": 5}\n\xff\n' + b"1" * 5000 + b"\n")
    assert companies(file) == [hashed("a")]
    assert [record.args[1] for record in caplog.records if isinstance(record.args, tuple)] == [*range(2, 9)]


@pytest.mark.parametrize(
    "members", [{"counts": 3}, {"counts": None}, {"company_sha256": 5}, {"time": "2026-01-31T12:00:00"}], ids=str
)
def test_an_entry_whose_members_have_other_types_is_skipped(
    file: Path, audit: AuditRecord, caplog: pytest.LogCaptureFixture, members: dict[str, object]
) -> None:
    audit.write([entry("a")])
    with file.open("ab") as stream:
        stream.write(json.dumps({**json.loads(file.read_bytes()), **members}).encode() + b"\n")
    assert companies(file) == [hashed("a")]
    assert "line 2 is truncated or not an entry" in caplog.text


def test_a_record_that_is_a_pipe_is_refused_and_not_waited_for(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(InvalidInput, match="is not a regular file"):
        list(read_entries(str(file)))


def test_several_processes_append_whole_lines(file: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", APPEND_MUCH, str(file), str(number)], cwd=ROOT)
        for number in range(PROCESSES)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * PROCESSES
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for number in range(PROCESSES):
        versions = [line["version"] for line in lines if line["who"] == f"user:{number}"]
        assert versions == [batch for batch in range(BATCHES) for _ in range(ENTRIES)]
    assert len(lines) == PROCESSES * BATCHES * ENTRIES


def test_a_file_may_be_rotated_at_any_time_and_is_still_read(file: Path, audit: AuditRecord) -> None:
    audit.write([entry("a")])
    packed = file.with_name(file.name + "-20260101.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    audit.write([entry("b")])
    file.rename(f"{file}.1")
    audit.write([entry("c")])
    assert companies(file) == [hashed(each) for each in "abc"]


def test_a_rotated_file_that_cannot_be_read_to_its_end_is_named(file: Path, audit: AuditRecord) -> None:
    audit.write([entry()] * 100)
    whole = gzip.compress(file.read_bytes())
    file.with_name(f"{file.name}.1.gz").write_bytes(whole[:-20])
    with pytest.raises(InvalidInput, match=r"audit\.jsonl\.1\.gz cannot be read to its end"):
        list(read_entries(str(file)))


def test_what_could_not_be_recorded_comes_before_anything_else(tmp_path: Path) -> None:
    folder = tmp_path / "away"
    audit = AuditRecord(str(folder / "audit.jsonl"))
    with pytest.raises(AuditUnavailable, match=r"audit.jsonl cannot be written \(No such file or directory\).*set SIM"):
        audit.write([entry("a")])
    with pytest.raises(AuditUnavailable):
        audit.write([])
    folder.mkdir()
    audit.write([])
    audit.write([entry("b")])
    assert companies(folder / "audit.jsonl") == [hashed("a"), hashed("b")]


def test_an_act_that_cannot_be_recorded_is_not_begun(tmp_path: Path) -> None:
    done = []
    with pytest.raises(AuditUnavailable), AuditRecord(str(tmp_path / "no" / "file")).recorded(Action.ERASE, who="me"):
        done.append("erased")
    assert done == []


def test_what_is_no_plain_file_is_refused() -> None:
    with pytest.raises(InvalidInput, match="/dev/null is not a regular file"):
        AuditRecord("/dev/null").write([])


def test_an_act_is_on_record_when_it_begins_and_how_it_ended(file: Path, audit: AuditRecord) -> None:
    with audit.recorded(Action.INGEST, who="user:ann", subject="a.csv") as act:
        act.counts = {"applied": 3}
    with pytest.raises(ZeroDivisionError), audit.recorded(Action.SYNC, who="user:ann"):
        _ = 1 / 0
    told = [(each["action"], each["outcome"], each.get("counts")) for each in read_entries(str(file))]
    assert told == [
        ("ingest", "begun", None),
        ("ingest", "done", {"applied": 3}),
        ("sync", "begun", None),
        ("sync", "failed", None),
    ]


def test_a_file_is_named_by_a_hash_of_its_name_alone() -> None:
    # printf %s companies.csv | sha256sum
    hash_of_name = "cef41273b80f25fe0efe2d7a66d152c921971f174763f914f194724cddfbe941"
    assert file_subject(Path("companies.csv")) == f"file:{hash_of_name}"
    assert file_subject(Path("/data/Acme Ltd/companies.csv")) == file_subject(Path("companies.csv"))
    assert len(file_subject(Path(os.fsdecode(b"caf\xe9.csv")))) == 69


def test_promote_rollback_and_retire_are_on_record(file: Path, audit: AuditRecord, tmp_path: Path) -> None:
    store = SqliteIndex(tmp_path / "similarity.db")
    index = audited(store, audit, who="user:ann")
    add_live(index, "first")
    add_candidate(index, "second")
    index.promote("second")
    assert index.rollback().name == "first"
    assert promote(index, "second", gate=None).promoted
    assert index.rollback().name == "first"
    index.retire("second")
    with pytest.raises(GenerationConflict):
        index.retire("first")
    store.close()
    told = [(each["action"], each["outcome"], each.get("subject")) for each in read_entries(str(file))]
    assert [each for each in told if each[1] != "begun"] == [
        ("promote", "done", "first"),
        ("promote", "done", "second"),
        ("rollback", "done", "first"),
        ("promote", "done", "second"),
        ("rollback", "done", "first"),
        ("retire", "done", "second"),
        ("retire", "failed", "first"),
    ]


def test_where_it_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit_target(Settings(index="a.db")) == "a.db.audit.jsonl"
    assert audit_target(Settings(index="a.db", audit="/var/b.jsonl")) == "/var/b.jsonl"
    assert audit_target(Settings(index="https://search:9200/companies")) == STANDARD_ERROR
    AuditRecord(STANDARD_ERROR).write([entry()])
    assert json.loads(capsys.readouterr().err)["company_sha256"] == hashed("acme")
    with pytest.raises(InvalidInput, match="is written to standard error here"):
        list(read_entries(STANDARD_ERROR))


def test_a_record_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no audit record .*none\.jsonl; nothing"):
        list(read_entries(str(tmp_path / "none.jsonl")))


def test_who_runs_the_process_is_no_matter_of_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "somebody else")
    monkeypatch.setenv("LOGNAME", "somebody else")
    assert system_user() == f"user:{pwd.getpwuid(os.getuid()).pw_name}"


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert system_user() == f"user:{os.getuid()}"


def test_no_database_becomes_the_record(tmp_path: Path) -> None:
    index = str(tmp_path / "a.db")
    SqliteIndex(index).close()
    for audit in (index, f"{index}.workspace"):
        with pytest.raises(InvalidInput, match="name another file"):
            audit_target(Settings(index=index, audit=audit))
