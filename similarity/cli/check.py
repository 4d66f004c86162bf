"""The command `similarity check`."""

import os
from contextlib import closing

import typer

from similarity.cli.context import IndexOption, fail, opened
from similarity.errors import InvalidInput


def check(index: IndexOption = None) -> None:
    """Read the whole index file and its workspace, and list what is damaged; the exit status is 1 if anything is.

    Searches continue meanwhile; writes wait.

    Example: `similarity check --index similarity.db`
    """
    from similarity.feedback.opening import open_existing_workspace
    from similarity.feedback.sqlite import SqliteWorkspace
    from similarity.index.sqlite import SqliteIndex

    with opened(index) as work:
        target = work.settings.index
        if not isinstance(work.index, SqliteIndex):
            raise InvalidInput(
                "an index in Elasticsearch has no file to check: Lucene has its own checksums; see "
                "docs/failure-modes.md"
            )
        found = _print_damage("index", target, work.index.damage())
        workspace = open_existing_workspace(target, os.environ)
        if isinstance(workspace, SqliteWorkspace):
            with closing(workspace):
                found += _print_damage("workspace", f"{target}.workspace", workspace.damage())
    if found:
        fail("restore a backup; an index without one can also be deleted and ingested again")


def _print_damage(kind: str, path: str, damage: list[str]) -> int:
    """Print the damage of a file; return the number of lines."""
    typer.echo(f"{kind} {path}: {'damaged' if damage else 'no damage found'}")
    for line in damage:
        typer.echo(f"  {line}")
    return len(damage)
