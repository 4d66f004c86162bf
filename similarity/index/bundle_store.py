"""The folder with the bundles of an index: `similarity.db` has `similarity.db.bundles/<encoder_id>/`.

The bundle that ships with the code is only copied into this store. An upgrade with a new encoder therefore still
works with an existing index: its generations continue to use their encoders. During a re-embed, and until the old
generation is retired, writers load both encoders from here; writers on several machines share one folder
(SIMILARITY_BUNDLES).
"""

import re
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from similarity.bundle import MANIFEST_FILE, ModelBundle, companies_trained_on, seed_folder, trained_on_path
from similarity.errors import InvalidBundle
from similarity.index.opening import index_name
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.model.encoder_protocol import Encoder

DRAFT = re.compile(r"\.[0-9a-f]{16}\..+")
ABANDONED_SECONDS = 3600.0
"""A bundle is copied in seconds: the process of an older draft is certainly dead."""


def store_folder(target: str | Path, chosen: Path | None = None) -> Path:
    """Return the folder of an index's bundles: the chosen one, else next to the file (for a URL: `NAME.bundles`)."""
    return chosen or Path(f"{index_name(str(target))}.bundles")


def bundle_for(index: CompanyIndex, store: Path, *, chosen: Path | None = None) -> ModelBundle:
    """Return the chosen bundle, else the bundle of the live (or candidate) generation, else the one that ships.

    Raises:
        InvalidBundle: the bundle is damaged, or there is none.
    """
    if chosen is not None:
        return ModelBundle.load(chosen)
    for state in (GenerationState.LIVE, GenerationState.CANDIDATE):
        for generation in index.write_targets():
            if generation.state is not state:
                continue
            folder = store / generation.encoder_id
            if bundle := _load_stored(folder) if folder.is_dir() else _shipped(generation.encoder_id):
                return bundle
    return ModelBundle.load(seed_folder())


def stored_bundle(store: Path, encoder_id: str) -> ModelBundle | None:
    """Return the bundle of this encoder: from the store, else the one that ships with the code, else None.

    Raises:
        InvalidBundle: the stored bundle is damaged, or of another encoder.
    """
    if (store / encoder_id / MANIFEST_FILE).is_file():
        return _load_stored(store / encoder_id)
    return _shipped(encoder_id)


def check_bundles(store: Path, generations: Iterable[Generation]) -> tuple[list[str], list[str]]:
    """Return a line for each damaged or wrong bundle of these generations, and the encoders that have no bundle."""
    damaged, missing = list[str](), list[str]()
    for encoder_id in sorted({generation.encoder_id for generation in generations}):
        try:
            if stored_bundle(store, encoder_id) is None:
                missing.append(encoder_id)
        except InvalidBundle as error:
            damaged.append(str(error))
    return damaged, missing


def keep_bundle(bundle: ModelBundle, store: Path) -> None:
    """Copy a bundle into the store, unless it has a valid one of that encoder, and its list of training companies.

    The copy is renamed when complete.

    Several processes may copy the same bundle at the same time: each has its own draft, and the first wins.
    """
    folder = store / bundle.encoder_id
    if not _is_sound(folder):
        _copy(bundle, store)
    if listed := companies_trained_on(bundle.folder):
        with suppress(shutil.SameFileError):
            shutil.copyfile(listed, trained_on_path(folder))


def _copy(bundle: ModelBundle, store: Path) -> None:
    folder = store / bundle.encoder_id
    store.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(store)
    with _draft(store, bundle.encoder_id) as draft, _draft(store, bundle.encoder_id) as aside:
        # The draft gets the permissions of the bundle's folder: a temporary folder is private, but others read
        # bundles. It is in the same folder as the copy: a read-only folder cannot be moved to another one.
        try:
            shutil.copytree(bundle.folder, draft, dirs_exist_ok=True)
        except shutil.Error as error:  # its message is a list of tuples
            _, _, reason = error.args[0][0]
            raise OSError(f"the model cannot be copied: {reason}; free some space, then try again") from error
        # Earlier releases, which shared one draft, could leave an incomplete bundle.
        if folder.is_dir() and not _is_sound(folder):
            with suppress(FileNotFoundError):
                folder.replace(aside)
        try:
            Path(draft).replace(folder)
        except OSError:
            if not folder.is_dir():
                raise


def _draft(store: Path, encoder_id: str) -> TemporaryDirectory[str]:
    """Return a new hidden folder in the store that is deleted afterwards unless it was moved."""
    return TemporaryDirectory(dir=store, prefix=f".{encoder_id}.", ignore_cleanup_errors=True)


def _remove_abandoned(store: Path) -> None:
    """Delete the drafts of processes that were killed while they copied a bundle."""
    for draft in store.iterdir():
        with suppress(FileNotFoundError):
            # Not the modification time, which copytree copies from the bundle's folder.
            if DRAFT.fullmatch(draft.name) and draft.stat().st_ctime < time.time() - ABANDONED_SECONDS:
                shutil.rmtree(draft, ignore_errors=True)


def _shipped(encoder_id: str) -> ModelBundle | None:
    """Return the bundle that ships with the code if it is of this encoder, else None."""
    with suppress(InvalidBundle):
        folder = seed_folder()
        if folder.name == encoder_id:  # the folder of a bundle that ships has this name
            return ModelBundle.load(folder)
    return None


def _is_sound(folder: Path) -> bool:
    try:
        _load_stored(folder)
    except (InvalidBundle, FileNotFoundError):
        return False
    return True


def _load_stored(folder: Path) -> ModelBundle:
    """Return the bundle of a folder of the store. Raises InvalidBundle if it is damaged or of another encoder."""
    bundle = ModelBundle.load(folder)
    if bundle.encoder_id != folder.name:
        raise InvalidBundle(
            f"{folder} holds the bundle of encoder {bundle.encoder_id}, not of {folder.name}; "
            "restore the folder from a backup"
        )
    return bundle


class StoredEncoders(Mapping[str, Encoder]):
    """The encoders of a store by id, each loaded when it is first used. Thread-safe.

    A running load finds here the encoder of a candidate that is registered meanwhile. `opened`: encoders that are
    loaded already.
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
        """Release the other encoders, which need about 50 MiB each; they are loaded again when they are used.

        Encoders that are not in the store could not be loaded again, so they are kept. Callers that hold an encoder
        can still use it.
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
