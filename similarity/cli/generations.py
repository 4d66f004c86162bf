"""The commands `similarity generations` list, reembed, copy, gate, promote, rollback and retire.

The other commands of this group are in `similarity.cli.generations_maintenance`.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from similarity.cli.context import IndexOption, Opened, fail, opened, progress
from similarity.cli.generations_maintenance import DryRunOption, FormatOption, maintenance
from similarity.cli.output import ListFormat, show_facts, show_rows
from similarity.errors import InvalidInput

if TYPE_CHECKING:
    from similarity.generations.gate import Gate, GateReport
    from similarity.generations.plan import Plan
    from similarity.generations.promotion import Promotion
    from similarity.generations.reembed import Options, ReembedReport
    from similarity.model.encoder_protocol import Encoder

EPILOG = """
From one encoder to the next, while the index is searched and written to:

  similarity generations reembed --bundle models/NEW --dry-run

  similarity generations reembed --bundle models/NEW --judged judged.tsv

  similarity generations rollback          (if it was a mistake)

  similarity generations prune --keep 0    (a week later, to finish: until then each change is encoded twice)
"""

generations = typer.Typer(
    help="Re-embed, evaluate, promote and roll back the generations of an index.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
generations.add_typer(maintenance)

JUDGED = "Relevance labels (TSV: anchor, candidate, grade 0-2; or the file of similarity pairs)"
JudgedOption = Annotated[Path | None, typer.Option("--judged", help=f"{JUDGED}, that were not trained on")]
TrainedOnOption = Annotated[
    Path | None,
    typer.Option("--trained-on", help="File with one company id a line: anchors that were trained on are skipped"),
]
FloorOption = Annotated[float, typer.Option(min=0, max=1, help="nDCG@10 that a first generation must reach")]
WithoutGateOption = Annotated[
    bool, typer.Option("--without-gate", help="Promote without the gate, even if the model is worse")
]
RateOption = Annotated[float | None, typer.Option("--max-rate", help="Maximum number of documents per second")]
PromoteOption = Annotated[
    bool, typer.Option("--promote/--no-promote", help="Whether to make it live; without, run again to continue")
]
CompactOption = Annotated[
    bool, typer.Option("--compact", help="Merge it on disk before it goes live: slower now, faster searches")
]
WaitOption = Annotated[
    float, typer.Option("--wait", help="Seconds to wait until all writers write to the new generation")
]


@generations.command("list")
def list_(index: IndexOption = None, output: FormatOption = ListFormat.TABLE) -> None:
    """List the generations with their states, counts and encoders.

    Example: `similarity generations list --format json`
    """
    with opened(index) as work:
        rows = []
        # A table must fit a terminal; JSON has all members.
        more = () if output is ListFormat.TABLE else ("bundle_id", "dimension", "created_at", "promoted_at")
        for generation in work.index.generations():
            stats = work.index.stats(generation.name)
            counts = {"companies": stats.companies, "deleted": stats.deleted}
            row = {"name": generation.name, "state": generation.state.value, **counts}
            rows.append(row | {member: getattr(generation, member) for member in ("encoder_id", *more)})
        show_rows(rows, output, nothing="no generation yet; similarity ingest FILE makes the first")


@generations.command()
def reembed(
    *,
    bundle: Annotated[
        Path | None, typer.Option("--bundle", help="Folder of the new model bundle [default: the one that ships]")
    ] = None,
    judged: JudgedOption = None,
    trained_on: TrainedOnOption = None,
    without_gate: WithoutGateOption = False,
    max_rate: RateOption = None,
    promote: PromoteOption = True,
    compact: CompactOption = False,
    wait: WaitOption = 600,
    dry_run: DryRunOption = False,
    index: IndexOption = None,
    output: FormatOption = ListFormat.TABLE,
) -> None:
    """Embed all companies with a new bundle, evaluate the result, and make it live.

    Searches and writes continue meanwhile. It may be interrupted at any time: the same command continues from there.

    Example: `similarity generations reembed --bundle models/NEW --judged judged.tsv --max-rate 200`
    """
    from similarity.bundle import ModelBundle, seed_folder
    from similarity.company import utc_now
    from similarity.generations.gate import gate_from_file
    from similarity.generations.new import new_generation
    from similarity.generations.plan import plan
    from similarity.generations.reembed import reembed as run
    from similarity.index.bundle_store import keep_bundle

    if judged is None and promote and not without_gate and not dry_run:
        raise InvalidInput("give labelled pairs for the gate (--judged FILE), or --no-promote, or --without-gate")
    if judged is not None and without_gate:
        raise InvalidInput("--judged and --without-gate contradict each other; remove one of them")
    new = ModelBundle.load(bundle or seed_folder())
    with opened(index) as work:
        now = utc_now()
        wanted = new_generation(work.index, new, now=now)
        planned = plan(work.index, wanted)
        if dry_run:
            _show_plan(work, planned, encoder=work.encoder(new), max_rate=max_rate, output=output)
            return
        gate = gate_from_file(work.index, judged, trained_on=trained_on, store=work.store) if judged else None
        encoder = work.encoder(new)
        # Before the candidate exists, because writers load its encoder from the store.
        keep_bundle(new, work.store)
        with progress("documents", planned.lacking) as on_documents:
            options = _options(gate, on_documents, promote=promote, compact=compact, max_rate=max_rate, wait=wait)
            report = run(work.audited, wanted, encoder=encoder, now=now, options=options)
    _tell(report, output, promote=promote)


@generations.command()
def copy(
    *,
    max_rate: RateOption = None,
    promote: PromoteOption = True,
    compact: CompactOption = False,
    wait: WaitOption = 600,
    dry_run: DryRunOption = False,
    index: IndexOption = None,
    output: FormatOption = ListFormat.TABLE,
) -> None:
    """Copy the live generation into a new one and make that live, for new settings of the index.

    Vectors are copied, nothing is encoded, and rankings stay the same, so there is no gate.

    Example: `SIMILARITY_ELASTICSEARCH_VECTORS=bbq_hnsw similarity generations copy --index http://localhost:9200/NAME`
    """
    from similarity.company import utc_now
    from similarity.generations.plan import copy_of, plan
    from similarity.generations.reembed import copy_generation as run

    with opened(index) as work:
        now = utc_now()
        planned = plan(work.index, copy_of(work.index, work.index.live(), now=now))
        if dry_run:
            _show_plan(work, planned, encoder=None, max_rate=max_rate, output=output)
            return
        with progress("documents", planned.lacking) as on_documents:
            options = _options(None, on_documents, promote=promote, compact=compact, max_rate=max_rate, wait=wait)
            report = run(work.audited, now=now, options=options)
    _tell(report, output, promote=promote)


@generations.command()
def gate(
    new: Annotated[str, typer.Argument(metavar="NEW", help="The generation to evaluate")],
    *,
    judged: Annotated[Path, typer.Option("--judged", help=JUDGED)],
    old: Annotated[str | None, typer.Option(help="Compare with this one [default: the live one]")] = None,
    trained_on: TrainedOnOption = None,
    floor: FloorOption = 0.5,
    index: IndexOption = None,
    output: FormatOption = ListFormat.TABLE,
) -> None:
    """Evaluate a generation without changing anything; the exit status is 1 if it is refused.

    Example: `similarity generations gate 20260131-120000-1f2e3d4c --judged judged.tsv`
    """
    from similarity.generations.gate import gate_from_file
    from similarity.generations.promotion import live_name

    with opened(index) as work:
        live = live_name(work.index)
        gate = gate_from_file(work.index, judged, trained_on=trained_on, store=work.store, floor=floor)
        report = gate(old or (None if live == new else live), new)
    show_facts(asdict(report) if output is ListFormat.JSON else _gate_facts(report), output)
    if not report.passed:
        fail(f"{new} does not pass the gate")


@generations.command()
def promote(
    name: Annotated[str, typer.Argument(help="The generation to make live")],
    *,
    judged: JudgedOption = None,
    trained_on: TrainedOnOption = None,
    floor: FloorOption = 0.5,
    without_gate: WithoutGateOption = False,
    wait: WaitOption = 30,
    dry_run: DryRunOption = False,
    index: IndexOption = None,
    output: FormatOption = ListFormat.TABLE,
) -> None:
    """Make a filled generation live, if it passes the gate and lacks no documents; also one that was rolled back.

    Example: `similarity generations promote 20260131-120000-1f2e3d4c --judged judged.tsv --dry-run`
    """
    from similarity.generations.gate import gate_from_file
    from similarity.generations.promotion import promote as run

    if (judged is None) != without_gate:
        raise InvalidInput("give either labelled pairs for the gate (--judged FILE), or --without-gate")
    with opened(index) as work:
        judge = None
        if judged:
            judge = gate_from_file(work.index, judged, trained_on=trained_on, store=work.store, floor=floor)
        report = run(work.audited, name, gate=judge, dry_run=dry_run, wait=wait)
    show_facts(_facts(report, output), output)
    if report.reasons:
        fail(f"{name} was not promoted: {'; '.join(report.reasons)}")


@generations.command()
def rollback(
    force: Annotated[bool, typer.Option("--force", help="Even if that generation lacks newer documents")] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for writes in flight")] = 10.0,
    dry_run: DryRunOption = False,
    index: IndexOption = None,
    output: FormatOption = ListFormat.TABLE,
) -> None:
    """Make the generation that was live before live again, at once.

    A second rollback is refused, because it would go forward again; `promote NAME` does that.

    Example: `similarity generations rollback --dry-run`
    """
    from similarity.generations.promotion import rollback as run
    from similarity.generations.promotion import rollback_plan

    with opened(index) as work:
        if dry_run:
            show_facts(asdict(rollback_plan(work.index, force=force, wait=wait)), output)
            return
        generation = run(work.audited, force=force, wait=wait)
    show_facts({"live": generation.name, "encoder_id": generation.encoder_id}, output)


@generations.command()
def retire(
    name: Annotated[str, typer.Argument(help="The generation to remove, with all its documents")],
    dry_run: DryRunOption = False,
    index: IndexOption = None,
) -> None:
    """Remove a generation that is not live, with all its documents.

    Example: `similarity generations retire 20251201-090000-0a1b2c3d`
    """
    from similarity.generations.gate import generation_named
    from similarity.generations.promotion import retire as run

    with opened(index) as work:
        generation = generation_named(work.index, name)
        stats = work.index.stats(name)
        if not dry_run:
            run(work.audited, name)
    done = "would be removed" if dry_run else "removed"
    typer.echo(f"{name} ({generation.state}, {stats.companies:,} companies) {done}")


def _options(
    gate: "Gate | None",
    on_documents: Callable[[int], None],
    *,
    promote: bool,
    compact: bool,
    max_rate: float | None,
    wait: float,
) -> "Options":
    from similarity.generations.reembed import Options

    return Options(
        gate=gate,
        promote=promote,
        compact=compact,
        max_docs_per_second=max_rate,
        writers_timeout=wait,
        on_step=lambda name, detail: typer.echo(f"{name:<10} {detail}", err=True),
        on_documents=on_documents,
    )


def _show_plan(
    work: Opened, planned: "Plan", *, encoder: "Encoder | None", max_rate: float | None, output: ListFormat
) -> None:
    from similarity.generations.estimate import estimate

    old = work.encoders().get(planned.live.encoder_id) if planned.encodes else None
    found = estimate(work.index, planned, new=encoder, old=old, max_docs_per_second=max_rate)
    facts = {
        "live": planned.live.name,
        "candidate": planned.candidate.name,
        "begun_earlier": planned.begun,
        "vectors": "encoded" if planned.encodes else "copied",
        "documents": planned.documents,
        "lacking": planned.lacking,
        "writers": planned.writers,
        **asdict(found),
        "seconds_per_1000_changes": found.seconds_per_1000_changes,
        **({"warning": planned.warning} if planned.warning else {}),
        "disk": "5 bytes per dimension and the texts; without word index, replicas and unmerged segments",
    }
    show_facts(facts, output)


def _facts(report: "ReembedReport | Promotion", output: ListFormat) -> dict[str, Any]:
    """Return the members of a report. A table has no reasons: a message has these."""
    facts = asdict(report)
    if output is ListFormat.JSON:
        return facts
    if report.gate:
        facts["gate"] = _gate_facts(report.gate)
        del facts["gate"]["reasons"]
    return {name: each for name, each in facts.items() if name != "reasons"}


def _gate_facts(report: "GateReport") -> dict[str, Any]:
    """Return the members of a report of the gate for a table, which has no empty figures."""
    facts = {name: each for name, each in asdict(report).items() if each is not None}
    facts.setdefault("trained_on", "not known; --trained-on FILE names the companies")
    return facts


def _tell(report: "ReembedReport", output: ListFormat, *, promote: bool) -> None:
    # With --no-promote, `report.promoted` is true only if the generation was live before.
    show_facts(_facts(report, output) | {"promoted": report.promoted and promote}, output)
    if report.rejected:
        fail(f"{len(report.rejected):,} documents cannot be stored in {report.generation}, so it did not go live")
    if report.refusal:
        fail(report.refusal)
    if not promote and not report.promoted:
        typer.echo(f"to make it live: similarity generations promote {report.generation} --judged FILE", err=True)
