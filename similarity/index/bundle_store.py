"""Keeps the bundles that an index was made with: `similarity.db` has `similarity.db.bundles/<encoder_id>/`.

The bundle that ships with the code only seeds this store. So an upgrade that brings a new encoder
never refuses the index that is there: its generations go on with the encoder they name. While a
re-embed runs, and until the old generation is retired, writers take both encoders from here; writers
on several machines share one folder (SIMILARITY_BUNDLES).
"""

import re
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from similarity.bundle import MANIFEST_FILE, ModelBundle, seed_folder
from similarity.errors import InvalidBundle
from similarity.index.opening import index_name
from similarity.index.protocol import CompanyIndex, GenerationState
from similarity.model.encoder_protocol import Encoder

DRAFT = re.compile(r"\.[0-9a-f]{16}\..+")
ABANDONED_SECONDS = 3600.0
"""A bundle is copied in seconds: after so long, whoever made a draft is gone."""


def store_folder(target: str | Path, chosen: Path | None = None) -> Path:
    """Where the bundles of an index are kept: the chosen folder, else beside the file, or here for a URL's NAME."""
    return chosen or Path(f"{index_name(str(target))}.bundles")


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


def stored_bundle(store: Path, encoder_id: str) -> ModelBundle | None:
    """The bundle of this encoder: from the store, else the one that ships with the code, else None.

    Raises:
        InvalidBundle: it is there, but damaged.
    """
    if (store / encoder_id / MANIFEST_FILE).is_file():
        return ModelBundle.load(store / encoder_id)
    try:
        seed = ModelBundle.load(seed_folder())
    except InvalidBundle:
        return None
    return seed if seed.encoder_id == encoder_id else None


def keep_bundle(bundle: ModelBundle, store: Path) -> None:
    """Copies a bundle into the store, unless its encoder is there and sound; it appears under its name when complete.

    Several processes may keep the same one at the same moment: each has a draft of its own, and the first wins.
    """
    folder = store / bundle.encoder_id
    if _is_sound(folder):
        return
    store.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(store)
    with _draft(store, bundle.encoder_id) as draft, _draft(store, bundle.encoder_id) as aside:
        # The draft gets the rights of the bundle's own folder: a temporary one is for its owner alone, and others
        # read bundles. It stays beside the bundle's place: a read-only folder cannot be moved to another one.
        shutil.copytree(bundle.folder, draft, dirs_exist_ok=True)
        # Releases that shared one draft could leave half a bundle behind, which no index can be opened with.
        if folder.is_dir() and not _is_sound(folder):
            with suppress(FileNotFoundError):
                folder.replace(aside)
        try:
            Path(draft).replace(folder)
        except OSError:
            if not folder.is_dir():
                raise


def _draft(store: Path, encoder_id: str) -> TemporaryDirectory[str]:
    """A new folder in the store, hidden by its dot, that is gone afterwards unless it was moved."""
    return TemporaryDirectory(dir=store, prefix=f".{encoder_id}.", ignore_cleanup_errors=True)


def _remove_abandoned(store: Path) -> None:
    """What processes left that were killed while they kept a bundle."""
    for draft in store.iterdir():
        with suppress(FileNotFoundError):
            # Not the time of modification, which a copy takes over from the bundle's own folder.
            if DRAFT.fullmatch(draft.name) and draft.stat().st_ctime < time.time() - ABANDONED_SECONDS:
                shutil.rmtree(draft, ignore_errors=True)


def _is_sound(folder: Path) -> bool:
    try:
        ModelBundle.load(folder)
    except (InvalidBundle, FileNotFoundError):
        return False
    return True


class StoredEncoders(Mapping[str, Encoder]):
    """The encoders of a store by id, each opened when it is first asked for.

    A load that began with one generation finds here the encoder of the candidate that appears while
    it runs. `opened` are encoders that are at hand already. Safe to share between threads.
    """

    def __init__(
        self, store: Path, open_encoder: Callable[[ModelBundle], Encoder], *, opened: Iterable[Encoder] = ()
    ) -> None:
        self._store = store
        self._open_encoder = open_encoder
        self._opened = {encoder.encoder_id: encoder for encoder in opened}
        self._opening = threading.Lock()

    def __getitem__(self, encoder_id: str) -> Encoder:
        with self._opening:
            if encoder_id not in self._opened:
                bundle = stored_bundle(self._store, encoder_id)
                if bundle is None:
                    raise KeyError(encoder_id)
                self._opened[encoder_id] = self._open_encoder(bundle)
            return self._opened[encoder_id]

    def keep_only(self, encoder_ids: Collection[str]) -> None:
        """Lets go of the other encoders, which take some 50 MiB each; one that is asked for again is opened again.

        Those that were at hand and are not in the store could not be, so they stay. Whoever holds an
        encoder goes on with it.
        """
        with self._opening:
            for encoder_id in self._opened.keys() - set(encoder_ids):
                if (self._store / encoder_id / MANIFEST_FILE).is_file():
                    del self._opened[encoder_id]

    def __iter__(self) -> Iterator[str]:
        stored = {manifest.parent.name for manifest in self._store.glob(f"*/{MANIFEST_FILE}")}
        return iter(sorted({name for name in stored if not name.startswith(".")} | set(self._opened)))

    def __len__(self) -> int:
        return len(list(iter(self)))
