"""Loads a file of companies into an index: one pass, in chunks, with rejects and progress.

Loading is restartable: it writes chunk by chunk, and what is already there costs no encoding. Rows
that the store did not take are counted as failed and the rest is tried all the same; loading the
file again makes them good.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from similarity.company import CLOCK_SKEW_ALLOWANCE, DeletedCompany, utc_now, version_of
from similarity.errors import IndexUnavailable, InvalidCompany, InvalidInput
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.ingest.changes import write_changes
from similarity.ingest.files import RejectsFile, Row, column_names, has_late_column, read_rows
from similarity.ingest.records import COMPANY_FIELDS, Change, Columns, parse_record
from similarity.ingest.writers import Writer
from similarity.model.encoder_protocol import Encoder

CHUNK_ROWS = 1024
MAX_DELETED_SHARE = 0.05

OnRows = Callable[[int], None]
"""Called with how many more rows are finished (written or rejected)."""
OnDeletes = Callable[[Sequence[tuple[DeletedCompany, WriteResult]]], None]
"""Called with the deletes of a batch and what became of each."""


@dataclass(slots=True)
class LoadReport:
    """What became of every row: rows = applied + unchanged + superseded + rejected + failed.

    `deleted` and `failed_deletes` count the companies that a sync deleted, or tried to. `left_out` counts, by
    field, the values that could not be used and cost their company nothing else.
    """

    rows: int = 0
    outcomes: Counter[WriteOutcome] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    deleted: int = 0
    failed_deletes: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Rows and deletes by outcome, as the audit record has them."""
        rows = {outcome.value: count for outcome, count in self.outcomes.items()}
        return {"rows": self.rows, **rows, "deleted": self.deleted, "failed_deletes": self.failed_deletes}

    @property
    def rejected(self) -> int:
        return self.outcomes[WriteOutcome.REJECTED]

    @property
    def failed(self) -> int:
        """Rows and deletes that the store did not take; the same load again is safe and tries them again."""
        return self.outcomes[WriteOutcome.FAILED] + self.failed_deletes


def check_columns(path: Path, columns: Columns) -> None:
    """Raises InvalidInput if the file lacks a mapped or a required column; the message lists what it has."""
    present = column_names(path)
    listed = f"the file has the columns: {', '.join(present) or 'none'}"
    unknown = sorted(set(columns.fields) - set(COMPANY_FIELDS))
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is not a company field; map {', '.join(COMPANY_FIELDS)}")
    for name, column in (*columns.fields.items(), *columns.attributes.items()):
        if column not in present and not has_late_column(path, column):
            raise InvalidInput(f"there is no column {column!r} for {name}; {listed}")
    for name in ("id", "name", "description"):
        if columns.fields.get(name, name) not in present:
            raise InvalidInput(f"which column holds the {name}? Say --column {name}=COLUMN; {listed}")


def load_file(
    path: Path,
    *,
    index: CompanyIndex,
    encoders: Mapping[str, Encoder],
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    on_rows: OnRows = lambda rows: None,
    on_deletes: OnDeletes = lambda deletes: None,
) -> LoadReport:
    """Writes every readable row to the index; the rest goes to `rejects` with a reason each.

    `now` is the start of the run and the version of rows without an event time.

    Raises:
        IndexUnavailable: the store took nothing of a whole chunk.
    """
    with Writer(index) as writer:
        return _load_rows(
            path,
            writer=writer,
            encoders=encoders,
            columns=columns,
            rejects=rejects,
            now=now,
            on_rows=on_rows,
            on_deletes=on_deletes,
        )


def sync_file(
    path: Path,
    *,
    index: CompanyIndex,
    encoders: Mapping[str, Encoder],
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    force: bool = False,
    on_rows: OnRows = lambda rows: None,
    on_deletes: OnDeletes = lambda deletes: None,
) -> LoadReport:
    """Makes the index hold what a full snapshot holds: loads it, and deletes the companies it lacks.

    Raises:
        InvalidInput: more than 5 % of the companies would be deleted, or rows without a readable id
            leave open which companies the snapshot holds (unless `force`). Nothing was written.
    """
    missing = _missing_from(path, index, columns, force=force)
    version = version_of(now, now=now, deleted=True)
    with Writer(index) as writer:
        report = _load_rows(
            path,
            writer=writer,
            encoders=encoders,
            columns=columns,
            rejects=rejects,
            now=now,
            on_rows=on_rows,
            on_deletes=on_deletes,
        )
        for start in range(0, len(missing), CHUNK_ROWS):
            ids = missing[start : start + CHUNK_ROWS]
            deletes = [DeletedCompany(id=company_id, version=version, untimed=True) for company_id in ids]
            results = _write(writer, encoders, deletes, now=now)
            on_deletes(list(zip(deletes, results, strict=True)))
            report.deleted += sum(result.outcome is WriteOutcome.APPLIED for result in results)
            report.failed_deletes += sum(result.outcome is WriteOutcome.FAILED for result in results)
    return report


