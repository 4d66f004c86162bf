"""Teacher encoders: their bundles, and their vectors of a corpus, computed once."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.text import DEFAULT_SETTINGS
from training.console import encoding_progress


def load_teachers(folders: Sequence[Path]) -> list[TextEncoder]:
    """Return the encoders of bundles.

    Raises:
        InvalidInput: the text settings of a bundle are not those of training.
        SimilarityError: a folder does not contain a bundle.
    """
    encoders = [TextEncoder(ModelBundle.load(folder)) for folder in folders]
    for folder, encoder in zip(folders, encoders, strict=True):
        if encoder.text_settings != DEFAULT_SETTINGS:
            raise InvalidInput(
                f"the text settings of the teacher {folder} differ from those of training; export it again"
            )
    return encoders


def joint_vectors(teachers: Sequence[TextEncoder], texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the concatenated vectors of all teachers, scaled to unit norm, float32 `[texts, sum of dimensions]`.

    The product of two rows is the mean of the teachers' cosines.
    """
    parts = [teacher.encode(texts, encoding_progress(f"texts (teacher {teacher.encoder_id})")) for teacher in teachers]
    return np.concatenate(parts, axis=1) / np.float32(np.sqrt(len(parts)))


def cached_vectors(teachers: Sequence[TextEncoder], texts: Sequence[str], folder: Path) -> NDArray[np.float32]:
    """Return `joint_vectors`, read from a file in `folder` if they were computed before."""
    digest = hashlib.sha256("\0".join(texts).encode())
    for teacher in teachers:
        digest.update(teacher.encoder_id.encode())
    path = folder / f"{digest.hexdigest()[:16]}.npy"
    if path.is_file():
        cached: NDArray[np.float32] = np.load(path)
        return cached
    vectors = joint_vectors(teachers, texts)
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part.npy")
    np.save(draft, vectors)
    draft.replace(path)
    return vectors
