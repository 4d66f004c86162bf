"""Parts that the commands share: options, the open index and its encoders, the progress bar, and `fail`."""

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from similarity.errors import InvalidInput
from similarity.formats.terminal import printable
from similarity.settings import Settings

if TYPE_CHECKING:
    from similarity.bundle import ModelBundle
    from similarity.encoder import TextEncoder
    from similarity.index.bundle_store import StoredEncoders
    from similarity.index.protocol import CompanyIndex
    from similarity.ingest.file_columns import FileColumns
    from similarity.ingest.records import Columns
    from similarity.upkeep.audit import AuditRecord

PROGRESS_SECONDS = 10.0

IndexOption = Annotated[
    str | None, typer.Option("--index", help="Index file, or https://HOST:9200/NAME [default: similarity.db]")
]
BundleOption = Annotated[
    Path | None,
    typer.Option("--bundle", help="Bundle folder [default: the index's own, else the one that ships]"),
]
ColumnOption = Annotated[
    list[str] | None, typer.Option("--column", "-c", metavar="FIELD=COLUMN", help="Which column holds a field")
]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        "-a",
        metavar="NAME[:TYPE][=COLUMN]",
        help="Keep a column as a fact; TYPE: number or ordinal=LOW,...,HIGH; text withdraws it",
    ),
]
SizeOption = Annotated[str, typer.Option("--size", metavar="NAME", help="Which attribute is a company's size")]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="FIELD=VALUE",
        help="Only where this holds; also !=, and for attributes >=, <=, > and < a number or a level (repeatable)",
    ),
]
RejectsOption = Annotated[
    Path | None, typer.Option("--rejects", help="Where bad rows go, with reasons [default: FILE.rejects.jsonl]")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open index, its settings, and the folder of its bundles."""

    index: "CompanyIndex"
    settings: Settings
    store: Path

    @property
    def audit(self) -> "AuditRecord":
        """The audit record of the index."""
        from similarity.upkeep.audit import AuditRecord, audit_target

        return AuditRecord(audit_target(self.settings))

    @property
    def audited(self) -> "CompanyIndex":
        """The index, with an audit record of declared types, promotions, rollbacks and retirements."""
        from similarity.upkeep.audit import audited, system_user

        return audited(self.index, self.audit, who=system_user())

    def bundle(self) -> "ModelBundle":
        """Return the chosen bundle, else that of the index, else the one that ships with the project."""
        from similarity.index.bundle_store import bundle_for

        return bundle_for(self.index, self.store, chosen=self.settings.bundle)

    def encoder(self, bundle: "ModelBundle") -> "TextEncoder":
        """Return an encoder that runs this bundle with the settings."""
        from similarity.encoder import TextEncoder

        return TextEncoder(bundle, threads=self.settings.threads, runtime=self.settings.runtime)

    def encoders(self, *bundles: "ModelBundle") -> "StoredEncoders":
        """Return the encoders of these bundles, and of the bundles in the store, which are loaded when needed."""
        from similarity.index.bundle_store import StoredEncoders

        return StoredEncoders(self.store, self.encoder, opened=[self.encoder(bundle) for bundle in bundles])


@contextmanager
def opened(target: str | None, bundle: Path | None = None, *, create: bool = False) -> Iterator[Opened]:
    """Open the index of the option, the environment or the default; close it at the end.

    Raises:
        InvalidInput: the file does not exist (unless `create`), or a setting is invalid.
        IndexUnavailable: the store cannot be opened.
    """
    from similarity.index.bundle_store import store_folder
    from similarity.index.opening import open_index

    settings = Settings.from_environment(os.environ, index=target, bundle=bundle)
    if settings.url and target is None:
        typer.echo(f"similarity: SIMILARITY_URL is not for this command; it uses the index {settings.index}", err=True)
    index = open_index(settings.index, os.environ, create=create)
    try:
        yield Opened(index=index, settings=settings, store=store_folder(settings.index, settings.bundles))
    finally:
        index.close()


def may_exist(target: str | None) -> bool:
    """Return whether the index of the option, the environment or the default exists, or is in a cluster."""
    from similarity.index.opening import is_url

    location = Settings.from_environment(os.environ, index=target).index
    return is_url(location) or Path(location).exists()


def columns_of(column: list[str] | None, attribute: list[str] | None, size: str = "") -> "Columns":
    """Return the column mapping of --column, --attribute and --size.

    Raises:
        InvalidInput: an option does not have the form FIELD=COLUMN.
    """
    from similarity.ingest.records import Columns

    return Columns.from_pairs(column or (), attribute or (), size)


def found_columns(file: Path, columns: "Columns", index: str | None, *, others: Collection[str] = ()) -> "FileColumns":
    """Find and print the columns of a file that hold fields, or attributes that the index knows; return them.

    `others`: columns with another use. An index that does not exist is not created.
    """
    from similarity.ingest.file_columns import KnownAttributes, file_columns

    known = KnownAttributes()
    if may_exist(index):
        with opened(index) as work:
            known = KnownAttributes.of_index(work.index)
    found = file_columns(file, columns, known=known, others=others)
    typer.echo(printable(found.summary))
    return found


def declare(work: Opened, columns: "Columns") -> None:
    """Declare the types of --attribute and the size, and print what changes or stays for stored companies."""
    from similarity.ingest.file_columns import first_companies

    before = work.index.attributes()
    for name, column in columns.attributes.items():
        if name in before.types and name not in columns.schema.types and name not in columns.schema.withdrawn:
            typer.echo(
                printable(
                    f"the attribute {name!r} keeps its type {before.types[name].text}, which an earlier load declared; "
                    f"to withdraw it, load with --attribute {name}:text{'' if column == name else f'={column}'}"
                )
            )
    if before.updated(columns.schema) == before:
        return
    for warning in before.retyped_by(columns.schema, first_companies(work.index)):
        typer.echo(printable(f"warning: {warning}"))
    work.audited.declare(columns.schema)


def typed_id(company_id: str) -> str:
    """Return an id as it was typed. Raises InvalidInput if its bytes are not text in UTF-8."""
    try:
        company_id.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"the id {printable(company_id)!r} is not UTF-8 text; type the id as it was loaded"
        ) from None
    return company_id


def rejects_path(file: Path) -> Path:
    """Return the default rejects file: next to the loaded file, or in the temporary folder if that is read-only."""
    folder = file.parent if os.access(file.parent, os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"{file.name}.rejects.jsonl"


@contextmanager
def progress(unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error: a bar on a terminal, elsewhere a line every PROGRESS_SECONDS.

    Yields a function to call with the number of additional units that are done.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield progress_lines(unit, total)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda done: bar.update(task, advance=done)


def progress_lines(unit: str, total: int, clock: Callable[[], float] = time.monotonic) -> Callable[[int], None]:
    """Return a function that prints a line every PROGRESS_SECONDS; call it with the number of additional units."""
    done, next_line = 0, clock() + PROGRESS_SECONDS

    def advance(more: int) -> None:
        nonlocal done, next_line
        done += more
        if clock() >= next_line:
            next_line = clock() + PROGRESS_SECONDS
            # The total of a JSON array is its number of lines, and a line may hold several rows.
            of_total = f" of {total:,}" if done <= total else ""
            typer.echo(f"similarity: {done:,}{of_total} {unit}", err=True)

    return advance


def fail(message: str) -> NoReturn:
    """End the command with one line on standard error and exit status 1."""
    typer.echo(f"similarity: {printable(message)}", err=True)
    raise SystemExit(1)
