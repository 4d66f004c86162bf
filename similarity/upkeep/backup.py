"""Backup of an embedded index: the index file, the workspace, and the bundles of its generations.

    BACKUP/similarity.db             the index
    BACKUP/similarity.db.workspace   verdicts and saved lists, if there are any
    BACKUP/similarity.db.bundles/    the bundle of each generation

These are the default names of the files of an index, so `--index BACKUP/similarity.db` uses all of them.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from similarity.errors import IndexUnavailable, InvalidBundle, InvalidInput
from similarity.feedback.opening import workspace_file
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.bundle_store import keep_bundle, store_folder, stored_bundle
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.index.sqlite.backup import refuse_target
from similarity.index.sqlite.files import refuse_beside


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The files of a backup in addition to the index; the bundles of `missing_encoders` were not in the store."""

    workspace: Path | None
    bundles: Path
    missing_encoders: tuple[str, ...]


def back_up(index: SqliteIndex, target: Path, *, store: Path, overwrite: bool = False) -> BackedUp:
    """Copy the index to `target`, and its workspace and its bundles from `store` next to it, while all are in use.

    The workspace is copied first, so that its copy is never newer than the copy of the index. Then the index and the
    bundles of its generations are copied. At the end the workspace gets its name, and the index gets its name last: a
    backup whose index has its name is complete, and a backup that fails leaves an earlier one as it is. A backup that
    is killed between the two names leaves a file `.<target>.begun`, which allows the next backup to replace the copy of
    the workspace.

    Raises:
        InvalidInput: a target exists (unless `overwrite`), is in use, is the source itself, or has the name of a file
            of another index. Nothing is written.
        IndexUnavailable: index or workspace cannot be read or is damaged, or a generation was retired or a company
            erased meanwhile.
        InvalidBundle: a bundle is damaged; index and workspace are written.
    """
    refuse_beside(target)
    workspace, copy = workspace_file(index.path), workspace_file(target)
    begun = target.with_name(f".{target.name}.begun")
    refuse_target(index.path, target, kind="index", overwrite=overwrite)
    if copy.exists() and not workspace.exists():
        raise InvalidInput(f"{copy} belongs to another index: this one has no workspace; name another file")
    bundles = store_folder(target)
    missing: list[str] = []
    damaged: list[InvalidBundle] = []

    def copy_bundles(generations: Sequence[Generation]) -> None:
        for encoder_id in sorted({generation.encoder_id for generation in generations}):
            try:
                bundle = stored_bundle(store, encoder_id)
            except InvalidBundle as error:
                damaged.append(error)
                continue
            if bundle is None:
                missing.append(encoder_id)
            else:
                keep_bundle(bundle, bundles)
        if retired := set(missing) - {generation.encoder_id for generation in index.generations()}:
            raise IndexUnavailable(
                f"the generation of encoder {min(retired)} was retired while it was copied; run the backup again"
            )

    with ExitStack() as staged:
        give_name: Callable[[], None] | None = None
        if workspace.exists():
            may_replace = overwrite or (begun.exists() and not target.exists())
            opened = staged.enter_context(closing(SqliteWorkspace(workspace)))
            mark = opened.erasure_mark()
            give_name = staged.enter_context(opened.staged_backup(copy, overwrite=may_replace))

        def finish(generations: Sequence[Generation]) -> None:
            copy_bundles(generations)
            refuse_target(index.path, target, kind="index", overwrite=overwrite)
            if give_name:
                # To erase the company from this copy, its names are needed, and the copy of the index may lack them.
                if opened.erasure_mark() != mark:
                    raise IndexUnavailable("a company was erased during the backup; run the backup again")
                begun.touch()
                try:
                    give_name()
                finally:
                    if not copy.exists():
                        begun.unlink()

        index.backup(target, overwrite=overwrite, before_named=finish)
    begun.unlink(missing_ok=True)
    if damaged:
        raise damaged[0]
    return BackedUp(workspace=copy if give_name else None, bundles=bundles, missing_encoders=tuple(missing))