def _load_rows(
    path: Path,
    *,
    writer: Writer,
    encoders: Mapping[str, Encoder],
    columns: Columns,
    rejects: RejectsFile,
    now: datetime,
    on_rows: OnRows,
    on_deletes: OnDeletes,
) -> LoadReport:
    report = LoadReport()
    rows = read_rows(path)
    while chunk := list(islice(rows, CHUNK_ROWS)):
        written = _load_chunk(chunk, writer, encoders, columns=columns, rejects=rejects, now=now, report=report)
        on_deletes([(change, result) for change, result in written if isinstance(change, DeletedCompany)])
        on_rows(len(chunk))
    return report


def _missing_from(path: Path, index: CompanyIndex, columns: Columns, *, force: bool) -> list[str]:
    """Ids of stored companies that a snapshot does not name, rejected rows included."""
    named: set[str] = set()
    for row in read_rows(path):
        # The cells of an unreadable row may stand in the wrong columns: whose row it is nobody knows.
        company_id = None if row.unreadable else columns.value(row.record, "id")
        if company_id is not None and str(company_id).strip():
            named.add(str(company_id).strip())
        elif not force:
            reason = row.unreadable or "it has no id"
            raise InvalidInput(
                f"row {row.number} does not say which company it is ({reason}), so what the snapshot lacks is unsure; "
                "mend the row, or say --force to delete all the same"
            )
    targets = index.write_targets()
    stored = {company_id for target in targets for company_id in _stored_ids(index, target.name)}
    missing = sorted(stored - named)
    if len(missing) > MAX_DELETED_SHARE * len(stored) and not force:
        raise InvalidInput(
            f"the snapshot lacks {len(missing):,} of {len(stored):,} companies, more than 5 %; nothing was written. "
            "If they are really gone, say --force"
        )
    return missing


def _stored_ids(index: CompanyIndex, generation: str) -> Iterator[str]:
    for batch in index.scan(generation):
        yield from (document.id for document in batch if not isinstance(document, DeletedCompany))


def _load_chunk(
    rows: Sequence[Row],
    writer: Writer,
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
        report.left_out.update(parsed.left_out)
    results = _write(writer, encoders, [change for _, change in accepted], now=now)
    for (row, _), result in zip(accepted, results, strict=True):
        report.outcomes[result.outcome] += 1
        if result.outcome is WriteOutcome.REJECTED:
            rejects.add(row, result.reason)
    return [(change, result) for (_, change), result in zip(accepted, results, strict=True)]


def _write(
    writer: Writer, encoders: Mapping[str, Encoder], changes: Sequence[Change], *, now: datetime
) -> list[WriteResult]:
    """One result per change. A row without an event time gives way to what was written since the run's start.

    It does not give way to a version that only a wrong clock can have made: superseded by one, it has failed.
    """
    present = utc_now()
    latest = version_of(present + CLOCK_SKEW_ALLOWANCE, now=present, deleted=True)
    results = write_changes(writer, encoders, changes, now=now, raise_above=latest)
    _require_some_taken(results)
    return [
        replace(result, outcome=WriteOutcome.FAILED, reason="other writers changed it at the same time")
        if change.untimed and result.outcome is WriteOutcome.SUPERSEDED and (result.version or 0) > latest
        else result
        for change, result in zip(changes, results, strict=True)
    ]


def _require_some_taken(results: Sequence[WriteResult]) -> None:
    """Where nothing of a chunk was taken, the store is down or full: trying the rest takes hours and helps nobody."""
    if results and all(result.outcome is WriteOutcome.FAILED for result in results):
        raise IndexUnavailable(
            f"the store took none of {len(results):,} companies ({results[0].reason}); what was acknowledged before is "
            "written, and running the same command again is safe"
        )
