"""Teacher encoders, and their vectors of a corpus, computed once.

A teacher is a bundle, which onnxruntime runs, or the folder `best` of a run or a Hugging Face folder, which torch runs,
on a GPU if there is one.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from similarity.bundle import ModelBundle, is_bundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.text import DEFAULT_SETTINGS
from training.config import TrainSettings
from training.console import encoding_progress, note
from training.data.texts import Texts
from training.model.encoder import Encoder
from training.model.pair_model import load_pair_model
from training.run.trained_run import listed_companies, read_run

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Teacher:
    """An encoder: `encode` returns unit vectors `[texts, d]`; other weights have another `key`.

    `trained_on`: ids of the companies that it is known to have learnt from.
    """

    name: str
    key: str
    encode: Callable[[Sequence[str]], Vectors]
    trained_on: tuple[str, ...] = ()


def load_teachers(folders: Sequence[Path]) -> list[Teacher]:
    """Return the teachers in `folders`. A folder that is given twice counts twice.

    Raises:
        InvalidInput: a folder has neither a bundle nor a model, or the text settings of a bundle differ from
            the defaults, which training uses.
        SimilarityError: a bundle is damaged.
    """
    return [_of_bundle(folder) if is_bundle(folder) else _of_weights(folder) for folder in folders]


def _of_bundle(folder: Path) -> Teacher:
    bundle = ModelBundle.load(folder)
    if bundle.manifest.text_settings != DEFAULT_SETTINGS:
        raise InvalidInput(f"the text settings of the teacher {folder} differ from those of training; export it again")
    encoder = TextEncoder(bundle)

    def encode(texts: Sequence[str]) -> Vectors:
        return encoder.encode(texts, encoding_progress(f"texts (teacher {encoder.encoder_id})"))

    name = f"{bundle.manifest.base_model} ({encoder.encoder_id})"
    return Teacher(name=name, key=encoder.encoder_id, encode=encode, trained_on=tuple(listed_companies(folder)))


def _of_weights(folder: Path) -> Teacher:
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise InvalidInput(f"the teacher {folder} has neither a manifest.json nor a model.safetensors")
    with weights.open("rb") as file:
        key = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    run = read_run(folder)
    settings = TrainSettings(model=str(folder), max_tokens=run.settings.max_tokens if run else 128)

    def encode(texts: Sequence[str]) -> Vectors:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        note(f"{len(texts):,} texts, encoded by the teacher {folder} on {device.type} ...")
        model = load_pair_model(settings, classes=0)
        return Encoder(model, Texts((), settings.source, max_tokens=settings.max_tokens), settings, device=device)(
            texts
        )

    name = f"{run.start.base_model}, {run.method}" if run else folder.resolve().name
    return Teacher(name=name, key=key, encode=encode, trained_on=run.training_companies if run else ())


def joint_vectors(teachers: Sequence[Teacher], texts: Sequence[str]) -> Vectors:
    """Return the concatenated vectors of all teachers, scaled to unit norm, float32 `[texts, sum of dimensions]`.

    The product of two rows is the mean of the teachers' cosines.
    """
    vectors: dict[str, Vectors] = {}
    for teacher in teachers:
        if teacher.key not in vectors:
            vectors[teacher.key] = teacher.encode(texts)
    joint = np.concatenate([vectors[each.key] for each in teachers], axis=1)
    joint /= np.sqrt(len(teachers))
    return joint


def cached_vectors(teachers: Sequence[Teacher], texts: Sequence[str], folder: Path) -> Vectors:
    """Return `joint_vectors`, read from a file in `folder` if they were computed before."""
    digest = hashlib.sha256("\0".join(texts).encode())
    for teacher in teachers:
        digest.update(teacher.key.encode())
    path = folder / f"{digest.hexdigest()[:16]}.npy"
    if path.is_file():
        cached: Vectors = np.load(path)
        return cached
    vectors = joint_vectors(teachers, texts)
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part.npy")
    np.save(draft, vectors)
    draft.replace(path)
    return vectors
