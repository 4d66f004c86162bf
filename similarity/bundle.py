"""A model bundle: the folder with all files that are needed to encode texts.

    model.onnx      inputs: token ids and attention mask; output `embedding`: pooled, unit norm
    tokenizer.json  in the format of Hugging Face tokenizers
    manifest.json   the description of the model, and the SHA-256 of every other file
    README.md       the model card (optional)

`encoder_id` is a hash of everything that affects vectors; an index accepts only vectors with its own encoder_id.
`bundle_id` is a hash of all files. A new calibration changes only bundle_id, so companies need not be re-embedded.

Loading verifies the files; `similarity.encoder.TextEncoder` verifies that the model and the tokenizer can be run.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from similarity.errors import InvalidBundle
from similarity.formats.json_text import read_json
from similarity.model.manifest import Manifest, manifest_from_json, manifest_to_json

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "manifest.json"
CARD_FILE = "README.md"

FORMER_NAME = "multilingual"
"""The name of a second bundle, which earlier releases shipped."""

_REQUIRED_FILES = (MODEL_FILE, TOKENIZER_FILE)
_KNOWN_FILES = (*_REQUIRED_FILES, CARD_FILE)
_MAX_MANIFEST_BYTES = 1_000_000
_ID_LENGTH = 16
# In the ONNX format, a tensor in another file has an entry with this key (TensorProto.external_data).
_EXTERNAL_DATA_KEY = b"location"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBundle:
    """A verified bundle: its folder, its manifest, and the SHA-256 of each file by name."""

    folder: Path
    manifest: Manifest
    sha256: dict[str, str]

    @classmethod
    def load(cls, folder: Path | str) -> "ModelBundle":
        """Return the bundle in `folder`, verified.

        Raises:
            InvalidBundle: `folder` is no bundle; a file is missing, unlisted, modified or truncated; the model stores
                tensors in other files; the manifest is invalid; or its ranker was fitted for another encoder.
        """
        folder = Path(folder)
        _check_folder(folder)
        manifest, sha256 = _read_manifest(folder / MANIFEST_FILE)
        _check_file_list(folder, sha256)
        bundle = cls(folder=folder, manifest=manifest, sha256=sha256)
        contents = {name: bundle.read(name) for name in sha256}
        ranker = manifest.ranker
        if ranker and ranker.encoder_id != bundle.encoder_id:
            raise InvalidBundle(
                f"the ranker of {folder} was fitted for encoder {ranker.encoder_id}, not for {bundle.encoder_id}; fit "
                "it again with python -m training.rank"
            )
        if _EXTERNAL_DATA_KEY in contents[MODEL_FILE]:
            raise InvalidBundle(
                f"{folder / MODEL_FILE} stores tensors in another file, or a name in it contains "
                f"{_EXTERNAL_DATA_KEY.decode()!r}; export it again with all weights inside and without that name"
            )
        return bundle

    @property
    def encoder_id(self) -> str:
        """First 16 hex digits of the SHA-256 of everything that affects a vector; vectors of one id are comparable."""
        return _id_of(
            {
                "graph": self.sha256[MODEL_FILE],
                "tokenizer": self.sha256[TOKENIZER_FILE],
                "max_tokens": self.manifest.max_tokens,
                "pooling": self.manifest.pooling,
                "normalisation": self.manifest.normalisation,
                "text_settings": asdict(self.manifest.text_settings),
            }
        )

    @property
    def bundle_id(self) -> str:
        """First 16 hex digits of the SHA-256 of the whole manifest, which contains the hash of every file."""
        return _id_of(manifest_to_json(self.manifest, self.sha256))

    def read(self, name: str) -> bytes:
        """Return the content of the file `name`, after comparing its SHA-256 with the manifest.

        Raises:
            InvalidBundle: the file was modified or removed since the bundle was written.
        """
        path = self.folder / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InvalidBundle(f"{path} cannot be read ({error.strerror}); fetch or export the bundle again") from None
        if hashlib.sha256(content).hexdigest() != self.sha256[name]:
            raise InvalidBundle(
                f"{path} ({len(content):,} bytes) does not match its SHA-256 in {MANIFEST_FILE}: it was modified or "
                "truncated; fetch or export the bundle again"
            )
        return content


def write_manifest(folder: Path | str, manifest: Manifest) -> ModelBundle:
    """Write `manifest` and the hashes of the files in `folder` to its manifest.json, and load the bundle.

    Raises:
        InvalidBundle: the files in the folder are not a valid bundle.
    """
    folder = Path(folder)
    sha256 = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in _KNOWN_FILES
        if (folder / name).is_file()
    }
    text = json.dumps(manifest_to_json(manifest, sha256), indent=2, ensure_ascii=False) + "\n"
    # Write to a temporary file and rename it, so that readers never see a partial manifest. The temporary file is in
    # the parent folder, because a bundle may not contain unlisted files.
    draft = folder.parent / f".{folder.name}.{MANIFEST_FILE}"
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / MANIFEST_FILE)
    return ModelBundle.load(folder)


def is_bundle(source: Path | str) -> bool:
    """Return whether `source` is a bundle folder, valid or damaged. A Hugging Face model has a config.json."""
    return (Path(source) / MANIFEST_FILE).is_file() and not (Path(source) / "config.json").exists()


def seed_folder() -> Path:
    """Return the folder of the bundle that ships, in a checkout or an installed wheel.

    Raises:
        InvalidBundle: there is none, or more than one.
    """
    package = Path(__file__).resolve().parent
    return only_bundle([package / "models", package.parent / "models"])


def companies_trained_on(bundle_folder: Path) -> Path | None:
    """Return the path of a bundle's list of training companies; None if the bundle has no list."""
    path = trained_on_path(bundle_folder)
    return path if path.is_file() else None


