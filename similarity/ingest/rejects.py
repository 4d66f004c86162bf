"""What a load rejects, ignores and counts: the files of rejected rows and ignored values, and the report."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from similarity.errors import InvalidInput
from similarity.index.attributes import AttributeType
from similarity.index.numbers import DECIMAL_COMMA, THOUSANDS_COMMA
from similarity.index.protocol import WriteOutcome
from similarity.index.sqlite.files import refuse_database
from similarity.ingest.records import NESTED, Columns, ParsedRecord, attribute_values
from similarity.ingest.rows import Row

SHOWN_WARNINGS = 3
"""Number of ignored or ambiguous values that a report shows; all are in the file of warnings."""
# The beginning of a file of rejects or warnings.
FIRST_MEMBER = b'{"row": '


class RejectsFile:
    """A JSONL file of rejected rows, each with its number, reason and values; created at the first reject.

    An unreadable row of a text file also has its `text`, as it is in the file (only the beginning if it is too long).
    The values of accepted rows that were ignored or are ambiguous go to a file of their own, `warnings_path`, with row,
    id, column and reason. A run without rejects or warnings deletes the file that an earlier run wrote.

    Raises:
        InvalidInput: a file could not be written, or is `source` (the file that is read) or a database. The constructor
            checks this, before the load starts.
    """

    def __init__(self, path: Path, *, source: Path | None = None) -> None:
        self.path = path
        is_device = path.exists() and not path.is_file()  # such as /dev/null, beside which no file belongs
        name = f"{path.name.removesuffix('.jsonl').removesuffix('.rejects')}.warnings.jsonl"
        self.warnings_path = path if is_device else path.with_name(name)
        for each, contents in ((path, "rejected rows"), (self.warnings_path, "ignored values")):
            if source is not None and each.exists() and each.samefile(source):
                raise InvalidInput(f"{contents} cannot be written to {each}, which is being read; name another file")
            refuse_database(each)
            if not os.access(each if each.exists() else each.parent, os.W_OK) or each.is_dir():
                raise InvalidInput(
                    f"{contents} cannot be written to {each}; give --rejects FILE in an existing, writable folder"
                )
        self.count = 0
        self.first = ""
        """The number and the reason of the first rejected row."""
        self.first_warnings: list[str] = []
        self._streams: dict[Path, IO[str]] = {}

    def add(self, row: Row, reason: str) -> None:
        """Append one rejected row."""
        entry = {"row": row.number, "reason": reason, "record": dict(row.record)}
        if row.unreadable:  # `record` contains only a part of an unreadable row
            entry["text"] = row.raw.decode("utf-8", "surrogateescape")
        self._append(self.path, entry)
        self.count += 1
        self.first = self.first or f"row {row.number}: {reason}"

    def warn(self, row: Row, company_id: str, column: str, reason: str) -> None:
        """Append one value of an accepted row that was ignored or is ambiguous."""
        self._append(self.warnings_path, {"row": row.number, "id": company_id, "column": column, "reason": reason})
        if len(self.first_warnings) < SHOWN_WARNINGS:
            self.first_warnings.append(f"row {row.number} ({company_id}), column {column}: {reason}")

    @property
    def summary(self) -> str:
        """A text with the number of rejected rows, the file that holds them, and the reason of the first one."""
        rows = "1 row was" if self.count == 1 else f"{self.count:,} rows were"
        return f"{rows} rejected; see {self.path} (the first is {self.first})"

    def _append(self, path: Path, entry: Mapping[str, object]) -> None:
        if path not in self._streams:
            self._streams[path] = path.open("w", encoding="utf-8")
        # ASCII output: a record may hold broken Unicode, which must not break this file.
        self._streams[path].write(json.dumps(entry, default=str) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in self._streams.values():
            stream.close()
        if error is None:
            for path in {self.path, self.warnings_path} - set(self._streams):
                _delete_earlier(path)


def _delete_earlier(path: Path) -> None:
    """Delete a file that a RejectsFile wrote; leave any other file."""
    if not path.is_file():
        return
    with path.open("rb") as stream:
        is_ours = stream.readline(len(FIRST_MEMBER)) == FIRST_MEMBER
    if is_ours:
        try:
            path.unlink()
        except PermissionError:  # of the folder; the file is writable
            path.write_bytes(b"")


@dataclass(slots=True)
class LoadReport:
    """The counts of a load; `rows` is the sum of `outcomes`.

    Counts of companies: `deleted`; `missing`, the part of `deleted` that a sync deleted because the file lacks them;
    `failed_deletes`, which a sync could not delete because the store failed. Counts by field: `ignored_values`, invalid
    values of accepted companies; `ambiguous_values`, which were kept but may mean something else, such as "1.200";
    `thousands_commas`, values such as "1,234"; `removed_values`, companies that lost a value because their row has no
    column for it; `lost_to_invalid_values`, companies that lost a value because the new one is invalid.
    `deletes`: versions of rows that delete, by id; `older`: of rows older than the delete of their company.
    `decimal_commas`: one number of each field that has decimal commas. `notes`: remarks on the file.
    """

    rows: int = 0
    outcomes: Counter[WriteOutcome] = field(default_factory=Counter)
    ignored_values: Counter[str] = field(default_factory=Counter)
    ambiguous_values: Counter[str] = field(default_factory=Counter)
    decimal_commas: dict[str, str] = field(default_factory=dict)
    thousands_commas: Counter[str] = field(default_factory=Counter)
    removed_values: Counter[str] = field(default_factory=Counter)
    lost_to_invalid_values: Counter[str] = field(default_factory=Counter)
    deletes: dict[str, int] = field(default_factory=dict)
    older: dict[str, int] = field(default_factory=dict)
    deleted: int = 0
    missing: int = 0
    failed_deletes: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Rows and deletes by outcome, for the audit record."""
        rows = {outcome.value: count for outcome, count in self.outcomes.items()}
        return {"rows": self.rows, **rows, "deleted": self.deleted, "failed_deletes": self.failed_deletes}

    @property
    def stay_deleted(self) -> list[str]:
        """Ids of rows older than the delete of their company, unless a newer row of the file deletes it."""
        return [each for each, version in self.older.items() if version > self.deletes.get(each, 0)]

    @property
    def rejected(self) -> int:
        """Number of invalid rows, which are in the rejects file."""
        return self.outcomes[WriteOutcome.REJECTED]

    @property
    def failed(self) -> int:
        """Number of rows and deletes that the store did not accept; a repeated load tries them again."""
        return self.outcomes[WriteOutcome.FAILED] + self.failed_deletes


def note_warnings(
    row: Row, parsed: ParsedRecord, *, columns: Columns, rejects: RejectsFile, report: LoadReport
) -> None:
    """Count the ignored and ambiguous values of an accepted row, and write them to the file of warnings."""
    for name, warning in zip(parsed.warned_fields, parsed.warnings, strict=True):
        counts = report.ambiguous_values if name in parsed.ambiguous else report.ignored_values
        counts[name] += 1
        rejects.warn(row, parsed.change.id, columns.column_of(row.record, name), warning)
    for name, text in parsed.decimal_commas.items():
        report.decimal_commas.setdefault(name, text)
    for name, raw in attribute_values(row.record, columns).items():
        if isinstance(raw, str) and columns.schema.types.get(name) == AttributeType():
            if DECIMAL_COMMA.fullmatch(raw.strip()):
                report.decimal_commas.setdefault(f"{NESTED}{name}", raw.strip())
            report.thousands_commas[f"{NESTED}{name}"] += bool(THOUSANDS_COMMA.fullmatch(raw.strip()))
