"""What the commands share: their options, the open index, its encoders, progress and failing."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from similarity.formats.terminal import printable
from similarity.settings import Settings

if TYPE_CHECKING:
    from similarity.bundle import ModelBundle
    from similarity.encoder import TextEncoder
    from similarity.index.bundle_store import StoredEncoders
    from similarity.index.protocol import CompanyIndex
    from similarity.ingest.records import Columns
    from similarity.upkeep.audit import AuditRecord

IndexOption = Annotated[
    str | None, typer.Option("--index", help="Index file, or https://HOST:9200/NAME [default: similarity.db]")
]
BundleOption = Annotated[
    Path | None,
    typer.Option("--bundle", help="Model bundle folder [default: the index's own]"),
]
ColumnOption = Annotated[
    list[str] | None, typer.Option("--column", "-c", metavar="FIELD=COLUMN", help="Which column holds a field")
]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", "-a", metavar="NAME[:number][=COLUMN]", help="Keep a column as a free filter"),
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="FIELD=VALUE",
        help="Only where this holds; also FIELD!=VALUE, and FIELD>=NUMBER and FIELD<=NUMBER of attributes (repeatable)",
    ),
]
RejectsOption = Annotated[
    Path | None, typer.Option("--rejects", help="Where bad rows go, with reasons [default: FILE.rejects.jsonl]")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open index and the folder where its bundles are kept."""

    index: "CompanyIndex"
    settings: Settings
    store: Path

    @property
    def audit(self) -> "AuditRecord":
        """The record of what is changed in the index."""
        from similarity.upkeep.audit import AuditRecord, audit_target

        return AuditRecord(audit_target(self.settings))

    @property
    def audited(self) -> "CompanyIndex":
        """The index, for what promotes, rolls back or retires: it records that."""
        from similarity.upkeep.audit import audited, system_user

        return audited(self.index, self.audit, who=system_user())

    def bundle(self) -> "ModelBundle":
        """The chosen bundle, else the one that the index was made with, else the one that ships."""
        from similarity.index.bundle_store import bundle_for

        return bundle_for(self.index, self.store, chosen=self.settings.bundle)

    def encoder(self, bundle: "ModelBundle") -> "TextEncoder":
        """An encoder that runs this bundle, as the settings say."""
        from similarity.encoder import TextEncoder

        return TextEncoder(bundle, threads=self.settings.threads, runtime=self.settings.runtime)

    def encoders(self, *bundles: "ModelBundle") -> "StoredEncoders":
        """The encoders of these bundles, and of those in the store when a generation needs them."""
        from similarity.index.bundle_store import StoredEncoders

        return StoredEncoders(self.store, self.encoder, opened=[self.encoder(bundle) for bundle in bundles])


@contextmanager
def opened(target: str | None, bundle: Path | None = None, *, create: bool = False) -> Iterator[Opened]:
    """Opens the index that the option, the environment or the default names; closes it at the end.

    Raises:
        InvalidInput: there is no such file yet (unless `create`), or a setting is wrong.
        IndexUnavailable: the store cannot be opened.
    """
    from similarity.index.bundle_store import store_folder
    from similarity.index.opening import open_index

    settings = Settings.from_environment(os.environ, index=target, bundle=bundle)
    index = open_index(settings.index, os.environ, create=create)
    try:
        yield Opened(index=index, settings=settings, store=store_folder(settings.index, settings.bundles))
    finally:
        index.close()


def columns_of(column: list[str] | None, attribute: list[str] | None) -> "Columns":
    """The mapping that --column and --attribute spell out.

    Raises:
        InvalidInput: an option does not read FIELD=COLUMN.
    """
    from similarity.ingest.records import Columns

    return Columns.from_pairs(column or (), attribute or ())


def rejects_path(file: Path) -> Path:
    """Where the bad rows of a file go by default: beside it, or where that is read-only, into the temporary folder."""
    folder = file.parent if os.access(file.parent, os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"{file.name}.rejects.jsonl"


@contextmanager
def progress(unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error with rate and remaining time; nothing where that is no terminal.

    What it yields is called with how many more are done.
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

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda done: bar.update(task, advance=done)


def fail(message: str) -> NoReturn:
    """Ends the command: one line on standard error, exit status 1."""
    typer.echo(f"similarity: {printable(message)}", err=True)
    raise SystemExit(1)
