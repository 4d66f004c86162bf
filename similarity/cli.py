"""The command `similarity`. It only translates: each command parses options and calls one function.

Heavy parts are imported inside the command that needs them, so that `--help` is instant.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from similarity.errors import InvalidInput, SimilarityError
from similarity.settings import Settings
from similarity.tables import Line, OutputFormat, show, similar_lines

if TYPE_CHECKING:
    from similarity.bundle import ModelBundle
    from similarity.encoder import TextEncoder
    from similarity.files import RejectsFile
    from similarity.index.protocol import GenerationStats
    from similarity.index.sqlite import SqliteIndex
    from similarity.ingest import Columns
    from similarity.load import LoadReport

EPILOG = """
A first session:

  similarity ingest companies.csv --column id=ticker --column description=about

  similarity similar apple.com -k 5

  similarity similar --text "rents out electric scooters by the minute"

  similarity serve

Every command works on one index file: --index, else SIMILARITY_INDEX, else ./similarity.db
"""

app = typer.Typer(
    name="similarity",
    help="Find the companies that compete with a given company, from what they say about themselves.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

IndexOption = Annotated[str | None, typer.Option("--index", help="Index file [default: similarity.db]")]
BundleOption = Annotated[
    Path | None,
    typer.Option("--bundle", help="Model bundle folder [default: the index's own]"),
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the answer")]
ColumnOption = Annotated[
    list[str] | None, typer.Option("--column", "-c", metavar="FIELD=COLUMN", help="Which column holds a field")
]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", "-a", metavar="NAME[=COLUMN]", help="Keep a column as a free filter"),
]
RejectsOption = Annotated[
    Path | None, typer.Option("--rejects", help="Where bad rows go, with reasons [default: FILE.rejects.jsonl]")
]
CountOption = Annotated[int, typer.Option("-k", min=1, max=250, help="How many competitors")]


def main() -> None:
    """Runs the command line; expected errors are one line on standard error and exit status 1."""
    try:
        app()
    except SimilarityError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; what was acknowledged is written, run the same command again to go on")
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@app.command()
def ingest(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL (also .gz) or Parquet")],
    column: ColumnOption = None,
    attribute: AttributeOption = None,
    rejects: RejectsOption = None,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Add or update the companies of a file.

    Columns named like the fields are found by themselves: id, name, description, aliases, domain (or
    website), country, industry, tags, event_time, deleted. Map others with --column, for example
    `-c id=ticker -c description=about`. Lists in one cell are separated by ; or |.

    Running it again is cheap and safe: only new or changed texts are encoded.
    """
    from similarity.load import load_file

    _load(load_file, file, column=column, attribute=attribute, rejects=rejects, index=index, bundle=bundle)


