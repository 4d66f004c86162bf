"""Copies a finished bundle to its folder, replacing an older one."""

import shutil
import tempfile
from pathlib import Path

from similarity.bundle import ModelBundle


def publish(draft: Path, folder: Path) -> ModelBundle:
    """Copy the bundle in `draft` to `folder` and load it; an older bundle is replaced once the copy is complete.

    Raises:
        InvalidBundle: `draft` does not contain a bundle; `folder` is not changed.
    """
    ModelBundle.load(draft)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The copy is two levels down, because a search for bundles looks only one level into the store.
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=folder.parent) as aside:
        new, old = Path(aside) / "new", Path(aside) / "old"
        shutil.copytree(draft, new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    return ModelBundle.load(folder)
