"""The command `similarity`. It only translates: each command parses options and calls one function.

Heavy parts are imported inside the command that needs them, so that `--help` is instant.
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from similarity.cli.audit import audit
from similarity.cli.check import check
from similarity.cli.context import (
    AttributeOption,
    BundleOption,
    ColumnOption,
    FilterOption,
    IndexOption,
    RejectsOption,
    columns_of,
    fail,
    opened,
    progress,
    rejects_path,
    settings_of,
)
from similarity.cli.feedback import feedback
from similarity.cli.generations import generations
from similarity.cli.http import UrlOption, find_over_http, service_address, similar_over_http
from similarity.cli.tables import Line, OutputFormat, show, show_ranking
from similarity.errors import InvalidInput, SimilarityError

if TYPE_CHECKING:
    from similarity.company import DeletedCompany
    from similarity.index.protocol import GenerationStats, WriteResult
    from similarity.ingest.files import RejectsFile
    from similarity.ingest.load import LoadReport

EPILOG = """
A first session:

  similarity ingest companies.csv --column id=ticker --column description=about

  similarity similar nike.com -k 5

  similarity similar --text "rents out electric scooters by the minute"

  similarity serve

Every command works on one index, a file or https://HOST:9200/NAME of Elasticsearch:
--index, else SIMILARITY_INDEX, else ./similarity.db

`similar` and `find` also ask a service: --url, else SIMILARITY_URL, with the key in SIMILARITY_API_KEY
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
app.add_typer(generations, name="generations")
app.add_typer(feedback)
app.command()(audit)
app.add_typer(check)

FormatOption = Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the answer")]
CountOption = Annotated[int, typer.Option("-k", min=1, max=250, help="How many competitors")]


def main() -> None:
    """Runs the command line; expected errors are one line on standard error and exit status 1."""
    try:
        app()
    except SimilarityError as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted; what was acknowledged is written, run the same command again to go on")
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # a folder that is not there, a full disk: the message names the file
        fail(str(error))


