"""Loads a file of companies into an index in one pass, in chunks, with a rejects file and progress.

A load can be repeated: companies that are already in the index are not encoded again. If the store does not accept
some rows, they are counted as failed and the load continues; loading the file again writes them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from similarity.company import CLOCK_SKEW_ALLOWANCE, DeletedCompany, check_stored_id, utc_now, version_of
from similarity.errors import IndexUnavailable, InvalidCompany, InvalidInput
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.ingest.files import RejectsFile, Row, column_names, has_late_column, read_rows
from similarity.ingest.records import Change, Columns, clean_text, parse_record
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.model.encoder_protocol import Encoder

CHUNK_ROWS = 1024
MAX_DELETED_SHARE = 0.05

OnRows = Callable[[int], None]
"""Called with the number of additional rows that are finished (written or rejected)."""
OnDeletes = Callable[[Sequence[tuple[DeletedCompany, WriteResult]]], None]
"""Called with the deletes of a batch and their results."""


@dataclass(slots=True)
class LoadReport:
    """The results of a load: rows = applied + unchanged + superseded + rejected + failed.

    `deleted` and `failed_deletes` count the deletes of a sync. `ignored_values` counts, by field, the invalid values
    that were ignored in accepted companies.
    """

    rows: int = 0
    outcomes: Counter[WriteOutcome] = field(default_factory=Counter)
    ignored_values: Counter[str] = field(default_factory=Counter)
    deleted: int = 0
    failed_deletes: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Rows and deletes by outcome, for the audit record."""
        rows = {outcome.value: count for outcome, count in self.outcomes.items()}
        return {"rows": self.rows, **rows, "deleted": self.deleted, "failed_deletes": self.failed_deletes}

    @property
    def rejected(self) -> int:
        return self.outcomes[WriteOutcome.REJECTED]

    @property
    def failed(self) -> int:
        """Rows and deletes that the store did not accept; repeat the load to try them again."""
        return self.outcomes[WriteOutcome.FAILED] + self.failed_deletes


def check_columns(path: Path, columns: Columns) -> None:
    """Raise InvalidInput if the file lacks a mapped or a required column; the message lists its columns."""
    present = column_names(path)
    listed = f"the file has the columns: {', '.join(present) or 'none'}"
    for name, column in (*columns.fields.items(), *columns.attributes.items()):
        if column not in present and not has_late_column(path, column):
            raise InvalidInput(f"there is no column {column!r} for {name}; {listed}")
    for name in ("id", "name", "description"):
        if columns.fields.get(name, name) not in present:
            raise InvalidInput(f"there is no column {name!r}; give its name with --column {name}=COLUMN; {listed}")


def load_file(
    path: Path,
    *,
    index: CompanyIndex,
    encoders: Mapping[str, Encoder],
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    sync: bool = False,
    force: bool = False,
    on_rows: OnRows = lambda rows: None,
    on_deletes: OnDeletes = lambda deletes: None,
) -> LoadReport:
    """Write every valid row to the index; the others go to `rejects`, each with its reason.

    `now`: the start of the run, which is the version of rows without an event time. `sync`: the file is a complete
    snapshot, so the companies that it does not contain are deleted.

    Raises:
        IndexUnavailable: the store accepted no row of a chunk.
        InvalidInput: a sync would delete more than 5 % of the companies, or a row of its snapshot has no readable
            id, so that the companies to delete are not certain (unless `force`). Nothing was written.
    """
    missing = _missing_from(path, index, columns, force=force) if sync else []
    report = LoadReport()
    rows = read_rows(path)
    with WriterLease(index) as writer:
        while chunk := list(islice(rows, CHUNK_ROWS)):
            written = _load_chunk(chunk, writer, encoders, columns=columns, rejects=rejects, now=now, report=report)
            on_deletes([(change, result) for change, result in written if isinstance(change, DeletedCompany)])
            on_rows(len(chunk))
        version = version_of(now, now=now, deleted=True)
        for start in range(0, len(missing), CHUNK_ROWS):
            ids = missing[start : start + CHUNK_ROWS]
            deletes = [DeletedCompany(id=company_id, version=version, untimed=True) for company_id in ids]
            results = _write(writer, encoders, deletes, now=now)
            on_deletes(list(zip(deletes, results, strict=True)))
            report.deleted += sum(result.outcome is WriteOutcome.APPLIED for result in results)
            report.failed_deletes += sum(result.outcome is WriteOutcome.FAILED for result in results)
    return report


