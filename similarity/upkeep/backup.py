"""A whole backup of an embedded index: the file, what people added, and the models it was made with.

    BACKUP/similarity.db             the index
    BACKUP/similarity.db.workspace   verdicts and saved lists, if there are any
    BACKUP/similarity.db.bundles/    the bundle of each generation

The names are those that belong together, so `--index BACKUP/similarity.db` is all it takes to use it.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from similarity.errors import InvalidInput
from similarity.feedback.opening import workspace_file
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.bundle_store import keep_bundle, store_folder, stored_bundle
from similarity.index.sqlite import SqliteIndex
from similarity.index.sqlite.backup import refuse_target


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What was written beside the copy of the index; the bundles of `missing_encoders` were not at hand."""

    workspace: Path | None
    bundles: Path
    missing_encoders: tuple[str, ...]


def back_up(index: SqliteIndex, target: Path, *, store: Path, overwrite: bool = False) -> BackedUp:
    """Copies the index to `target`, and beside it its workspace and its bundles from `store`, while all are in use.

    The workspace goes first: a verdict may then be about a company that the copy of the index does not know yet,
    never the other way round. A file `.<target>.begun` stays where a backup is cut short before the index has its name:
    by it the next backup knows that it may replace the copy of the workspace.

    Raises:
        InvalidInput: a target exists (unless `overwrite`), is in use, or is the source itself. Nothing is written.
        IndexUnavailable: index or workspace cannot be read or is damaged.
        InvalidBundle: a bundle is damaged; index and workspace are written.
    """
    workspace, copy = workspace_file(index.path), workspace_file(target)
    begun = target.with_name(f".{target.name}.begun")
    refuse_target(index.path, target, kind="index", overwrite=overwrite)
    if workspace.exists():
        may_replace = overwrite or (begun.exists() and not target.exists())
        refuse_target(workspace, copy, kind="workspace", overwrite=may_replace)
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.touch()
        with closing(SqliteWorkspace(workspace)) as opened:
            opened.backup(copy, overwrite=may_replace)
    elif copy.exists():
        raise InvalidInput(f"{copy} belongs to another index: this one has no workspace; name another file")
    index.backup(target, overwrite=overwrite)
    begun.unlink(missing_ok=True)
    bundles = store_folder(target)
    found = {
        encoder_id: stored_bundle(store, encoder_id)
        for encoder_id in sorted({generation.encoder_id for generation in index.generations()})
    }
    for bundle in found.values():
        if bundle is not None:
            keep_bundle(bundle, bundles)
    return BackedUp(
        workspace=copy if workspace.exists() else None,
        bundles=bundles,
        missing_encoders=tuple(encoder_id for encoder_id, bundle in found.items() if bundle is None),
    )
