"""The commands `similarity ingest` and `similarity sync`."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from similarity.cli.context import (
    AttributeOption,
    BundleOption,
    ColumnOption,
    IndexOption,
    RejectsOption,
    SizeOption,
    columns_of,
    declare,
    fail,
    found_columns,
    may_exist,
    opened,
    progress,
    rejects_path,
)
from similarity.formats.terminal import printable
from similarity.settings import Settings

if TYPE_CHECKING:
    from similarity.company import DeletedCompany
    from similarity.index.protocol import GenerationStats, WriteResult
    from similarity.ingest.records import Columns
    from similarity.ingest.rejects import LoadReport, RejectsFile
    from similarity.upkeep.audit import AuditRecord

SHOWN_DELETED = 10

load_commands = typer.Typer()


@load_commands.command()
def ingest(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, TXT, JSON, JSONL (also .gz), Excel (.xlsx) or Parquet")],
    column: ColumnOption = None,
    attribute: AttributeOption = None,
    size: SizeOption = "",
    rejects: RejectsOption = None,
    only_if_new: Annotated[
        bool,
        typer.Option(
            "--only-if-new", help="A first load: does nothing if there is a live generation; rejects are not failures"
        ),
    ] = False,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Add or update the companies of a file.

    Columns named like the fields, in any case, are found by themselves: id, name, description, aliases, domain (or
    website), country, industry, tags, event_time, deleted (true deletes the company). Map others with --column, for
    example `-c id=ticker -c description=about`. Lists in one cell are separated by ; or |. Other columns are kept as
    facts by --attribute, for example `-a market_cap:ordinal=small,mid,large --size market_cap`.

    If rows have the same id but other content, the first is kept. Running it again is cheap and safe: only what is
    new or changed is written.
    """
    if only_if_new and (live := _live_generation(index)):
        typer.echo(f"nothing was done: generation {live} is live already")
        return
    columns = columns_of(column, attribute, size)
    _load(file, columns=columns, rejects=rejects, index=index, bundle=bundle, is_first=only_if_new)


