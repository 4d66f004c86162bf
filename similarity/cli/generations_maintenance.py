"""The commands `similarity generations` prune, drift, leases, import-vectors, compact and purge-deleted."""

import os
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from similarity.cli.context import (
    AttributeOption,
    ColumnOption,
    IndexOption,
    Opened,
    RejectsOption,
    SizeOption,
    columns_of,
    declare,
    fail,
    found_columns,
    opened,
    progress,
    rejects_path,
)
from similarity.cli.load import print_warnings
from similarity.cli.output import ListFormat, show_facts, show_rows
from similarity.errors import InvalidInput
from similarity.formats.terminal import printable
from similarity.settings import Settings

if TYPE_CHECKING:
    from similarity.index.protocol import Generation
    from similarity.ingest.rejects import RejectsFile

maintenance = typer.Typer()
MOST_DAYS = 36_500
"""The largest number of days that the options accept, a hundred years: `datetime` has no times before year 1."""
VECTOR_FILE = (
    "Parquet or JSONL: companies with a column 'vector' and, if possible, event_time, the time at which each was read. "
    "A row without event_time gets the time at which this import starts, so it replaces newer values that were "
    "written since the file was made"
)

FormatOption = Annotated[ListFormat, typer.Option("--format", "-f", help="Output format")]
IntoOption = Annotated[
    str | None,
    typer.Option("--into", help="Continue with this generation, building or a candidate [default: a new one]"),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and change nothing")]


@maintenance.command()
def prune(
    keep: Annotated[int, typer.Option(min=0, help="Number of previous generations to keep for a rollback")] = 1,
    older_than: Annotated[
        float,
        typer.Option(
            min=0,
            max=MOST_DAYS,
            metavar="DAYS",
            help="Only generations that were replaced, or if unfinished created, at least DAYS ago",
        ),
    ] = 7,
    dry_run: DryRunOption = False,
    index: IndexOption = None,
) -> None:
    """Remove old generations: replaced ones beyond those kept, and abandoned unfinished ones.

    Example: `similarity generations prune --keep 1 --older-than 7 --dry-run`
    """
    from similarity.company import utc_now
    from similarity.generations.retention import prune as run

    with opened(index) as work:
        names = run(work.audited, keep=keep, older_than=timedelta(days=older_than), now=utc_now(), dry_run=dry_run)
    done = "would be removed" if dry_run else "removed"
    kept = f"generations replaced, or if unfinished created, less than {older_than:g} days ago are kept (--older-than)"
    hint = f"; {kept}" if older_than else ""
    typer.echo("\n".join(f"{name} {done}" for name in names) or f"nothing {done}{hint}")


@maintenance.command()
def drift(
    old: Annotated[str, typer.Argument(help="A generation")],
    new: Annotated[str, typer.Argument(help="Another one")],
    *,
    anchors: Annotated[int, typer.Option(min=1, help="Number of random companies to compare")] = 200,
    k: Annotated[int, typer.Option("-k", min=1, max=250, help="Number of neighbours of each")] = 10,
    judged: Annotated[
        Path | None, typer.Option("--judged", help="Relevance labels, to measure the quality of both")
    ] = None,
    index: IndexOption = None,
    output: FormatOption = ListFormat.TABLE,
) -> None:
    """Show how much the neighbours differ between two generations, and for which companies most.

    Example: `similarity generations drift 20251201-090000-0a1b2c3d 20260131-120000-1f2e3d4c`
    """
    from similarity.generations.drift import compare
    from similarity.generations.relevance_labels import read_relevance_labels

    labels = read_relevance_labels(judged) if judged else None
    with opened(index) as work:
        report = asdict(compare(work.index, old=old, new=new, anchors=anchors, k=k, labels=labels))
    changed = report["most_changed"]
    if output is ListFormat.JSON:
        show_facts(report, output)
        return
    show_facts({name: value for name, value in report.items() if name != "most_changed"}, output)
    show_rows(changed, output, nothing="no neighbours changed")


@maintenance.command()
def leases(index: IndexOption = None, output: FormatOption = ListFormat.TABLE) -> None:
    """Show the leases: which processes write to, re-embed, promote or remove generations now.

    `acknowledged` is the newest revision of the list of generations that a writer has read; it grows with every change.

    Example: `similarity generations leases`
    """
    with opened(index) as work:
        revision = work.index.revision()
        rows = [
            {"name": lease.name, "holder": lease.holder, "until": lease.expires_at, "acknowledged": lease.acknowledged}
            for lease in work.index.leases()
        ]
    show_rows(rows, output, nothing=f"there are no leases; the list of generations has the revision {revision}")


@maintenance.command("import-vectors")
def import_vectors(
    file: Annotated[Path, typer.Argument(help=VECTOR_FILE)],
    *,
    encoder_id: Annotated[
        str, typer.Option("--encoder-id", help="Id of the encoder that made the vectors, such as my-model-1")
    ],
    into: IntoOption = None,
    column: ColumnOption = None,
    attribute: AttributeOption = None,
    size: SizeOption = "",
    rejects: RejectsOption = None,
    dry_run: DryRunOption = False,
    index: IndexOption = None,
) -> None:
    """Import companies with existing vectors into a generation. It is not live until you promote it.

    Example: `similarity generations import-vectors companies.parquet --encoder-id my-model-1`
    """
    from similarity.company import utc_now
    from similarity.generations.import_vectors import VECTOR_COLUMN, import_target, vector_dimension
    from similarity.generations.import_vectors import import_vectors as run
    from similarity.ingest.files import count_rows
    from similarity.ingest.rejects import RejectsFile
    from similarity.upkeep.audit import Action, file_subject, refuse_audit_record, system_user

    _check_import(into, encoder_id, index)
    columns = columns_of(column, attribute, size)
    found_columns(file, columns, index, others=[VECTOR_COLUMN])
    dimension = vector_dimension(file)
    if dry_run:  # before the index is opened, which would create it
        target = f"{into or 'a new generation'} with vectors of {dimension} numbers"
        typer.echo(f"up to {count_rows(file):,} rows would go into {target}")
        return
    refuse_audit_record(Settings.from_environment(os.environ, index=index), rejects := rejects or rejects_path(file))
    with opened(index, create=True) as work:
        new = _generation_to_create(work, encoder_id, dimension=dimension)
        if into is None:
            work.index.create_generation(new)
        generation = import_target(work.index, into or new.name, encoder_id=encoder_id)
        with (
            work.audit.recorded(
                Action.IMPORT, who=system_user(), subject=f"{file_subject(file)} into {generation.name}"
            ) as act,
            RejectsFile(rejects, source=file) as rejected,
            progress("rows", count_rows(file)) as on_rows,
        ):
            report = run(
                file,
                index=work.index,
                generation=generation.name,
                columns=columns,
                rejects=rejected,
                now=utc_now(),
                before_writes=lambda: declare(work, columns),
                on_rows=on_rows,
            )
            act.counts = {str(outcome): count for outcome, count in report.outcomes.items()}
        if into is None and rejected.count == report.rows:
            _refuse_empty(work, generation, rejected)
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(report.outcomes.items()) if count)
    typer.echo(f"{report.rows:,} rows into {generation.name}: {outcomes or 'none'}")
    for note in report.notes:
        typer.echo(printable(note))
    print_warnings(report, rejected)
    typer.echo(f"to make it live: similarity generations promote {generation.name} --judged FILE")
    if report.failed:
        fail(f"{report.failed:,} rows were not taken by the store; run again with --into {generation.name}")
    if rejected.count:
        fail(rejected.summary)


