"""The commands `similarity info`, `similarity backup` and `similarity erase`."""

import os
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from similarity.cli.context import BundleOption, IndexOption, fail, opened, typed_id
from similarity.errors import InvalidInput
from similarity.formats.terminal import printable

if TYPE_CHECKING:
    from similarity.model.ranker import Ranker

info_backup_erase_commands = typer.Typer()
RANKER_FIGURE = "ranker_"


@info_backup_erase_commands.command()
def info(index: IndexOption = None, bundle: BundleOption = None) -> None:
    """Show the index's generations and the model bundle."""
    from similarity.generations.plan import former_bundles
    from similarity.index.protocol import GenerationState

    with opened(index, bundle) as work:
        loaded = work.bundle()
        base_model, folder = printable(loaded.manifest.base_model), printable(str(loaded.folder))
        typer.echo(f"bundle      {base_model}, {loaded.manifest.dimension} dimensions, {folder}")
        typer.echo(f"            encoder {loaded.encoder_id}")
        if work.settings.runtime != "onnxruntime":
            typer.echo(f"            runtime {work.settings.runtime}: runs on {work.encoder(loaded).runtime}")
        # A recalibration changes only the generation: the stored bundle keeps its id, and the figures of its weights.
        live = {each.bundle_id for each in work.index.generations() if each.state is GenerationState.LIVE}
        measured = loaded.manifest.metrics if live <= {loaded.bundle_id} else {}
        figures = ((name, value) for name, value in measured.items() if name.startswith(RANKER_FIGURE))
        if shown := ", ".join(f"{name.removeprefix(RANKER_FIGURE)} {value:.4g}" for name, value in figures):
            typer.echo(f"            figures of its ranker: {shown}")
        typer.echo(f"index       {printable(work.settings.index)}")
        schema = work.index.attributes()
        for name, declared in schema.types.items():
            typer.echo(f"attribute   {name}: {declared.text}{', the size of a company' if name == schema.size else ''}")
        for generation in work.index.generations():
            stats = work.index.stats(generation.name)
            typer.echo(
                f"generation  {generation.name} {generation.state}: {stats.companies:,} companies, {stats.deleted:,} "
                f"deleted, {stats.without_vector:,} without a vector"
            )
            typer.echo(f"            encoder {generation.encoder_id}, bundle {generation.bundle_id}")
            languages = ", ".join(f"{language} {count:,}" for language, count in stats.languages.items())
            typer.echo(f"            reads {', '.join(generation.languages)}; languages: {languages or 'none yet'}")
            for line in ranker_lines(generation.ranker):
                typer.echo(f"            {line}")
        if former := ", ".join(sorted(former_bundles(work.index))):
            typer.echo(f"former      bundles that were live; no schedule makes them live again: {former}")


@info_backup_erase_commands.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; FILE.workspace and FILE.bundles go beside it")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file")] = False,
    index: IndexOption = None,
) -> None:
    """Copy the index to a file, and verdicts, saved lists and models beside it, while all are in use."""
    from similarity.feedback.opening import workspace_file
    from similarity.index.sqlite import SqliteIndex
    from similarity.upkeep.audit import refuse_audit_record
    from similarity.upkeep.backup import back_up

    with opened(index) as work:
        if not isinstance(work.index, SqliteIndex):
            raise InvalidInput(
                "an index in Elasticsearch is backed up by snapshots of the cluster; see docs/elasticsearch.md for how"
            )
        refuse_audit_record(work.settings, file, workspace_file(file))
        written = back_up(work.index, file, store=work.store, overwrite=overwrite)
    typer.echo(f"written to {file}; use it with --index {file}")
    typer.echo(f"verdicts and saved lists: {written.workspace or 'there are none yet'}")
    typer.echo(f"models: {written.bundles}")
    for encoder_id in written.missing_encoders:
        typer.echo(f"not in the bundle folder, so not copied: the bundle of encoder {encoder_id}", err=True)


@info_backup_erase_commands.command()
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

    An id that is not stored is no error: the output says so, and the rest is done. Exit status 1: it is not erased.

    Example: `similarity erase acme --dry-run`, then `similarity erase acme`
    """
    from similarity.feedback.opening import open_existing_workspace
    from similarity.upkeep.audit import FAILED as FAILED_ACT
    from similarity.upkeep.audit import Action, system_user
    from similarity.upkeep.erasure import Eraser, not_stored, remaining

    with opened(index) as work, ExitStack() as also:
        names = [generation.name for generation in work.index.generations()]
        holding = [name for name in names if work.index.get(name, [typed_id(company_id)])]
        missing = not_stored(work.index, company_id)
        typer.echo(printable(missing or f"{company_id} is in {', '.join(holding)}"))
        if dry_run:
            return
        with work.audit.recorded(Action.ERASE, who=system_user(), company_id=company_id) as act:
            record = Eraser(work.index).accept(company_id)
            # A workspace that a service creates after this line cannot have the company: the service finds it no more.
            workspace = open_existing_workspace(work.settings.index, os.environ)
            if workspace is not None:
                also.enter_context(closing(workspace))
            if not holding:
                typer.echo("Verdicts, notes and lists are searched for it. It is marked as deleted for late messages:")
            for name, result in record.results.items():
                typer.echo(f"{name}: {result.outcome}" + (f" ({result.reason})" if result.reason else ""))
            Eraser(work.index, workspace).finish(only=company_id, compact=compact)
            record = work.index.ledger.erasure(company_id) or record  # a service may have finished it
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


def ranker_lines(ranker: "Ranker | None") -> list[str]:
    """Return the weights of a ranker as lines; without a ranker, a line that says so."""
    if ranker is None:
        return ["ranker: none, hits are in the order of the cosine (python -m training.rank fits one)"]
    weights = {name: value for name, value in asdict(ranker).items() if isinstance(value, float)}
    lines = ["business: " + ", ".join(f"{name} {value:+.2f}" for name, value in weights.items())]
    if ranker.comparable:
        facts = ", ".join(f"{name} {value:+.2f}" for name, value in asdict(ranker.comparable).items())
        lines.append(f"comparable: {facts}")
    return lines