def trained_on_path(bundle_folder: Path) -> Path:
    """Return the path `<folder>.trained-on.txt`, to which training.export writes the ids of the training companies.

    The list is not inside the folder, because a bundle may contain only the files in its manifest.
    """
    folder = bundle_folder.resolve()
    return folder.with_name(f"{folder.name}.trained-on.txt")


def only_bundle(stores: list[Path]) -> Path:
    """Return the only bundle folder in the first of `stores` that contains a bundle.

    Raises:
        InvalidBundle: no store contains a bundle, or this store contains several.
    """
    for store in stores:
        folders = sorted(manifest.parent for manifest in store.glob(f"*/{MANIFEST_FILE}"))
        if len(folders) > 1:
            names = ", ".join(folder.name for folder in folders)
            raise InvalidBundle(f"{store} contains several bundles ({names}); name the folder of the one to use")
        if folders:
            return folders[0]
    raise InvalidBundle(
        "no model bundle ships with this installation; install the wheel or clone the whole repository, or make one "
        "with 'python -m training.export --output models'"
    )


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        if folder == Path(FORMER_NAME):
            raise InvalidBundle(
                f"the name {FORMER_NAME!r} is gone: the bundle that ships reads these languages; leave --bundle out. "
                "An older index changes to it with: similarity generations reembed"
            )
        raise InvalidBundle(f"{folder} is not a folder; give the folder that contains {MANIFEST_FILE}")
    # Check this before the entries: in a folder of bundles these are bundles, which nobody should be told to remove.
    if not (folder / MANIFEST_FILE).is_file():
        bundles = sorted(folder.glob(f"*/{MANIFEST_FILE}"))
        hint = (
            f"did you mean {bundles[0].parent}?" if bundles else "give a folder written by 'python -m training.export'"
        )
        raise InvalidBundle(f"{folder} is no bundle, because {MANIFEST_FILE} is missing; {hint}")
    for entry in folder.iterdir():
        if entry.is_symlink():
            raise InvalidBundle(f"{entry} is a link; copy the file itself into the bundle")
        if not entry.is_file():
            raise InvalidBundle(f"{entry} is not a plain file; a bundle contains files only, remove it")


def _read_manifest(path: Path) -> tuple[Manifest, dict[str, str]]:
    if path.stat().st_size > _MAX_MANIFEST_BYTES:
        raise InvalidBundle(f"{path} has more than {_MAX_MANIFEST_BYTES:,} bytes; export the bundle again")
    try:
        return manifest_from_json(read_json(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant))
    except ValueError as error:
        raise InvalidBundle(f"{path}: {error}; export the bundle again") from None


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _check_file_list(folder: Path, sha256: dict[str, str]) -> None:
    unknown = sorted(set(sha256) - set(_KNOWN_FILES))
    if unknown:
        raise InvalidBundle(
            f"{folder / MANIFEST_FILE} lists {unknown[0]!r:.120}; a bundle's files are {', '.join(_KNOWN_FILES)}"
        )
    present = {entry.name for entry in folder.iterdir()} - {MANIFEST_FILE}
    missing = sorted((set(_REQUIRED_FILES) | set(sha256)) - present)
    if missing:
        raise InvalidBundle(f"{folder / missing[0]} is missing; fetch or export the bundle again")
    unlisted = sorted(present - set(sha256))
    if unlisted:
        raise InvalidBundle(
            f"{folder / unlisted[0]} is not listed in {MANIFEST_FILE}; a bundle contains only listed files (external "
            "ONNX data is not accepted), so remove it or export the bundle again"
        )


def _id_of(content: dict[str, object]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:_ID_LENGTH]