@app.command()
def sync(
    file: Annotated[Path, typer.Argument(help="A full snapshot: CSV, TSV, JSONL (also .gz) or Parquet")],
    column: ColumnOption = None,
    attribute: AttributeOption = None,
    rejects: RejectsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Also if more than 5 % would be deleted")] = False,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Make the index hold exactly a file's companies: ingest it and delete those that it lacks."""
    from functools import partial

    from similarity.load import sync_file

    load = partial(sync_file, force=force)
    _load(load, file, column=column, attribute=attribute, rejects=rejects, index=index, bundle=bundle)


@app.command()
def similar(
    company: Annotated[str | None, typer.Argument(help="A company by id, domain, name or alias")] = None,
    text: Annotated[
        str | None, typer.Option("--text", "-t", help="Describe a company in your own words instead")
    ] = None,
    k: CountOption = 10,
    country: Annotated[list[str] | None, typer.Option(help="Only from this country (repeatable)")] = None,
    industry: Annotated[list[str] | None, typer.Option(help="Only of this industry (repeatable)")] = None,
    output: FormatOption = OutputFormat.TABLE,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Print the nearest competitors of a company, or of a description.

    Examples: `similarity similar nike.com`, `similarity similar "Coca-Cola" -k 5 --country Mexico`,
    `similarity similar --text "makes insulin pumps" --format csv`
    """
    from similarity.index.protocol import FieldFilter
    from similarity.query import similar_to_company, similar_to_text

    if (company is None) == (text is None):
        raise InvalidInput("say either a company or --text, for example: similarity similar nike.com")
    chosen = {"country": country, "industry": industry}
    filters = [FieldFilter(field=name, any_of=tuple(values)) for name, values in chosen.items() if values]
    with _open_index(index) as opened:
        if company is not None:
            anchor, found = similar_to_company(opened, company, k=k, filters=filters)
            title = f"Competitors of {anchor.name} ({anchor.id})"
        else:
            found = similar_to_text(opened, _encoder(_bundle_for(opened, bundle)), text or "", k=k, filters=filters)
            title = "Companies like this description"
        show(similar_lines(found.hits), output, title=title)


@app.command()
def find(
    query: Annotated[str, typer.Argument(help="A name, the start of one, a domain, or words")],
    limit: Annotated[int, typer.Option(min=1, max=250)] = 10,
    output: FormatOption = OutputFormat.TABLE,
    index: IndexOption = None,
) -> None:
    """Look companies up by name, domain or words."""
    with _open_index(index) as opened:
        found = opened.find(opened.live().name, query, limit=limit)
        show([Line(company=company) for company in found], output)
        if not found:
            _fail(f"nothing found for {query!r}")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The Parquet file to write")],
    k: CountOption = 10,
    index: IndexOption = None,
) -> None:
    """Write the k nearest competitors of every company to a Parquet file."""
    from similarity.export import export_neighbours

    with _open_index(index) as opened:
        live = opened.live()
        total = opened.stats(live.name).companies
        with _progress("companies", total) as on_rows:
            rows = export_neighbours(opened, live, file, k=k, on_rows=on_rows)
    typer.echo(f"{rows:,} pairs of {total:,} companies written to {file}")


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on")] = 8080,
    allow_unauthenticated_network: Annotated[
        bool, typer.Option("--allow-unauthenticated-network", help="Listen beyond this machine; nobody has to log in")
    ] = False,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Answer over HTTP: the page at /, the API under /similar and /companies, its manual at /docs."""
    try:
        from services.search.__main__ import serve as serve_http
    except ImportError as error:
        raise InvalidInput(
            f"the search service is not installed ({error.name} is missing); in a checkout of the project: "
            "pip install -e '.[search]'"
        ) from error
    settings = _settings(index, bundle)
    with _open_index(index) as opened:
        opened.live()
    serve_http(settings, host=host, port=port, allow_unauthenticated_network=allow_unauthenticated_network)


@app.command()
def info(index: IndexOption = None, bundle: BundleOption = None) -> None:
    """Show the index's generations and the model bundle."""
    with _open_index(index) as opened:
        loaded = _bundle_for(opened, bundle)
        typer.echo(f"bundle      {loaded.manifest.base_model}, {loaded.manifest.dimension} dimensions, {loaded.folder}")
        typer.echo(f"            encoder {loaded.encoder_id}, bundle {loaded.bundle_id}")
        typer.echo(f"index       {opened.path}")
        for generation in opened.generations():
            stats = opened.stats(generation.name)
            typer.echo(
                f"generation  {generation.name} {generation.state}: {stats.companies:,} companies, {stats.deleted:,} "
                f"deleted, encoder {generation.encoder_id}"
            )


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file")] = False,
    index: IndexOption = None,
) -> None:
    """Copy the index to a file, consistently, while others go on reading and writing it."""
    with _open_index(index) as opened:
        opened.backup(file, overwrite=overwrite)
    typer.echo(f"written to {file}; use it with --index {file}")


def _load(
    load: "Callable[..., LoadReport]",
    file: Path,
    *,
    column: list[str] | None,
    attribute: list[str] | None,
    rejects: Path | None,
    index: str | None,
    bundle: Path | None,
) -> None:
    from similarity.bundle_store import keep_bundle, store_folder
    from similarity.files import RejectsFile, count_rows
    from similarity.generations import ensure_generation, promote_first
    from similarity.ingest import utc_now
    from similarity.load import check_columns

    columns = _columns(column, attribute)
    check_columns(file, columns)
    now = utc_now()
    with _open_index(index, create=True) as opened:
        loaded = _bundle_for(opened, bundle)
        generation = ensure_generation(opened, loaded, now=now)
        keep_bundle(loaded, store_folder(opened.path))
        encoders = {loaded.encoder_id: _encoder(loaded)}
        with (
            RejectsFile(rejects or file.with_name(f"{file.name}.rejects.jsonl")) as rejected,
            _progress("rows", count_rows(file)) as on_rows,
        ):
            report = load(
                file, index=opened, encoders=encoders, columns=columns, rejects=rejected, now=now, on_rows=on_rows
            )
        promoted = promote_first(opened, generation)
        stats = opened.stats(generation.name)
    _tell(report, rejected, stats, promoted=promoted)


def _tell(report: "LoadReport", rejected: "RejectsFile", stats: "GenerationStats", *, promoted: bool) -> None:
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(report.outcomes.items()) if count)
    typer.echo(
        f"{report.rows:,} rows: {outcomes or 'none'}" + (f"; {report.deleted:,} deleted" if report.deleted else "")
    )
    if report.warnings:
        typer.echo(f"{report.warnings:,} rows were taken without their website: it holds no host name")
    typer.echo(f"{stats.companies:,} companies in the index" + (", which is live now" if promoted else ""))
    if stats.not_english:
        typer.echo(f"{stats.not_english:,} of them not in English, which the model reads less well")
    if rejected.count:
        _fail(f"{rejected.count:,} rows were rejected; see {rejected.path}")


