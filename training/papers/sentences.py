"""Trains on sentences of descriptions, without labels: QuickThoughts and its variants, IS-BERT.

python -m training.papers.sentences --method is-bert --companies companies.jsonl --output runs/sentences
python -m training.papers.sentences ... --pairs pairs.csv     # labelled pairs choose the best step
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from similarity.errors import InvalidInput
from training.config import TrainSettings
from training.console import refusing
from training.data.descriptions import read_descriptions
from training.data.pairs import read_pairs
from training.data.selection import Select, Selection
from training.data.texts import Texts
from training.evaluate.encoding import Encode
from training.evaluate.ranks import auc
from training.losses.objectives import Log, step_random
from training.losses.supervised_contrastive import sample_entries
from training.model.pair_model import PairModel, load_base_transformer, mean_over_tokens
from training.model.weights import weights_source
from training.options import add_settings, settings_of
from training.papers.convolutions import load_convolutions, new_convolutions
from training.papers.losses.altered_targets import altered_targets
from training.papers.losses.block import block_loss
from training.papers.losses.is_bert import is_bert
from training.papers.losses.quick_thoughts import quick_thoughts
from training.papers.neighbours import neighbours
from training.papers.sentence_batches import SentenceBatch, SentenceBatches, sentences
from training.papers.sentence_models import TokenEncoder, TwoEncoders
from training.run.task import Task, digest
from training.train import run

METHODS = ("quick-thoughts", "quick-thoughts-block", "quick-thoughts-altered", "is-bert")
# The papers' settings; an option that is given wins.
RECIPES: Mapping[str, Mapping[str, Any]] = {
    **{name: {"batch_sentences": 400, "learning_rate": 5e-4} for name in METHODS[:3]},
    "is-bert": {"batch_sentences": 32, "learning_rate": 1e-6, "final_learning_rate": 0.0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSettings(TrainSettings):
    """One run on sentences.

    Raises:
        InvalidInput: a value is out of its range; the message says which are allowed.
    """

    method: str = METHODS[0]
    context: int = 1  # neighbours are at most this many sentences apart
    windows: Literal["1,3,5", "3,5,7"] = "1,3,5"  # of IS-BERT's convolutions, in tokens; 3,5,7 for long texts
    batch_sentences: int = 400

    def __post_init__(self) -> None:
        TrainSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.method not in METHODS:
            raise InvalidInput(f"method is {self.method!r}; choose one of {', '.join(METHODS)}")
        if self.windows not in ("1,3,5", "3,5,7"):
            raise InvalidInput(f"windows is {self.windows!r}; choose 1,3,5 or 3,5,7")
        for name, least in (("context", 1), ("batch_sentences", 4)):
            if getattr(self, name) < least:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be {least} or more")


class SentenceTask(Task[SentenceBatch]):
    """Sentences of descriptions; `selection` descriptions are held out for checkpoint selection.

    With a `select` of its own, such as one of labelled pairs, it learns from all descriptions.

    Raises:
        InvalidInput: too few descriptions have two sentences.
    """

    unit = "sentences"

    def __init__(
        self,
        settings: SentenceSettings,
        descriptions: Sequence[str],
        *,
        selection: int,
        select: Select | None = None,
    ) -> None:
        self.settings = settings
        held_out: set[int] = set() if select else _held_out(descriptions, selection, seed=settings.seed)
        self.select = select or NeighbourSelection([descriptions[number] for number in sorted(held_out)])
        learnt = [text for number, text in enumerate(descriptions) if number not in held_out]
        batches = SentenceBatches(learnt, batch_sentences=settings.batch_sentences, seed=settings.seed)
        self.batches = batches
        self.texts = Texts(batches.texts, settings.source, max_tokens=settings.max_tokens)
        self.fingerprint = digest(batches.texts, (batches.documents, batches.positions))
        self.data = f"{len(batches.texts):,} sentences of {len(np.unique(batches.documents)):,} descriptions"
        self.batch = f"about {settings.batch_sentences} sentences"

    def load_model(self, settings: TrainSettings) -> PairModel:
        """IS-BERT's encoder with the convolutions of the folder, else new ones; or QuickThoughts' two encoders."""
        folder = weights_source(settings.source)
        transformer = load_base_transformer(folder)
        if self.settings.method != "is-bert":
            return TwoEncoders(transformer, frozen_layers=settings.frozen_layers)
        convolutions = load_convolutions(Path(folder)) or new_convolutions(
            int(transformer.config.hidden_size),
            windows=[int(window) for window in self.settings.windows.split(",")],
            seed=settings.seed,
        )
        return TokenEncoder(
            transformer, convolutions, max_tokens=settings.max_tokens, frozen_layers=settings.frozen_layers
        )

    def loss(
        self, model: PairModel, outputs: Tensor, batch: SentenceBatch, *, step: int, steps: int
    ) -> tuple[Tensor, Log]:
        """See Task."""
        if self.settings.method == "is-bert":
            value = self._of_tokens(outputs, batch)
        else:
            value = self._of_neighbours(outputs, batch, step)
        return value, {"sentences": float(len(batch))}

    def _of_tokens(self, outputs: Tensor, batch: SentenceBatch) -> Tensor:
        lengths = torch.from_numpy(self.texts.lengths[batch.texts]).to(outputs.device)
        mask = torch.arange(outputs.shape[1], device=outputs.device) < lengths[:, None]
        return is_bert(outputs, mask, mean_over_tokens(outputs, mask))

    def _of_neighbours(self, outputs: Tensor, batch: SentenceBatch, step: int) -> Tensor:
        left, right = outputs.chunk(2, dim=1)
        documents, positions = (torch.from_numpy(of).to(outputs.device) for of in (batch.documents, batch.positions))
        near = neighbours(documents, positions, context=self.settings.context)
        if self.settings.method == "quick-thoughts":
            return quick_thoughts(left, right, near.positives, near.negatives)
        if self.settings.method == "quick-thoughts-altered":
            return altered_targets(left, right, near.positives, near.negatives)
        # Blocks of equal size: as many others as a sentence has neighbours on both sides.
        others = sample_entries(near.negatives, 2 * self.settings.context, step_random(self.settings, step))
        return block_loss(left, right, near.positives, others)


def _held_out(descriptions: Sequence[str], selection: int, *, seed: int) -> set[int]:
    several = [number for number, text in enumerate(descriptions) if len(sentences(text)) > 1]
    if not 1 < selection < len(several):
        raise InvalidInput(
            f"{selection} of {len(several)} descriptions with two sentences cannot be held out for selection; "
            f"give 2 to {max(2, len(several) - 1)}"
        )
    return set(np.random.default_rng(seed).choice(several, selection, replace=False).tolist())


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


def read_task(options: argparse.Namespace, settings: SentenceSettings) -> SentenceTask:
    """The task of the files named on the command line."""
    pairs = read_pairs(options.pairs, companies=options.companies) if options.pairs else None
    return SentenceTask(
        settings,
        read_descriptions(options.companies),
        selection=options.selection,
        select=Selection(pairs) if pairs else None,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read descriptions and settings, and train."""
    parser = argparse.ArgumentParser(
        description="Train an encoder on sentences of descriptions, without labels.",
        epilog="Afterwards: python -m training.papers.export --model OUTPUT/best --output bundles",
    )
    add = parser.add_argument
    add("--companies", type=Path, required=True, help="JSONL of companies, or .txt with a description a line")
    add("--pairs", type=Path, nargs="+", help="labelled pairs of these companies, for checkpoint selection")
    add("--output", type=Path, required=True, help="folder of this run; a killed run continues there")
    add("--selection", type=int, default=100, help="descriptions held out for checkpoint selection (100)")
    add_settings(parser, SentenceSettings)
    options = parser.parse_args(arguments)
    with refusing():
        settings = settings_of(options, SentenceSettings, RECIPES.get(getattr(options, "method", METHODS[0])))
        run(settings, lambda _processes, _log: read_task(options, settings), output=options.output)


if __name__ == "__main__":
    main()
