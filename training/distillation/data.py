"""What distillation learns from: texts, and where teachers put them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.text import DEFAULT_SETTINGS
from training.config import TrainSettings
from training.data.selection import Select
from training.data.texts import Texts
from training.distillation.neighbour_batches import NeighbourBatches
from training.distillation.targets import Taught

REPORT_EVERY = 4_096
FOLDER = "teachers"

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilData:
    """`texts` numbered as those of `taught`, which says how near they are to each other.

    `names` are the texts themselves, `select` and `selection_anchors` are those of TrainingData, `teachers` say who
    they are, and `trained_on` which companies their bundles' lists name.
    """

    names: tuple[str, ...]
    texts: Texts
    taught: Taught
    batches: NeighbourBatches
    select: Select
    selection_anchors: int
    teachers: tuple[str, ...]
    trained_on: tuple[str, ...] = ()


def prepare_distillation(
    texts: Sequence[str],
    taught: Taught,
    settings: TrainSettings,
    *,
    select: Select,
    selection_anchors: int,
    teachers: Sequence[str],
    trained_on: Collection[str] = (),
) -> DistilData:
    """Batches of neighbours among the texts, which must differ from each other.

    Raises:
        InvalidInput: as NeighbourBatches.
    """
    return DistilData(
        names=tuple(texts),
        texts=Texts(texts, settings.source, max_tokens=settings.max_tokens),
        taught=taught,
        batches=NeighbourBatches(taught, batch_texts=settings.batch_texts, seed=settings.seed),
        select=select,
        selection_anchors=selection_anchors,
        teachers=tuple(teachers),
        trained_on=tuple(sorted(trained_on)),
    )


def load_teachers(folders: Sequence[Path]) -> list[TextEncoder]:
    """The encoders of some bundles.

    Raises:
        InvalidInput: one prepares texts in another way than we do.
        SimilarityError: a folder holds no bundle.
    """
    encoders = [TextEncoder(ModelBundle.load(folder)) for folder in folders]
    for folder, encoder in zip(folders, encoders, strict=True):
        if encoder.text_settings != DEFAULT_SETTINGS:
            raise InvalidInput(f"the teacher in {folder} prepares texts in another way; export it anew")
    return encoders


def joint_vectors(teachers: Sequence[TextEncoder], texts: Sequence[str], *, log: Log) -> NDArray[np.float32]:
    """The teachers' unit vectors side by side, unit again, float32 `[texts, sum of dimensions]`."""
    parts = []
    for teacher in teachers:
        due = REPORT_EVERY

        def report(done: int, total: int, *, name: str = teacher.encoder_id) -> None:
            nonlocal due
            if done >= due or done == total:
                log(f"teacher {name}: {done:,} of {total:,} texts")
                due = done + REPORT_EVERY

        parts.append(teacher.encode(texts, progress=report))
    return np.concatenate(parts, axis=1) / np.float32(np.sqrt(len(parts)))