@app.command()
def ingest(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL (also .gz) or Parquet")],
    column: ColumnOption = None,
    attribute: AttributeOption = None,
    rejects: RejectsOption = None,
    only_if_new: Annotated[
        bool,
        typer.Option("--only-if-new", help="A first load: does nothing later, and rejected rows are no failure of it"),
    ] = False,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Add or update the companies of a file.

    Columns named like the fields are found by themselves: id, name, description, aliases, domain (or
    website), country, industry, tags, event_time, deleted. Map others with --column, for example
    `-c id=ticker -c description=about`. Lists in one cell are separated by ; or |.

    Running it again is cheap and safe: only new or changed texts are encoded.
    """
    from similarity.ingest.load import load_file

    if only_if_new and (live := _live_generation(index)):
        typer.echo(f"nothing was done: generation {live} is live already")
        return
    _load(
        load_file,
        file,
        column=column,
        attribute=attribute,
        rejects=rejects,
        index=index,
        bundle=bundle,
        is_first=only_if_new,
    )


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

    from similarity.ingest.load import sync_file

    load = partial(sync_file, force=force)
    _load(load, file, column=column, attribute=attribute, rejects=rejects, index=index, bundle=bundle)


@app.command()
def similar(
    company: Annotated[
        list[str] | None, typer.Argument(help="One or more companies, each by id, domain, name or alias")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", "-t", help="Describe a company in your own words instead")
    ] = None,
    unlike: Annotated[list[str] | None, typer.Option(help="But less like this company (repeatable)")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave this company out (repeatable)")] = None,
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Rank by shared words too, not by meaning alone")] = False,
    k: CountOption = 10,
    country: Annotated[list[str] | None, typer.Option(help="Only from this country (repeatable)")] = None,
    industry: Annotated[list[str] | None, typer.Option(help="Only of this industry (repeatable)")] = None,
    only: FilterOption = None,
    output: FormatOption = OutputFormat.TABLE,
    url: UrlOption = None,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Print the nearest competitors of a company, of several together, or of a description.

    Examples: `similarity similar nike.com`, `similarity similar "Coca-Cola" -k 5 --country Mexico`,
    `similarity similar nike adidas --unlike inditex`,
    `similarity similar --text "makes insulin pumps" --format csv`,
    `similarity similar nike.com --url http://127.0.0.1:8080`,
    `similarity similar nike.com --filter 'attributes.employees>=100' --filter 'tags!=retail'`

    Of one field, several --filter with = are any of these values, and all else must hold together.
    The shell takes a bare &gt; or &lt; for itself, so quote it.
    """
    from similarity.index.protocol import FieldFilter
    from similarity.search.errors import UnknownCompany
    from similarity.search.filter_text import parse_filters
    from similarity.search.question import Anchor, Question
    from similarity.search.searcher import Searcher

    if bool(company) == (text is not None):
        raise InvalidInput("say either a company or --text, for example: similarity similar nike.com")
    address = service_address(url, index=index)
    chosen = {"country": country, "industry": industry}
    filters = [FieldFilter(field=name, any_of=tuple(values)) for name, values in chosen.items() if values]
    filters += parse_filters(only or ())
    if address:
        similar_over_http(
            address,
            company or (),
            text=text,
            unlike=unlike or (),
            exclude=exclude or (),
            filters=filters,
            words=hybrid,
            k=k,
            output=output,
        )
        return
    with opened(index, bundle) as work:
        question = Question(
            anchors=[Anchor(text=text)] if text is not None else [Anchor(company=each) for each in company or ()],
            negatives=[Anchor(company=each) for each in unlike or ()],
            filters=filters,
            exclude=exclude or (),
            hybrid=hybrid,
            k=k,
        )
        # Stored vectors are compared without the encoder, which takes a second to open.
        encoder = None if text is None else work.encoder(work.bundle())
        try:
            ranking = Searcher(work.index, {encoder.encoder_id: encoder} if encoder else None).search(question)
        except UnknownCompany as error:
            hint = "; to describe a company in your own words, use --text" if " " in error.reference.strip() else ""
            raise InvalidInput(f"{error}{hint}") from None
        show_ranking(
            [Line.of_hit(hit, hit.company) for hit in ranking.hits],
            output,
            anchors=[each.document.company for each in ranking.anchors if each.document],
            remarks=[*(str(each.error) for each in ranking.unresolved), *ranking.warnings],
        )


@app.command()
def find(
    query: Annotated[str, typer.Argument(help="A name, the start of one, a domain, or words")],
    limit: Annotated[int, typer.Option(min=1, max=250)] = 10,
    output: FormatOption = OutputFormat.TABLE,
    url: UrlOption = None,
    index: IndexOption = None,
) -> None:
    """Look companies up by name, domain or words."""
    address = service_address(url, index=index)
    if address:
        if not find_over_http(address, query, limit=limit, output=output):
            fail(f"nothing found for {query!r}")
        return
    with opened(index) as work:
        found = work.index.find(work.index.live().name, query, limit=limit)
        show([Line(company=company) for company in found], output)
        if not found:
            fail(f"nothing found for {query!r}")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The Parquet file to write")],
    k: CountOption = 10,
    index: IndexOption = None,
) -> None:
    """Write the k nearest competitors of every company to a Parquet file."""
    from similarity.search.export import export_neighbours

    with opened(index) as work:
        live = work.index.live()
        total = work.index.stats(live.name).companies
        with progress("companies", total) as on_rows:
            rows = export_neighbours(work.index, live, file, k=k, on_rows=on_rows)
    typer.echo(f"{rows:,} pairs of {total:,} companies written to {file}")


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on")] = 8080,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Answer over HTTP: the page at /, the API under /similar and /companies, its manual at /docs.

    SIMILARITY_SERVICE_ variables say what it allows: keys, limits, logs (docs/operating-the-service.md).
    """
    try:
        from services.search.__main__ import serve as serve_http
        from services.search.__main__ import service_settings
    except ImportError as error:
        raise InvalidInput(
            f"the search service is not installed ({error.name} is missing); in a checkout of the project: "
            "pip install -e '.[search]'"
        ) from error
    with opened(index) as work:
        work.index.live()
    serve_http(
        settings_of(index, bundle),
        service=service_settings(),
        host=host,
        port=port,
    )


@app.command()
def info(index: IndexOption = None, bundle: BundleOption = None) -> None:
    """Show the index's generations and the model bundle."""
    with opened(index, bundle) as work:
        loaded = work.bundle()
        typer.echo(f"bundle      {loaded.manifest.base_model}, {loaded.manifest.dimension} dimensions, {loaded.folder}")
        typer.echo(f"            encoder {loaded.encoder_id}, bundle {loaded.bundle_id}")
        typer.echo(f"index       {work.settings.index}")
        for generation in work.index.generations():
            stats = work.index.stats(generation.name)
            typer.echo(
                f"generation  {generation.name} {generation.state}: {stats.companies:,} companies, {stats.deleted:,} "
                f"deleted, encoder {generation.encoder_id}"
            )


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; FILE.workspace and FILE.bundles go beside it")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file")] = False,
    index: IndexOption = None,
) -> None:
    """Copy the index to a file, and verdicts, saved lists and models beside it, while all are in use."""
    from similarity.index.sqlite import SqliteIndex
    from similarity.upkeep.backup import back_up

    with opened(index) as work:
        if not isinstance(work.index, SqliteIndex):
            raise InvalidInput(
                "an index in Elasticsearch is backed up by snapshots of the cluster; see docs/elasticsearch.md for how"
            )
        written = back_up(work.index, file, store=work.store, overwrite=overwrite)
    typer.echo(f"written to {file}; use it with --index {file}")
    typer.echo(f"verdicts and saved lists: {written.workspace or 'there are none yet'}")
    typer.echo(f"models: {written.bundles}")
    for encoder_id in written.missing_encoders:
        typer.echo(f"not at hand, so not copied: the bundle of encoder {encoder_id}", err=True)


