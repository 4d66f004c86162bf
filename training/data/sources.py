"""Which files a training run reads, by what its method learns from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training.config import SENTENCE_METHODS, TrainSettings
from training.data.labels import COMPETITOR_CLASSES, GradeOne
from training.data.pairs import Pairs, read_pairs
from training.data.selection import Selection, TrainingData, prepare
from training.papers.sentence_data import SentenceData, prepare_sentences, read_descriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Files of a run: pairs (several files are read as one), and the companies that they name.

    `selection` anchors or descriptions choose the best step. `classes` are those of the labels, the one
    of the most alike texts first.
    """

    pairs: Sequence[Path] | None
    companies: Path | None
    selection: int
    grade_one: GradeOne = "negative"
    classes: Sequence[str] | None = None


def read_sources(sources: Sources, settings: TrainSettings) -> TrainingData | SentenceData:
    """What the files hold for the method of the settings.

    Raises:
        InvalidInput: a file cannot be used.
        ValueError: a file is missing, or nothing says which class is that of the most alike texts.
    """
    pairs = _labelled_pairs(sources, sources.pairs) if sources.pairs else None
    if settings.method in SENTENCE_METHODS:
        if sources.companies is None:
            raise ValueError(f"{settings.method} learns from descriptions; give them as --companies")
        descriptions = read_descriptions(sources.companies)
        select = Selection(pairs) if pairs else None
        return prepare_sentences(descriptions, settings, selection=sources.selection, select=select)
    if pairs is None:
        raise ValueError(f"{settings.method} learns from pairs; give them as --pairs")
    return prepare(pairs, settings, selection=sources.selection)


def _labelled_pairs(sources: Sources, paths: Sequence[Path]) -> Pairs:
    pairs = read_pairs(paths, companies=sources.companies, grade_one=sources.grade_one, classes=sources.classes)
    if sources.classes is None and pairs.classes[0] != COMPETITOR_CLASSES[0]:
        raise ValueError(
            f"which of the classes {', '.join(pairs.classes)} has the most alike texts? Name all of them with "
            "--classes, this one first: the best step is the one at which its pairs have the highest cosines"
        )
    return pairs