def _columns(column: list[str] | None, attribute: list[str] | None) -> "Columns":
    from similarity.ingest import Columns

    fields: dict[str, str] = {}
    for pair in column or []:
        name, equals, source = pair.partition("=")
        if not equals or not name or not source:
            raise InvalidInput(f"--column {pair!r} must read FIELD=COLUMN, for example --column id=ticker")
        fields[name] = source
    attributes = {name: source or name for name, _, source in (pair.partition("=") for pair in attribute or [])}
    return Columns(fields=fields, attributes=attributes)


def _settings(index: str | None, bundle: Path | None) -> Settings:
    settings = Settings.from_environment(os.environ)
    return replace(settings, index=index or settings.index, bundle=bundle or settings.bundle)


def _bundle_for(index: "SqliteIndex", folder: Path | None) -> "ModelBundle":
    from similarity.bundle_store import bundle_for, store_folder

    return bundle_for(index, store_folder(index.path), chosen=_settings(None, folder).bundle)


def _encoder(bundle: "ModelBundle") -> "TextEncoder":
    from similarity.encoder import TextEncoder

    settings = _settings(None, None)
    return TextEncoder(bundle, threads=settings.threads, runtime=settings.runtime)


@contextmanager
def _open_index(target: str | None, *, create: bool = False) -> "Iterator[SqliteIndex]":
    from similarity.index.sqlite import SqliteIndex

    path = Path(_settings(target, None).index)
    if not create and not path.exists():
        raise InvalidInput(f"there is no index {path} yet; make one with: similarity ingest FILE --index {path}")
    index = SqliteIndex(path)
    try:
        yield index
    finally:
        index.close()


@contextmanager
def _progress(unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error with rate and remaining time; nothing where that is no terminal."""
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
        yield lambda rows: bar.update(task, advance=rows)


def _fail(message: str) -> NoReturn:
    typer.echo(f"similarity: {message}", err=True)
    raise SystemExit(1)