def _missing_from(path: Path, index: CompanyIndex, columns: Columns, *, force: bool) -> list[str]:
    """Return the ids of stored companies that no row of a snapshot has, not even a rejected row."""
    named: set[str] = set()
    for row in read_rows(path):
        try:
            named.add(_id_of(row, columns))
        except InvalidCompany as error:
            if not force:
                raise InvalidInput(
                    f"row {row.number} has no usable id ({error}), so the companies to delete are not certain; correct "
                    "the row, or use --force to delete anyway"
                ) from error
    targets = index.write_targets()
    stored = {
        document.id
        for target in targets
        for batch in index.scan(target.name)
        for document in batch
        if not isinstance(document, DeletedCompany)
    }
    missing = sorted(stored - named)
    if len(missing) > MAX_DELETED_SHARE * len(stored) and not force:
        raise InvalidInput(
            f"the snapshot lacks {len(missing):,} of {len(stored):,} companies, more than 5 %; nothing was written. "
            "If this is intended, use --force"
        )
    return missing


def _id_of(row: Row, columns: Columns) -> str:
    """Return the id of a row. Raises InvalidCompany if it is missing, or no company can have it."""
    if row.unreadable:  # its cells may be in the wrong columns
        raise InvalidCompany("id", row.unreadable)
    company_id = clean_text(columns.value(row.record, "id"), "id")
    check_stored_id(company_id)
    return company_id


def _load_chunk(
    rows: Sequence[Row],
    writer: WriterLease,
    encoders: Mapping[str, Encoder],
    *,
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    report: LoadReport,
) -> list[tuple[Change, WriteResult]]:
    report.rows += len(rows)
    accepted: list[tuple[Row, Change]] = []
    for row in rows:
        try:
            if row.unreadable:
                raise InvalidCompany("row", row.unreadable)
            parsed = parse_record(row.record, columns=columns, now=now)
        except InvalidCompany as error:
            report.outcomes[WriteOutcome.REJECTED] += 1
            rejects.add(row, str(error))
            continue
        accepted.append((row, parsed.change))
        report.ignored_values.update(parsed.ignored_fields)
    results = _write(writer, encoders, [change for _, change in accepted], now=now)
    for (row, _), result in zip(accepted, results, strict=True):
        report.outcomes[result.outcome] += 1
        if result.outcome is WriteOutcome.REJECTED:
            rejects.add(row, result.reason)
    return [(change, result) for (_, change), result in zip(accepted, results, strict=True)]


def _write(
    writer: WriterLease, encoders: Mapping[str, Encoder], changes: Sequence[Change], *, now: datetime
) -> list[WriteResult]:
    """Return one result per change. A row without an event time does not replace what was written since the start.

    A stored version ahead of the clock comes from a wrong clock: the row is written above it, or counted as failed.
    """
    present = utc_now()
    latest = version_of(present + CLOCK_SKEW_ALLOWANCE, now=present, deleted=True)
    results = write_changes(writer, encoders, changes, now=now, bump_above=latest)
    if results and all(result.outcome is WriteOutcome.FAILED for result in results):  # it is down, or full
        raise IndexUnavailable(
            f"the index accepted none of {len(results):,} companies ({results[0].reason}); earlier ones are written. "
            "Run the same command again when the index is available"
        )
    return [
        replace(result, outcome=WriteOutcome.FAILED, reason="other writers changed it at the same time")
        if change.untimed and result.outcome is WriteOutcome.SUPERSEDED and (result.version or 0) > latest
        else result
        for change, result in zip(changes, results, strict=True)
    ]
