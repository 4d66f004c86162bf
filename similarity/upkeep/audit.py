"""The audit record: who changed what, when, and with what outcome, as lines of JSON; append-only.

    audit = AuditRecord(audit_target(settings))
    with audit.recorded(Action.ROLLBACK, who=system_user()) as act:
        act.subject = index.rollback().name

Several processes may append to one file: a batch of entries is one write to a locked file, and it is on the disk
before `write` returns. Each batch opens the file again, so the file may be renamed at any time. A company is identified
by the SHA-256 of its id, so that an erased id is not in the record.
"""

import errno
import fcntl
import glob
import gzip
import hashlib
import json
import logging
import os
import pwd
import stat
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar, cast

from similarity.company import utc_now
from similarity.errors import AuditUnavailable, InvalidInput
from similarity.feedback.opening import workspace_file
from similarity.formats.json_text import read_json
from similarity.generations.plan import made_since, previous_generations
from similarity.index.attributes import AttributeSchema
from similarity.index.opening import is_url
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.sqlite.backup import flush
from similarity.index.sqlite.files import refuse_database
from similarity.settings import Settings
from similarity.upkeep.outage import Outage

STANDARD_ERROR = "-"
"""The target of a process whose standard error is collected, for example in a container."""
BEGUN, DONE, FAILED = "begun", "done", "failed"
PRIVATE = 0o600

log = logging.getLogger(__name__)


class Action(StrEnum):
    """The kind of a change."""

    WRITE = "write"
    DELETE = "delete"
    ERASE = "erase"
    INGEST = "ingest"
    SYNC = "sync"
    IMPORT = "import-vectors"
    DECLARE = "declare"
    PROMOTE = "promote"
    ROLLBACK = "rollback"
    RETIRE = "retire"
    KEY_ADD = "key-add"
    KEY_REVOKE = "key-revoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the record.

    `who` is `key:NAME`, `user:NAME` of the operating system, or `unauthenticated`. `subject` is a generation, a file
    (`file_subject`), a key, or the declared attributes. `counts` are the documents of a run by outcome.
    """

    action: Action
    outcome: str
    who: str
    request_id: str = ""
    company_id: str = ""
    version: int | None = None
    subject: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_line(self, now: datetime) -> bytes:
        """Return a line of JSON with a newline, without empty members."""
        members = {
            "time": now.astimezone(UTC).isoformat(timespec="milliseconds"),
            "logger": "audit",
            "action": self.action.value,
            "outcome": self.outcome,
            "who": self.who,
            "request_id": self.request_id,
            "company_sha256": hashed(self.company_id) if self.company_id else "",
            "version": self.version,
            "subject": self.subject,
            "counts": dict(self.counts),
        }
        return (
            json.dumps({name: value for name, value in members.items() if value not in ("", None, {})}).encode() + b"\n"
        )


@dataclass(slots=True)
class Act:
    """The outcome, subject and counts of a running action; the caller sets them."""

    outcome: str = DONE
    subject: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


class AuditRecord:
    """Appends to the file `target`, or to standard error (STANDARD_ERROR). None: nothing is recorded.

    Thread-safe; several processes may use one file.
    """

    def __init__(self, target: str | None, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._target = target
        self._clock = clock
        self._outage = Outage("the audit record")
        self._lock = threading.Lock()
        self._held = b""

    def write(self, entries: Sequence[Entry], *, hold: bool = True) -> None:
        """Append entries in one piece, and return when they are on the disk.

        Entries that cannot be appended are kept in memory, unless `hold` is false, and appended first by the next call.
        Call it without entries before a change: it raises while entries of earlier changes are not on the disk.

        Raises:
            AuditUnavailable: the file cannot be written.
            InvalidInput: the target is not a regular file.
        """
        if self._target is None:
            return
        now = self._clock()
        new = b"".join(entry.to_line(now) for entry in entries)
        with self._lock:
            self._append(self._target, new, hold=hold)

    def _append(self, target: str, new: bytes, *, hold: bool) -> None:
        content = self._held + new
        try:
            if target == STANDARD_ERROR:
                sys.stderr.write(content.decode())
                sys.stderr.flush()
            else:
                _append(Path(target), content)
        except OSError as error:
            if hold:
                self._held = content
            self._outage.away(f"{target}: {error.strerror}")
            raise AuditUnavailable(
                f"the audit record {target} cannot be written ({error.strerror}), so nothing may be changed; "
                "give this user write access to it and its folder, free some space, or set SIMILARITY_AUDIT"
            ) from error
        self._held = b""
        self._outage.over()

    @contextmanager
    def recorded(
        self, action: Action, *, who: str, request_id: str = "", company_id: str = "", subject: str = ""
    ) -> Iterator[Act]:
        """Record the beginning of an action, run the `with` block, and record its outcome.

        Raises:
            AuditUnavailable: the record cannot be written. If this is raised at the beginning, the block did not run.
        """
        begun = Entry(
            action=action, outcome=BEGUN, who=who, request_id=request_id, company_id=company_id, subject=subject
        )
        self.write([begun], hold=False)
        act = Act(subject=subject)
        try:
            yield act
        except BaseException:
            self.write([replace(begun, outcome=FAILED, subject=act.subject)])
            raise
        self.write([replace(begun, outcome=act.outcome, subject=act.subject, counts=act.counts)])


Index = TypeVar("Index", bound=CompanyIndex)


def audited(index: Index, audit: AuditRecord, *, who: str) -> Index:
    """Return a proxy of `index` that records `declare`, `promote`, `rollback` and `retire` as done by `who`."""
    return cast("Index", _Audited(index, audit, who))


class _Audited:
    def __init__(self, index: CompanyIndex, audit: AuditRecord, who: str) -> None:
        self._index = index
        self._audit = audit
        self._who = who

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def declare(self, schema: AttributeSchema) -> None:
        before = self._index.attributes()
        after = before.updated(schema)
        if after != before:
            with self._audit.recorded(Action.DECLARE, who=self._who, subject=after.text):
                self._index.declare(schema)

    def promote(self, name: str, **named: Any) -> None:
        with self._audit.recorded(Action.PROMOTE, who=self._who, subject=name):
            self._index.promote(name, **named)

    def rollback(self, **named: Any) -> Generation:
        previous = previous_generations(self._index)
        # Without force, a rollback to a newer generation is a promotion: `promote` makes a rolled-back one live again.
        is_newer = previous and previous[0].name in made_since(self._index, self._index.live().name)
        action = Action.PROMOTE if is_newer and not named.get("force") else Action.ROLLBACK
        with self._audit.recorded(action, who=self._who) as act:
            generation = self._index.rollback(**named)
            act.subject = generation.name
        return generation

    def retire(self, name: str) -> None:
        with self._audit.recorded(Action.RETIRE, who=self._who, subject=name):
            self._index.retire(name)


def audit_target(settings: Settings) -> str:
    """Return the target of an index's record: SIMILARITY_AUDIT, else a file beside the index, else standard error.

    Raises:
        InvalidInput: SIMILARITY_AUDIT names a database, such as the index or its workspace.
    """
    if settings.audit:
        file = Path(settings.audit)
        if settings.audit != STANDARD_ERROR:
            refuse_database(file)
            if file.absolute() == workspace_file(settings.index).absolute():  # which may not exist yet
                raise InvalidInput(f"the audit record {file} would be the workspace of the index; name another file")
        return settings.audit
    return STANDARD_ERROR if is_url(settings.index) else f"{settings.index}.audit.jsonl"


def refuse_audit_record(settings: Settings, *outputs: Path) -> None:
    """Raise InvalidInput if one of these files is the audit record, which an output would replace."""
    record = Path(audit_target(settings))
    for each in outputs:
        if record.exists() and each.exists() and each.samefile(record):
            raise InvalidInput(f"{each} is the audit record, which would be lost; name another file")


def system_user() -> str:
    """Return the user of this process, for `Entry.who`."""
    try:
        return f"user:{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:  # a container's user without a name
        return f"user:{os.getuid()}"


def hashed(company_id: str) -> str:
    """Return the identifier of a company in the record: the SHA-256 of its id, in hexadecimal."""
    return hashlib.sha256(company_id.encode()).hexdigest()


def file_subject(file: Path) -> str:
    """Return the identifier of a file in the record: the SHA-256 of its name, which may contain a company's name."""
    return f"file:{hashlib.sha256(os.fsencode(file.name)).hexdigest()}"