@app.command()
def erase(
    company_id: Annotated[str, typer.Argument(metavar="ID", help="The company's id")],
    compact: Annotated[
        bool, typer.Option("--compact/--no-compact", help="Also remove it from the disk; may take long")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say where it is, and change nothing")] = False,
    index: IndexOption = None,
) -> None:
    """Erase one company from every generation, for good: for requests under data protection law.

    Feedback about it goes, and its names in notes and saved lists, earlier names too. Its id stays as a mark
    of the deletion, so that a late message cannot bring it back. The end of the output names what is not reached.

    Example: `similarity erase acme --dry-run`, then `similarity erase acme`
    """
    from similarity.feedback.opening import open_existing_workspace
    from similarity.upkeep.audit import FAILED as FAILED_ACT
    from similarity.upkeep.audit import Action, system_user
    from similarity.upkeep.erasure import Eraser, remaining

    with opened(index) as work, ExitStack() as also:
        names = [generation.name for generation in work.index.generations()]
        holding = [name for name in names if work.index.get(name, [company_id])]
        typer.echo(f"{company_id} is in {', '.join(holding) or 'no generation'}")
        if dry_run:
            return
        workspace = open_existing_workspace(work.settings.index, os.environ)
        if workspace is not None:
            also.enter_context(closing(workspace))
        eraser = Eraser(work.index, workspace)
        with work.audit.recorded(Action.ERASE, who=system_user(), company_id=company_id) as act:
            record = eraser.accept(company_id)
            for name, result in record.results.items():
                typer.echo(f"{name}: {result.outcome}" + (f" ({result.reason})" if result.reason else ""))
            done = {each.id: each for each in eraser.finish(only=company_id, compact=compact)}
            record = done.get(company_id, record)
            gone = {"events": 0, "notes": 0, "lists": 0, "looks": 0, **record.forgotten}
            typer.echo(
                f"forgotten: {gone['events']} verdicts, {gone['notes']} notes; changed: {gone['lists']} lists, "
                f"{gone['looks']} looks at lists"
            )
            for line in remaining(record):
                typer.echo(f"not reached: {line}")
            if record.problem:
                act.outcome = FAILED_ACT
        if record.problem:
            fail(f"{company_id} is not erased: {record.problem}")


def _live_generation(index: str | None) -> str | None:
    """What the live generation is called; None where none is yet."""
    from similarity.errors import NoLiveGeneration

    with opened(index, create=True) as work:
        try:
            return work.index.live().name
        except NoLiveGeneration:
            return None


def _load(
    load: "Callable[..., LoadReport]",
    file: Path,
    *,
    column: list[str] | None,
    attribute: list[str] | None,
    rejects: Path | None,
    index: str | None,
    bundle: Path | None,
    is_first: bool = False,
) -> None:
    from similarity.company import utc_now
    from similarity.generations.first import ensure_generation, promote_first
    from similarity.index.bundle_store import keep_bundle
    from similarity.ingest.files import RejectsFile, count_rows
    from similarity.ingest.load import check_columns, load_file
    from similarity.upkeep.audit import Action, Entry, system_user

    def on_deletes(deletes: "Sequence[tuple[DeletedCompany, WriteResult]]") -> None:
        record.write(
            [
                Entry(
                    action=Action.DELETE,
                    outcome=result.outcome.value,
                    who=who,
                    company_id=delete.id,
                    version=delete.version,
                )
                for delete, result in deletes
            ]
        )

    columns = columns_of(column, attribute)
    check_columns(file, columns)
    now = utc_now()
    with opened(index, bundle, create=True) as work:
        record, who = work.audit, system_user()
        loaded = work.bundle()
        generation = ensure_generation(work.index, loaded, now=now)
        keep_bundle(loaded, work.store)
        with (
            record.recorded(Action.INGEST if load is load_file else Action.SYNC, who=who, subject=str(file)) as act,
            RejectsFile(rejects or rejects_path(file)) as rejected,
            progress("rows", count_rows(file)) as on_rows,
        ):
            report = load(
                file,
                index=work.index,
                encoders=work.encoders(loaded),
                columns=columns,
                rejects=rejected,
                now=now,
                on_rows=on_rows,
                on_deletes=on_deletes,
            )
            act.counts = report.counts
        promoted = not report.failed and promote_first(work.audited, generation)
        stats = work.index.stats(generation.name)
    _tell(report, rejected, stats, promoted=promoted)
    if rejected.count:
        told = f"{rejected.count:,} rows were rejected; see {rejected.path}"
        if not (is_first and promoted):
            fail(told)
        typer.echo(f"similarity: {told}", err=True)  # what waits for the first load can begin: the rest is live


def _left_out(report: "LoadReport") -> str:
    fields = ", ".join(f"{field} {count:,}" for field, count in report.left_out.most_common())
    return (
        f"{report.left_out.total():,} values were left out of companies that were taken: {fields} (a website without "
        "a host name, or a number that is none)"
    )


def _tell(report: "LoadReport", rejected: "RejectsFile", stats: "GenerationStats", *, promoted: bool) -> None:
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(report.outcomes.items()) if count)
    typer.echo(
        f"{report.rows:,} rows: {outcomes or 'none'}" + (f"; {report.deleted:,} deleted" if report.deleted else "")
    )
    if report.left_out:
        typer.echo(_left_out(report))
    typer.echo(f"{stats.companies:,} companies in the index" + (", which is live now" if promoted else ""))
    if stats.not_english:
        typer.echo(f"{stats.not_english:,} of them not in English, which the model reads less well")
    if report.failed:
        fail(
            f"{report.failed:,} companies were not taken by the store; running the same command again is safe and "
            "tries them again"
            + (f"; {rejected.count:,} rows were rejected, see {rejected.path}" if rejected.count else "")
        )
