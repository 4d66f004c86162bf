"""The command `similarity check`."""

import os
from contextlib import closing

import typer

from similarity.cli.context import IndexOption, fail, opened
from similarity.errors import InvalidInput


def check(index: IndexOption = None) -> None:
    """Read the whole index file, its workspace and its models, and list damage; the exit status is 1 if there is any.

    Searches continue meanwhile; writes wait.

    Example: `similarity check --index similarity.db`
    """
    from similarity.feedback.opening import open_existing_workspace
    from similarity.feedback.sqlite import SqliteWorkspace
    from similarity.index.bundle_store import check_bundles
    from similarity.index.sqlite import SqliteIndex

    with opened(index) as work:
        target = work.settings.index
        if not isinstance(work.index, SqliteIndex):
            raise InvalidInput(
                "an index in Elasticsearch has no file to check: Lucene has its own checksums; see "
                "docs/failure-modes.md"
            )
        found = damaged_rows = _print_damage("index", target, work.index.damage())
        workspace = open_existing_workspace(target, os.environ)
        if isinstance(workspace, SqliteWorkspace):
            with closing(workspace):
                found += _print_damage("workspace", f"{target}.workspace", workspace.damage())
        # Damage of the index may hide its generations.
        damaged, missing = check_bundles(work.store, [] if damaged_rows else work.index.generations())
        found += _print_damage("models", str(work.store), damaged)
        written = {generation.encoder_id for generation in work.index.write_targets()} if missing else set()
        for encoder_id in missing:
            refused = ", and writes are refused" if encoder_id in written else ""
            typer.echo(f"  there is no bundle of encoder {encoder_id}: without it, free text is not answered{refused}")
    if found:
        fail("restore a backup; an index without one can also be deleted and ingested again")


def _print_damage(kind: str, path: str, damage: list[str]) -> int:
    """Print the damage of a file; return the number of lines."""
    typer.echo(f"{kind} {path}: {'damaged' if damage else 'no damage found'}")
    for line in damage:
        typer.echo(f"  {line}")
    return len(damage)
