"""Load of a file of companies into an index, in chunks, with a file of rejected rows and progress reports.

A load can be repeated: an unchanged text is not encoded again, and an unchanged company is only written again if its
row has an event time. If several rows have the same id and the same event time (or none), the first row is kept, or a
later row that deletes the company. Rows that the store does not accept are counted as failed, and the load continues.
Loading the file again writes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from similarity.company import (
    CLOCK_SKEW_ALLOWANCE,
    DeletedCompany,
    EmbeddedCompany,
    check_stored_id,
    utc_now,
    version_of,
)
from similarity.errors import IndexUnavailable, InvalidCompany, InvalidInput
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.ingest.field_values import clean_text
from similarity.ingest.files import read_rows
from similarity.ingest.records import (
    Change,
    Columns,
    ParsedRecord,
    lost_to_invalid_values,
    parse_record,
    removed_fields,
)
from similarity.ingest.rejects import LoadReport, RejectsFile, note_warnings
from similarity.ingest.renewed_leases import LoadLease
from similarity.ingest.repeated_rows import RepeatedRows
from similarity.ingest.rows import Row
from similarity.ingest.write_path import VERSION_CONFLICTS, OnStored, write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.model.encoder_protocol import Encoder

CHUNK_ROWS = 1024
SHOWN_IDS, SHOWN_ROWS = 3, 20
MAX_DELETED_SHARE = 0.05

OnRows = Callable[[int], None]
"""Called after each chunk with its number of rows, all of which now have an outcome."""
OnDeletes = Callable[[Sequence[tuple[DeletedCompany, WriteResult]]], None]
"""Called after each chunk with its deletes and their results."""


def require_company(path: Path, columns: Columns, *, rejects: RejectsFile, now: datetime) -> None:
    """Raise InvalidInput if no row of a file has a valid company; all its rows are then in `rejects`.

    Call it before a first load or a sync. If there is a valid company, it reads no further.
    """
    if not all(_problem(row, columns, now) for row in read_rows(path)):
        return
    for row in read_rows(path):
        rejects.add(row, _problem(row, columns, now))
    if not rejects.count:
        raise InvalidInput(f"{path} has column names but no rows; nothing was written")
    raise InvalidInput(f"no row of {path} can be used, so nothing was written: {rejects.summary}")


def load_file(
    path: Path,
    *,
    lease: LoadLease,
    encoders: Mapping[str, Encoder],
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    sync: bool = False,
    force: bool = False,
    before_writes: Callable[[], None] = lambda: None,
    on_rows: OnRows = lambda rows: None,
    on_deletes: OnDeletes = lambda deletes: None,
) -> LoadReport:
    """Write every valid row to the index of `lease`, and every invalid row with its reason to `rejects`.

    `now`: the start of the run. It is the version of rows without an event time. `sync`: the file is a complete
    snapshot, so stored companies that it does not contain are deleted. `force`: even if they are more than 5 %.
    `before_writes`: called once, before the first valid row is written.

    Raises (further, as `write_changes`):
        IndexUnavailable, LeaseLost: no row of a chunk was accepted, or the lease is lost; earlier chunks are written.
        InvalidInput: the file cannot be read to its end; earlier chunks are written. A sync raises it before it writes,
            also if no row has a valid company, a row has no usable id, or too many companies would be deleted.
    """
    if sync:
        require_company(path, columns, rejects=rejects, now=now)
    missing = _ids_missing_from(path, lease.index, columns, force=force) if sync else set()
    report = LoadReport()
    rows = read_rows(path, on_note=report.notes.append)
    repeated = RepeatedRows()
    unknown: list[str] = []
    is_begun = False
    with WriterLease(lease.index) as writer:
        while chunk := list(islice(rows, CHUNK_ROWS)):
            accepted = _accepted(chunk, columns=columns, repeated=repeated, rejects=rejects, now=now, report=report)
            if accepted and not is_begun:
                before_writes()
                is_begun = True
            not_stored = dict.fromkeys(_unknown_deletes(writer.index, [parsed.change for _, parsed in accepted]))
            unknown += not_stored
            missing.difference_update(parsed.change.id for _, parsed in accepted)  # if the file changed since
            lease.held()
            results = _load_rows(accepted, writer, encoders, columns=columns, rejects=rejects, now=now, report=report)
            row_deletes = [(change, result) for change, result in results if isinstance(change, DeletedCompany)]
            on_deletes(row_deletes)
            applied = (result.id for _, result in row_deletes if result.outcome is WriteOutcome.APPLIED)
            report.deleted += len({*applied} - not_stored.keys())
            on_rows(len(chunk))
        if unknown:
            named = ", ".join(unknown[:SHOWN_IDS]) + (", ..." if len(unknown) > SHOWN_IDS else "")
            report.notes.append(f"{len(unknown):,} of the ids to delete have no company: {named}")
        if repeated.harmless:
            report.notes.append(f"{repeated.harmless:,} rows have the id and the content of an earlier row")
        version = version_of(now, now=now, deleted=True)
        lacking, newer = sorted(missing), 0
        for start in range(0, len(lacking), CHUNK_ROWS):
            deletes = [DeletedCompany(id=each, version=version, untimed=True) for each in lacking[start:][:CHUNK_ROWS]]
            lease.held()
            delete_results = _write(writer, encoders, deletes, now=now)
            on_deletes(list(zip(deletes, delete_results, strict=True)))
            report.missing += sum(result.outcome is WriteOutcome.APPLIED for result in delete_results)
            report.failed_deletes += sum(result.outcome is WriteOutcome.FAILED for result in delete_results)
            newer += sum(result.outcome is WriteOutcome.SUPERSEDED for result in delete_results)
        if newer:
            report.notes.append(f"{newer:,} companies that the file lacks stay: they are newer than this load")
        report.deleted += report.missing
    return report


def _unknown_deletes(index: CompanyIndex, changes: Sequence[Change]) -> list[str]:
    """Return the ids that `changes` delete although no company has them; they may be misspelled."""
    ids = [change.id for change in changes if isinstance(change, DeletedCompany)]
    known = index.get(index.write_targets()[0].name, ids) if ids else {}  # a newer one may still be filled
    return [each for each in ids if each not in known]


def _problem(row: Row, columns: Columns, now: datetime) -> str:
    """Return why a load gets no company from `row`; empty if it gets one."""
    try:
        parsed = _parsed(row, columns, now)
    except InvalidCompany as error:
        return str(error)
    return "it deletes a company, and no row adds one" if isinstance(parsed.change, DeletedCompany) else ""


def _parsed(row: Row, columns: Columns, now: datetime) -> ParsedRecord:
    if row.unreadable:
        raise InvalidCompany("row", row.unreadable)
    return parse_record(row.record, columns=columns, now=now)


def _ids_missing_from(path: Path, index: CompanyIndex, columns: Columns, *, force: bool) -> set[str]:
    """Return the ids of stored companies that no row of the file has, valid or not.

    Raises:
        InvalidInput: a row has no usable id, or (unless `force`) more than 5 % of the companies are missing.
    """
    ids_in_file, without = set[str](), list[str]()
    for row in read_rows(path):
        try:
            ids_in_file.add(_id_of(row, columns))
        except InvalidCompany as error:
            without.append(f"row {row.number} has no usable id ({error})")
    if without:
        named = "; ".join(without[:SHOWN_ROWS] + ["..."] * (len(without) > SHOWN_ROWS))
        raise InvalidInput(f"{named}; the deletes are not certain, so nothing was written: correct or remove such rows")
    batches = (batch for generation in index.write_targets() for batch in index.scan(generation.name))
    stored_ids = {each.id for batch in batches for each in batch if not isinstance(each, DeletedCompany)}
    missing_ids = stored_ids - ids_in_file
    if len(missing_ids) > MAX_DELETED_SHARE * len(stored_ids) and not force:
        new = sorted(ids_in_file - stored_ids)
        added = f"; {len(new):,} of its ids are new, such as {new[0]}" if new else ""
        raise InvalidInput(
            f"the file lacks {len(missing_ids):,} of {len(stored_ids):,} companies, more than 5 %, such as "
            f"{min(missing_ids)}{added}; nothing was written. If they should be deleted, use --force"
        )
    return missing_ids


def _id_of(row: Row, columns: Columns) -> str:
    """Return the id of a row. Raises InvalidCompany if it is missing or invalid."""
    if row.unreadable:  # its cells, and so its id, may be in the wrong columns
        raise InvalidCompany("id", row.unreadable)
    company_id = clean_text(columns.value(row.record, "id"), "id")
    check_stored_id(company_id)
    return company_id


def _accepted(
    rows: Sequence[Row],
    *,
    columns: Columns,
    repeated: RepeatedRows,
    rejects: RejectsFile,
    now: datetime,
    report: LoadReport,
) -> list[tuple[Row, ParsedRecord]]:
    """Return the valid rows with their parsed records; write the others to `rejects`, and count both in `report`."""
    report.rows += len(rows)
    accepted: list[tuple[Row, ParsedRecord]] = []
    for row in rows:
        try:
            parsed = _parsed(row, columns, now)
            if conflict := repeated.conflict(row.number, parsed.change):
                raise InvalidCompany("id", conflict)
        except InvalidCompany as error:
            report.outcomes[WriteOutcome.REJECTED] += 1
            rejects.add(row, str(error))
            continue
        accepted.append((row, parsed))
        note_warnings(row, parsed, columns=columns, rejects=rejects, report=report)
    return accepted


def _load_rows(
    accepted: Sequence[tuple[Row, ParsedRecord]],
    writer: WriterLease,
    encoders: Mapping[str, Encoder],
    *,
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    report: LoadReport,
) -> list[tuple[Change, WriteResult]]:
    """Write the accepted rows, and count them in `report`. Return the changes with their results."""
    stored: dict[str, EmbeddedCompany] = {}
    changes = [parsed.change for _, parsed in accepted]
    results = _write(writer, encoders, changes, now=now, on_stored=stored.update)
    for (row, parsed), result in zip(accepted, results, strict=True):
        report.outcomes[result.outcome] += 1
        change = parsed.change
        if result.outcome is WriteOutcome.APPLIED and change.id in stored and not isinstance(change, DeletedCompany):
            before = stored[change.id].company
            report.removed_values.update(removed_fields(before, change.company, row.record, columns))
            report.lost_to_invalid_values.update(lost_to_invalid_values(before, parsed))
        if isinstance(change, DeletedCompany):
            report.deletes[change.id] = max(change.version, report.deletes.get(change.id, 0))
        elif result.outcome is WriteOutcome.SUPERSEDED and change.id not in stored:
            report.older[change.id] = max(change.version, report.older.get(change.id, 0))
        if result.outcome is WriteOutcome.REJECTED:
            rejects.add(row, result.reason)
    return list(zip(changes, results, strict=True))


def _write(
    writer: WriterLease,
    encoders: Mapping[str, Encoder],
    changes: Sequence[Change],
    *,
    now: datetime,
    on_stored: OnStored = lambda stored: None,
) -> list[WriteResult]:
    """Write the changes, and return one result per change.

    A row without an event time is not written if its company is unchanged, or was written after `now`, the start of the
    run. But if the stored version is in the future, it comes from a wrong clock, and the row is written with the next
    higher version. If other writers prevent this, the result is FAILED.

    Raises:
        IndexUnavailable: the index accepted none of the changes.
    """
    clock = utc_now()
    latest_valid = version_of(clock + CLOCK_SKEW_ALLOWANCE, now=clock, deleted=True)
    results = write_changes(
        writer, encoders, changes, now=now, bump_above=latest_valid, skip_unchanged=True, on_stored=on_stored
    )
    if results and all(result.outcome is WriteOutcome.FAILED for result in results):  # the store is down or full
        raise IndexUnavailable(
            f"the index accepted none of {len(results):,} companies ({results[0].reason}); the rows before them are "
            "written. Run the same command again when the index is available"
        )
    return [
        replace(result, outcome=WriteOutcome.FAILED, reason="other writers changed the company at the same time")
        if change.untimed and result.outcome in VERSION_CONFLICTS and (result.version or 0) > latest_valid
        else result
        for change, result in zip(changes, results, strict=True)
    ]