@maintenance.command()
def compact(
    name: Annotated[str, typer.Argument(help="The generation")],
    index: IndexOption = None,
) -> None:
    """Remove replaced and deleted documents from the disk, which makes searches faster. May take long.

    Example: `similarity generations compact 20260131-120000-1f2e3d4c`
    """
    with opened(index) as work:
        is_complete = work.index.compact(name)
    if is_complete:
        typer.echo(f"{name} is compact")
    else:
        held = "still holds replaced and deleted documents, because a copy of the store is unavailable"
        typer.echo(f"{name} {held}; run this command again later")


@maintenance.command("purge-deleted")
def purge_deleted(
    older_than: Annotated[
        float,
        typer.Option(
            min=0,
            max=MOST_DAYS,
            metavar="DAYS",
            help="Must exceed the retention of every topic and the age of every file that may be loaded",
        ),
    ],
    index: IndexOption = None,
) -> None:
    """Forget deletions older than DAYS in every generation, and records of completed erasures that are as old.

    Until a deletion is forgotten, it prevents an older message that arrives late from restoring the company.

    Example: `similarity generations purge-deleted --older-than 90`
    """
    from similarity.company import utc_now

    with opened(index) as work:
        before = utc_now() - timedelta(days=older_than)
        for generation in work.index.generations():
            count = work.index.purge_deleted(generation.name, before=before)
            typer.echo(f"{generation.name}: {count:,} deletions forgotten")
        work.index.ledger.purge_erasures(before=before)


def _check_import(into: str | None, encoder_id: str, index: str | None) -> None:
    """Raise InvalidInput if the encoder id is empty, and the errors of `import_target` for the generation `into`."""
    from similarity.generations.import_vectors import import_target

    if not encoder_id.strip():
        raise InvalidInput("the encoder id is empty; give the id of the encoder that made the vectors")
    if into is not None:
        with opened(index) as work:
            import_target(work.index, into, encoder_id=encoder_id)


def _refuse_empty(work: Opened, generation: "Generation", rejected: "RejectsFile") -> NoReturn:
    """Remove the generation of an import without a valid row, and end with the reason."""
    work.index.retire(generation.name)
    fail(f"no row could be imported, so there is no new generation: {rejected.summary}")


def _generation_to_create(work: Opened, encoder_id: str, *, dimension: int) -> "Generation":
    """Return a generation for vectors of this encoder, with the encoder's bundle if that is in the store.

    The caller creates it in the index.
    """
    from similarity.company import utc_now
    from similarity.generations.new import new_generation, new_name
    from similarity.generations.promotion import IMPORTED
    from similarity.index.bundle_store import stored_bundle
    from similarity.index.protocol import Generation

    now = utc_now()
    bundle = stored_bundle(work.store, encoder_id)
    if bundle is not None:
        return new_generation(work.index, bundle, now=now)
    return Generation(
        name=new_name(work.index, encoder_id, now=now),
        encoder_id=encoder_id,
        bundle_id=IMPORTED,
        dimension=dimension,
        created_at=now,
    )
