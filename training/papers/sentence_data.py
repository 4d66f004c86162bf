"""From descriptions to what a run on sentences trains on (QuickThoughts, IS-BERT): no pair, no label."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.text import DEFAULT_SETTINGS, TextSettings, embedding_text
from training.config import TrainSettings
from training.data.selection import Select
from training.data.texts import Texts
from training.evaluate.encoding import Encode
from training.evaluate.judged import read_companies
from training.evaluate.ranks import auc
from training.papers.sentence_batches import SentenceBatches, sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceData:
    """`batches` of sentences to train on, their tokenised `texts`, and `select` as in TrainingData."""

    batches: SentenceBatches
    texts: Texts
    select: Select


def read_descriptions(path: Path, *, text_settings: TextSettings = DEFAULT_SETTINGS) -> tuple[str, ...]:
    """One text per company of a JSONL file, prepared as it will be served; or the lines of a .txt file.

    Raises:
        InvalidInput: no such file, or it holds something else.
    """
    if path.suffix != ".txt":
        return tuple(embedding_text(company, text_settings) for company in read_companies(path))
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}; give UTF-8 text, a line for each description") from error
    return tuple(line for line in lines if line.strip())


def prepare_sentences(
    descriptions: Sequence[str], settings: TrainSettings, *, selection: int, select: Select | None = None
) -> SentenceData:
    """Sentences of the descriptions, without `selection` of them, by which the best step is chosen.

    With a `select` of your own, labelled pairs perhaps, all descriptions are trained on.

    Raises:
        InvalidInput: too few descriptions have two sentences.
    """
    train = list(descriptions)
    if select is None:
        several = [number for number, text in enumerate(descriptions) if len(sentences(text)) > 1]
        if not 1 < selection < len(several):
            raise InvalidInput(
                f"{selection} of {len(several)} descriptions with two sentences cannot be kept for selection; "
                f"give 2 to {max(2, len(several) - 1)}"
            )
        kept = set(np.random.default_rng(settings.seed).choice(several, selection, replace=False).tolist())
        train = [text for number, text in enumerate(descriptions) if number not in kept]
        select = NeighbourSelection([descriptions[number] for number in sorted(kept)])
    batches = SentenceBatches(train, batch_sentences=settings.batch_sentences, seed=settings.seed)
    texts = Texts(batches.texts, settings.source, max_tokens=settings.max_tokens)
    return SentenceData(batches=batches, texts=texts, select=select)


class NeighbourSelection:
    """How well cosines tell adjacent sentences of a description from sentences of two: AUC."""

    def __init__(self, descriptions: Sequence[str]) -> None:
        split = [sentences(text) for text in descriptions]
        self.sentences = [sentence for found in split for sentence in found]
        documents = np.repeat(np.arange(len(split)), [len(found) for found in split])
        place = np.arange(len(self.sentences))
        upper = place[:, None] < place
        together = documents[:, None] == documents
        self.adjacent: NDArray[np.bool_] = upper & together & (place - place[:, None] == 1)
        self.compared: NDArray[np.bool_] = self.adjacent | (upper & ~together)

    def __call__(self, encode: Encode) -> dict[str, float]:
        """The score of an encoder."""
        vectors = encode(self.sentences)
        return {"neighbour_auc": auc((vectors @ vectors.T)[self.compared], self.adjacent[self.compared])}
