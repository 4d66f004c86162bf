"""The commands `similarity similar`, `similarity find` and `similarity export`."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from similarity.cli.context import (
    BundleOption,
    FilterOption,
    IndexOption,
    Opened,
    fail,
    may_exist,
    opened,
    progress,
)
from similarity.cli.http import UrlOption, connected, find_over_http, service_address, similar_over_http
from similarity.cli.tables import (
    Line,
    OutputFormat,
    because,
    show,
    show_ranking,
    show_segments,
    skipped,
    understood,
    unread,
)
from similarity.errors import InvalidInput, UnknownField
from similarity.search.reranking.rank import Rank

if TYPE_CHECKING:
    from similarity.index.filters import FieldFilter
    from similarity.search.queries.question import Anchor, Question

search_commands = typer.Typer()

FormatOption = Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the answer")]
CountOption = Annotated[int, typer.Option("-k", min=1, max=250, help="How many competitors")]


@search_commands.command()
def similar(
    company: Annotated[
        list[str] | None, typer.Argument(help="One or more companies, each by id, domain, name or alias")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", "-t", help="Describe a company in your own words instead (repeatable)")
    ] = None,
    segment: Annotated[int | None, typer.Option(min=1, help="Only this line of business: see `segments`")] = None,
    unlike: Annotated[list[str] | None, typer.Option(help="But less like this company (repeatable)")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave this company out (repeatable)")] = None,
    exclude_list: Annotated[
        list[str] | None, typer.Option(help="Leave the companies of this saved list out (repeatable)")
    ] = None,
    rank: Annotated[
        Rank, typer.Option(help="By what they do; as analysts compare (also size and country); or by cosine")
    ] = Rank.BUSINESS,
    exact: Annotated[bool, typer.Option("--exact", help="Accept no names that are only similar")] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Go on without companies that are not found, and print their names")
    ] = False,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only with at least this probability of a competitor")
    ] = None,
    k: CountOption = 10,
    reasons: Annotated[
        int, typer.Option(min=0, max=50, help="Say why the first hits are hits, for so many (loads the model)")
    ] = 0,
    country: Annotated[list[str] | None, typer.Option(help="Only from this country (repeatable)")] = None,
    industry: Annotated[list[str] | None, typer.Option(help="Only of this industry (repeatable)")] = None,
    only: FilterOption = None,
    output: FormatOption = OutputFormat.TABLE,
    url: UrlOption = None,
    index: IndexOption = None,
    bundle: BundleOption = None,
) -> None:
    """Print the nearest competitors of a company, of several together, or of a description.

    Examples: `similarity similar "Coca-Cola" -k 5 --country Mexico`, `similarity similar nike adidas --unlike inditex`,
    `similarity similar --text "makes insulin pumps" --format csv`,
    `similarity similar nike.com --filter 'attributes.employees>=100' --filter 'tags!=retail'`

    A company that is not found is an error, also with --unlike and --exclude, unless --skip-unknown leaves it out.
    For one field, several --filter with = match any of the values; all other filters must match.
    Quote &gt; and &lt;, because the shell interprets them.
    """
    from similarity.index.filters import FieldFilter
    from similarity.search.queries.question import Anchor, Question

    address = service_address(url, index=index)
    chosen = {"country": country, "industry": industry}
    filters = [FieldFilter(field=name, any_of=tuple(values)) for name, values in chosen.items() if values]
    question = Question(
        anchors=_anchors(company or (), text or (), segment),
        negatives=[Anchor(company=each) for each in unlike or ()],
        filters=filters + _filters(only or (), index, is_local=not address),
        exclude=exclude or (),
        rank=rank,
        exact=exact,
        min_probability=min_probability,
        k=k,
        explain=reasons,
    )
    if address:
        similar_over_http(address, question, output, exclude_lists=exclude_list or (), skip_unknown=skip_unknown)
        return
    with opened(index, bundle) as work:
        if exclude_list:
            question = replace(question, exclude_lists=_shortlists(work, exclude_list))
        _similar_in_index(work, question, output, skip_unknown=skip_unknown, names_bundle=bundle is not None)


def _anchors(companies: Sequence[str], texts: Sequence[str], segment: int | None) -> "list[Anchor]":
    from similarity.search.queries.question import Anchor

    if bool(companies) == bool(texts):
        raise InvalidInput("give either a company or --text, for example: similarity similar nike.com")
    if segment is not None and len(companies) != 1:
        raise InvalidInput(
            "--segment is about one company; give one, for example: similarity similar siemens --segment 3"
        )
    return [Anchor(text=text) for text in texts] or [Anchor(company=each, segment=segment) for each in companies]


def _filters(texts: Sequence[str], index: str | None, *, is_local: bool) -> "list[FieldFilter]":
    """Return the filters of --filter. If a field is unknown, the error names the most similar field of the index."""
    from difflib import get_close_matches

    from similarity.index.filters import FILTER_FIELDS
    from similarity.ingest.file_columns import KnownAttributes
    from similarity.search.queries.filter_texts import parse_filters
    from similarity.search.ranking_warnings import MIN_LIKENESS

    try:
        return parse_filters(texts)
    except UnknownField as error:
        if not (is_local and may_exist(index)):
            raise
        with opened(index) as work:
            known = KnownAttributes.of_index(work.index)
        types = {name: f" ({declared.text})" for name, declared in known.schema.types.items()}
        fields = {name: f"attributes.{name}{types.get(name, '')}" for name in (*known.stored, *types)}
        fields |= {name: name for name in FILTER_FIELDS}
        near = get_close_matches(error.field, fields, n=1, cutoff=MIN_LIKENESS)
        raise InvalidInput(f"{error}{f'; did you mean {fields[near[0]]}?' if near else ''}") from None


def _refuse_other_encoder(work: Opened) -> None:
    """Raise InvalidInput if the chosen bundle has another encoder than the index."""
    chosen, live = work.bundle(), work.index.live()
    if chosen.encoder_id != live.encoder_id:
        raise InvalidInput(
            f"the bundle {work.settings.bundle} has the encoder {chosen.encoder_id}, and the index has vectors of "
            f"another one ({live.encoder_id}); leave --bundle and SIMILARITY_BUNDLE out: the index has its own bundle"
        )


def _shortlists(work: Opened, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    from similarity.feedback.opening import open_existing_workspace
    from similarity.feedback.shortlists import shortlists

    with ExitStack() as stack:
        workspace = open_existing_workspace(work.settings.index, os.environ)
        if workspace is not None:
            stack.callback(workspace.close)
        return shortlists(workspace, names)


def _similar_in_index(
    work: Opened, question: "Question", output: OutputFormat, *, skip_unknown: bool, names_bundle: bool
) -> None:
    """Print a ranking. `names_bundle`: whether --bundle is given; it is then checked even if no encoder is needed."""
    from similarity.search.errors import UnknownCompany
    from similarity.search.searcher import Searcher

    # Stored vectors are compared without the encoder, which takes a second to load.
    needs_encoder = question.explain > 0 or question.needs_encoder
    if names_bundle or (question.needs_encoder and work.settings.bundle is not None):
        _refuse_other_encoder(work)
    encoder = work.encoder(work.bundle()) if needs_encoder else None
    try:
        ranking = Searcher(work.index, {encoder.encoder_id: encoder} if encoder else None).search(question)
    except UnknownCompany as error:
        is_text = " " in error.reference.strip()
        hint = "; to describe a company in your own words, use --text" if is_text else ""
        hint = "; give the text with --text" if error.is_unlike_all or not error.suggestions else hint
        raise InvalidInput(f"{error}{hint}") from None
    left_out = skipped([str(each.error) for each in ranking.unresolved], skip=skip_unknown)
    resolved = (*ranking.anchors, *ranking.negatives)
    show_ranking(
        [
            Line.of_hit(hit, hit.company, because=None if hit.phrases is None else because(hit.moved, hit.phrases))
            for hit in ranking.hits
        ],
        output,
        anchors=[each.document.company for each in ranking.anchors if each.document],
        rank=question.rank,
        remarks=[
            *(
                understood(each.reference, each.document.company, each.confidence)
                for each in resolved
                if each.document and each.confidence < 1
            ),
            *left_out,
            *ranking.warnings,
            *unread(resolved, ranking.hits),
        ],
    )


@search_commands.command()
def segments(
    company: Annotated[str, typer.Argument(help="Id, domain, name or alias")],
    url: UrlOption = None,
    index: IndexOption = None,
) -> None:
    """Print the lines of business of a company, with the numbers that `similarity similar --segment` takes."""
    if address := service_address(url, index=index):
        with connected(address) as client:
            answer = client.segments(company)
        show_segments(answer.company, answer.segments)
        return
    from similarity.search.searcher import Searcher

    with opened(index) as work:
        encoder = work.encoder(work.bundle())
        found, parts, _ = Searcher(work.index, {encoder.encoder_id: encoder}).segments(company)
        show_segments(found.document.company, parts)


@search_commands.command()
def find(
    query: Annotated[str, typer.Argument(help="An id, a name, the start of one, a domain, or words")],
    limit: Annotated[int, typer.Option("--limit", "-k", min=1, max=250, help="How many companies")] = 10,
    output: FormatOption = OutputFormat.TABLE,
    url: UrlOption = None,
    index: IndexOption = None,
) -> None:
    """Look companies up by id, name, domain or words."""
    from similarity.search.names.suggestions import suggested_companies

    nothing = (
        f"nothing found for {query!r}; try fewer letters or other words, or describe what the company does: "
        "similarity similar --text '...'"
    )
    address = service_address(url, index=index)
    if address:
        if not find_over_http(address, query, limit=limit, output=output):
            fail(nothing)
        return
    with opened(index) as work:
        found = suggested_companies(work.index, work.index.live(), query, limit=limit)
        show([Line(company=company) for company in found], output)
        if not found:
            fail(nothing)


@search_commands.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write")],
    k: CountOption = 10,
    part: Annotated[str, typer.Option(help="Only this part of the companies, such as 3/16; all parts in turn")] = "1/1",
    companies: Annotated[
        bool, typer.Option("--companies", help="Write the companies themselves, as JSON lines for a load (.jsonl)")
    ] = False,
    index: IndexOption = None,
) -> None:
    """Write the k nearest competitors of every company to a Parquet file."""
    from similarity.search.export import export_companies, export_neighbours, part_of
    from similarity.upkeep.audit import refuse_audit_record

    number, parts = part_of(part)
    if companies and parts > 1:
        raise InvalidInput("--part is for neighbours; --companies writes all companies")
    with opened(index) as work:
        refuse_audit_record(work.settings, file)
        live = work.index.live()
        stats = work.index.stats(live.name)
        if companies:
            with progress("companies", stats.companies) as on_rows:
                written = export_companies(work.index, live, file, on_rows=on_rows)
            typer.echo(f"{written:,} companies written to {file}")
            if options := work.index.attributes().options:
                typer.echo(f"declared types are not in the file; to load it elsewhere, add {options}")
            return
        total = stats.companies - stats.without_vector
        with progress("companies", total // parts) as on_rows:
            rows = export_neighbours(work.index, live, file, k=k, part=(number, parts), on_rows=on_rows)
    of = f"part {part} of " if parts > 1 else ""
    typer.echo(f"{rows:,} pairs of {of}{total:,} companies written to {file}")
    if stats.without_vector:
        typer.echo(f"{stats.without_vector:,} left out: their descriptions have too few words to rank by")
