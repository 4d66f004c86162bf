"""Puts a finished bundle into its folder, in place of an older one."""

import shutil
import tempfile
from pathlib import Path

from similarity.bundle import ModelBundle


def publish(draft: Path, folder: Path) -> ModelBundle:
    """Copies the bundle in `draft` to `folder` and loads it; what was there goes when the copy is complete.

    Raises:
        InvalidBundle: `draft` holds no bundle; then `folder` stays as it was.
    """
    ModelBundle.load(draft)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two levels down, where nobody who looks for bundles in this store finds the copy.
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=folder.parent) as aside:
        new, old = Path(aside) / "new", Path(aside) / "old"
        shutil.copytree(draft, new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    return ModelBundle.load(folder)
