"""Keeps the bundles that an index was made with beside it: `similarity.db` has `similarity.db.bundles/<encoder_id>/`.

The bundle that ships with the code only seeds this store. So an upgrade that brings a new encoder
never refuses the index that is there: its generations go on with the encoder they name.
"""

import shutil
from pathlib import Path

from similarity.bundle import ModelBundle, seed_folder
from similarity.index.protocol import CompanyIndex, GenerationState


def store_folder(index_path: Path) -> Path:
    """Where the bundles of the index at `index_path` are kept."""
    return index_path.with_name(f"{index_path.name}.bundles")


def bundle_for(index: CompanyIndex, store: Path, *, chosen: Path | None = None) -> ModelBundle:
    """The bundle to work with: the chosen one, else that of the live (or candidate) generation, else the seed.

    Raises:
        InvalidBundle: the bundle found is damaged, or there is none.
    """
    if chosen is not None:
        return ModelBundle.load(chosen)
    for state in (GenerationState.LIVE, GenerationState.CANDIDATE):
        for generation in index.write_targets():
            folder = store / generation.encoder_id
            if generation.state is state and folder.is_dir():
                return ModelBundle.load(folder)
    return ModelBundle.load(seed_folder())


def keep_bundle(bundle: ModelBundle, store: Path) -> None:
    """Copies a bundle into the store, unless its encoder is there; it appears under its name when complete."""
    folder = store / bundle.encoder_id
    if folder.is_dir():
        return
    draft = store / f".{bundle.encoder_id}.part"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(bundle.folder, draft)
    draft.replace(folder)