@load_commands.command()
def sync(
    file: Annotated[
        Path, typer.Argument(help="A full snapshot: CSV, TSV, TXT, JSON, JSONL (also .gz), Excel (.xlsx) or Parquet")
    ],
    column: ColumnOption = None,
    attribute: AttributeOption = None,
    size: SizeOption = "",
    rejects: RejectsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Also if more than 5 % would be deleted")] = False,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Make the index hold exactly a file's companies: ingest it and delete those that it lacks."""
    columns = columns_of(column, attribute, size)
    _load(file, columns=columns, rejects=rejects, index=index, bundle=bundle, sync=True, force=force)


def _live_generation(index: str | None) -> str | None:
    """Return the name of the live generation; None if there is none yet."""
    from similarity.errors import NoLiveGeneration

    if not may_exist(index):
        return None
    with opened(index) as work:
        try:
            return work.index.live().name
        except NoLiveGeneration:
            return None


def _load(
    file: Path,
    *,
    columns: "Columns",
    rejects: Path | None,
    index: str | None,
    bundle: Path | None,
    is_first: bool = False,
    sync: bool = False,
    force: bool = False,
) -> None:
    from similarity.company import utc_now
    from similarity.generations.new import ensure_generation, promote_first
    from similarity.index.bundle_store import keep_bundle
    from similarity.ingest.files import count_rows
    from similarity.ingest.load import load_file, require_company
    from similarity.ingest.rejects import RejectsFile
    from similarity.ingest.renewed_leases import LoadLease
    from similarity.upkeep.audit import Action, file_subject, refuse_audit_record, system_user

    found = found_columns(file, columns, index)
    rejects = rejects or rejects_path(file)
    refuse_audit_record(Settings.from_environment(os.environ, index=index), rejects)
    if not _live_generation(index):
        with RejectsFile(rejects, source=file) as rejected:
            require_company(file, found.columns, rejects=rejected, now=utc_now())
    deleted: list[str] = []
    with opened(index, bundle, create=True) as work, LoadLease(work.index) as lease:
        record, who = work.audit, system_user()
        now = utc_now()  # the version of the rows: later than the versions of all earlier loads
        loaded = work.bundle()
        generation = ensure_generation(work.index, loaded, now=now)
        keep_bundle(loaded, work.store)
        with (
            record.recorded(Action.SYNC if sync else Action.INGEST, who=who, subject=file_subject(file)) as act,
            RejectsFile(rejects, source=file) as rejected,
            progress("rows", count_rows(file)) as on_rows,
        ):
            report = load_file(
                file,
                lease=lease,
                encoders=work.encoders(loaded),
                columns=found.columns,
                rejects=rejected,
                now=now,
                sync=sync,
                force=force,
                before_writes=lambda: declare(work, columns),
                on_rows=on_rows,
                on_deletes=lambda deletes: deleted.extend(_put_on_record(record, who, deletes)),
            )
            act.counts = report.counts
        promoted = not report.failed and promote_first(work.audited, generation)
        stats = work.index.stats(generation.name)
    # The companies that the file lacks are deleted last, after the companies that its rows delete.
    _print_report(report, rejected, stats, promoted=promoted, missing=deleted[len(deleted) - report.missing :])
    if sync and report.stay_deleted:
        fail("the index does not hold every company of the file; see the warning")
    if rejected.count:
        if not (is_first and promoted):
            fail(rejected.summary)
        typer.echo(
            f"similarity: {printable(rejected.summary)}", err=True
        )  # a success, because the accepted companies are live


def _put_on_record(
    record: "AuditRecord", who: str, deletes: "Sequence[tuple[DeletedCompany, WriteResult]]"
) -> list[str]:
    """Write the deletes to the audit record, and return the ids of the companies that were deleted."""
    from similarity.index.protocol import WriteOutcome
    from similarity.upkeep.audit import Action, Entry

    record.write(
        [
            Entry(
                action=Action.DELETE,
                outcome=result.outcome.value,
                who=who,
                company_id=delete.id,
                version=(result.outcome is WriteOutcome.APPLIED and result.version) or delete.version,
            )
            for delete, result in deletes
        ]
    )
    return [delete.id for delete, result in deletes if result.outcome is WriteOutcome.APPLIED]


def print_warnings(report: "LoadReport", rejected: "RejectsFile") -> None:
    """Print how many values were ignored, are ambiguous or were removed, the first warnings, and the file with all."""
    counted = (
        ("invalid value was", "invalid values were", "ignored in accepted companies", report.ignored_values),
        ("value was", "values were", "kept, but may mean something else", report.ambiguous_values),
    )
    texts = [
        f"{counts.total():,} {one if counts.total() == 1 else several} {what}: "
        + ", ".join(f"{field} {count:,}" for field, count in counts.most_common())
        for one, several, what, counts in counted
        if counts
    ]
    if texts:
        typer.echo("\n".join(texts) + f"; see {rejected.warnings_path}. The first are:")
    for warning in rejected.first_warnings:
        typer.echo(f"  {printable(warning)}")
    for name, text in report.decimal_commas.items():
        thousands = report.thousands_commas[name]
        if thousands or name in report.ambiguous_values or name in report.ignored_values:
            typer.echo(
                printable(
                    f"warning: {name} has numbers with a decimal comma, such as {text!r:.40}; values like 1.200 are "
                    f"read as 1.2, values like 1,234 as 1234 (here {thousands:,}), and values like 12,5 are ignored: "
                    "write 1200, 1.234 and 12.5, and load the file again"
                )
            )
    if report.lost_to_invalid_values:
        typer.echo(
            printable(
                "warning: stored values were removed, because their new values are invalid and a company is written "
                f"whole: {_by_field(report.lost_to_invalid_values)}. Correct the values and load the file again"
            )
        )
    if report.removed_values:
        typer.echo(
            printable(
                "warning: values were removed from companies, because the load has no column for them: "
                f"{_by_field(report.removed_values)}. To have them again, load a file with these columns (options: "
                "--column FIELD=COLUMN, --attribute NAME=COLUMN)"
            )
        )


def _by_field(counts: "Counter[str]") -> str:
    return ", ".join(f"{field} from {count:,}" for field, count in counts.most_common())


def _examples(ids: Sequence[str], count: int) -> str:
    """Return the ids, which are the first of `count` companies, and how many more there are."""
    return ", ".join(ids) + (f" and {count - len(ids):,} more" if count > len(ids) else "")


def _print_report(
    report: "LoadReport",
    rejected: "RejectsFile",
    stats: "GenerationStats",
    *,
    promoted: bool,
    missing: Sequence[str],
) -> None:
    from similarity.index.protocol import WriteOutcome

    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(report.outcomes.items()) if count)
    typer.echo(
        f"{report.rows:,} rows: {outcomes or 'none'}" + (f"; {report.deleted:,} deleted" if report.deleted else "")
    )
    if missing:
        named = _examples(missing[:SHOWN_DELETED], len(missing))
        typer.echo(f"deleted, because the file does not have them: {printable(named)}")
    if superseded := report.outcomes[WriteOutcome.SUPERSEDED]:
        typer.echo(
            f"{superseded:,} superseded: the index holds a newer version of these companies, so their rows changed "
            "nothing. A version is the event_time or, without one, the time of the load; to write them anyway, load "
            "them without their times (--column event_time=)"
        )
    if stays := report.stay_deleted:
        typer.echo(
            printable(
                f"warning: {len(stays):,} of them were deleted after their event_time, and stay deleted: "
                f"{_examples(stays[:SHOWN_DELETED], len(stays))}. To have them again, load them without their times "
                "(--column event_time=)"
            )
        )
    for note in report.notes:
        typer.echo(printable(note))
    print_warnings(report, rejected)
    typer.echo(f"{stats.companies:,} companies in the index" + (", which is live now" if promoted else ""))
    if stats.unread:
        named = _examples(stats.unread_ids, stats.unread)
        typer.echo(f"{stats.unread:,} of them in languages that the model does not read: {named}")
    if stats.without_vector:
        named = _examples(stats.without_vector_ids, stats.without_vector)
        typer.echo(
            f"{stats.without_vector:,} of them without a ranking: their descriptions have too few words: {named}"
        )
    if report.failed:
        fail(
            f"the index did not accept {report.failed:,} companies; run the same command again to write them"
            + (f"; {rejected.summary}" if rejected.count else "")
        )