def read_entries(target: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a record, oldest first, including rotated files.

    A truncated line (a process was killed while it wrote), or another that is no entry, is skipped with a warning.

    Raises:
        InvalidInput: the record is on standard error, or a file is missing, not a regular file, or unreadable.
    """
    if target == STANDARD_ERROR:
        raise InvalidInput(
            "the audit record is written to standard error here; search the collected log for lines with "
            '"logger": "audit", or set a file: SIMILARITY_AUDIT=FILE'
        )
    path = Path(target)
    files = sorted(path.parent.glob(f"{glob.escape(path.name)}*"), key=lambda each: each.stat().st_mtime)
    if not files:
        raise InvalidInput(f"there is no audit record {path}; nothing was changed yet, or SIMILARITY_AUDIT has changed")
    for file in files:
        if not file.is_file():  # reading a pipe would wait for a writer
            raise InvalidInput(f"the audit record {file} is not a regular file; name one with SIMILARITY_AUDIT")
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            try:
                yield from _entries(stream, str(file))
            except (OSError, EOFError, zlib.error) as error:
                raise InvalidInput(
                    f"the audit record {file} cannot be read to its end: {error}; restore it, or move it away"
                ) from error


def _entries(lines: Iterable[bytes], name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            entry = read_json(line)
            entry["time"] = datetime.fromisoformat(entry["time"])
            if not (
                entry["time"].tzinfo
                and isinstance(entry.get("counts", {}), dict)
                and isinstance(entry.get("company_sha256", ""), str)
            ):
                raise ValueError(line)
        except (ValueError, KeyError, TypeError):
            log.warning("%s, line %d is truncated or not an entry of an audit record; it is skipped", name, number)
        else:
            yield entry


def _append(path: Path, content: bytes) -> None:
    is_new = not path.exists()
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    try:
        # The lock is released when the file is closed, also if the process is killed.
        fcntl.flock(file, fcntl.LOCK_EX)
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"the audit record {path} is not a regular file; give a file, or - for standard error")
        if not content:
            return
        # A process that was killed while it wrote left a partial line: start a new line after it.
        if status.st_size and os.pread(file, 1, status.st_size - 1) != b"\n":
            content = b"\n" + content
        if os.write(file, content) != len(content):
            raise OSError(errno.ENOSPC, "the disk is full")
        os.fsync(file)
    finally:
        os.close(file)
    if is_new:
        flush(path.parent)
