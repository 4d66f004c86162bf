"""Training on sentences of descriptions, without labels: QuickThoughts with two variants, and IS-BERT.

python -m training.papers.sentences --method is-bert --companies companies.jsonl --output runs/sentences
python -m training.papers.sentences ... --pairs pairs.csv     # select the checkpoint on labelled pairs
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
from training.data.pairs import read_pairs
from training.data.selection import Select, Selection
from training.data.texts import Texts
from training.evaluate.encoding import Encode
from training.evaluate.judged import read_descriptions
from training.evaluate.ranks import auc
from training.losses.anchor_losses import sample_entries
from training.losses.methods import Log, step_random
from training.model.pair_model import PairModel, load_base_transformer, mean_over_tokens
from training.model.weights import weights_source
from training.options import SEVERAL, add_settings, settings_of
from training.papers.paper_losses import altered_targets, block_loss, is_bert, quick_thoughts
from training.papers.sentence_batches import SentenceBatch, SentenceBatches, neighbours, sentences
from training.papers.sentence_models import TokenEncoder, TwoEncoders, load_convolutions, new_convolutions
from training.run.task import Task, digest
from training.train import run

QUICK_THOUGHTS = ("quick-thoughts", "quick-thoughts-block", "quick-thoughts-altered")
METHODS = (*QUICK_THOUGHTS, "is-bert")
SELECTION_DESCRIPTIONS = 100
MIN_SELECTION = 2  # the selection compares sentences of different descriptions
# The settings of the papers. Options of the command line take precedence.
RECIPES: Mapping[str, Mapping[str, Any]] = {
    **{name: {"batch_sentences": 400, "learning_rate": 5e-4} for name in QUICK_THOUGHTS},
    "is-bert": {"batch_sentences": 32, "learning_rate": 1e-6, "final_learning_rate": 0.0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSettings(TrainSettings):
    """The settings of a run on sentences.

    Raises:
        InvalidInput: a value is out of its range; the message says which are allowed.
    """

    method: str = METHODS[0]  # one of METHODS
    context: int = 1  # maximum distance of two neighbours, in sentences
    windows: Literal["1,3,5", "3,5,7"] = "1,3,5"  # widths of IS-BERT's convolutions, in tokens; 3,5,7 for long texts
    batch_sentences: int = 400

    def __post_init__(self) -> None:
        TrainSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.method not in METHODS:
            raise InvalidInput(f"method is {self.method!r}; choose one of {', '.join(METHODS)}")
        for name, minimum in (("context", 1), ("batch_sentences", 4)):
            if getattr(self, name) < minimum:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be {minimum} or more")


class SentenceTask(Task):
    """Training on sentences of descriptions.

    `selection`: number of descriptions that are held out for checkpoint selection. `select`: another checkpoint
    selection, such as one on labelled pairs; then no description is held out.

    Raises:
        InvalidInput: too few descriptions have two sentences.
    """

    unit = "sentences"

    def __init__(
        self, settings: SentenceSettings, descriptions: Sequence[str], *, selection: int, select: Select | None = None
    ) -> None:
        self.settings = settings
        held_out: set[int] = set() if select else _held_out(descriptions, selection, seed=settings.seed)
        self.select = select or NeighbourSelection([descriptions[number] for number in sorted(held_out)])
        training = [text for number, text in enumerate(descriptions) if number not in held_out]
        batches = SentenceBatches(training, batch_sentences=settings.batch_sentences, seed=settings.seed)
        self.batches = batches
        self.texts = Texts(batches.texts, settings.source, max_tokens=settings.max_tokens)
        self.fingerprint = digest(batches.texts, (batches.documents, batches.positions))
        self.data = f"{len(batches.texts):,} sentences of {len(np.unique(batches.documents)):,} descriptions"
        self.batch = f"about {settings.batch_sentences} sentences"

    def load_model(self, settings: TrainSettings) -> PairModel:
        """Return the model of the method: two encoders for QuickThoughts, an encoder with convolutions for IS-BERT.

        The convolutions are read from the folder of the weights. If it has none, they are initialised randomly with
        the seed.
        """
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
        """Return the loss of a batch by the method, and the number of its sentences for the log (see `Task.loss`)."""
        method, context = self.settings.method, self.settings.context
        if method == "is-bert":
            lengths = torch.from_numpy(self.texts.lengths[batch.texts]).to(outputs.device)
            mask = torch.arange(outputs.shape[1], device=outputs.device) < lengths[:, None]
            value = is_bert(outputs, mask, mean_over_tokens(outputs, mask))
        else:
            left, right = outputs.chunk(2, dim=1)
            documents = torch.from_numpy(batch.documents).to(outputs.device)
            positions = torch.from_numpy(batch.positions).to(outputs.device)
            positives, negatives = neighbours(documents, positions, context=context)
            if method == "quick-thoughts-block":
                # The number of neighbours of a sentence that is not near an end of its text.
                sampled = sample_entries(negatives, 2 * context, step_random(self.settings, step))
                value = block_loss(left, right, positives, sampled)
            else:
                loss = quick_thoughts if method == "quick-thoughts" else altered_targets
                value = loss(left, right, positives, negatives)
        return value, {"sentences": float(len(batch))}


def _held_out(descriptions: Sequence[str], selection: int, *, seed: int) -> set[int]:
    """Return the indices of `selection` random descriptions with at least two sentences."""
    usable = [number for number, text in enumerate(descriptions) if len(sentences(text)) > 1]
    if len(usable) <= MIN_SELECTION:
        raise InvalidInput(
            f"{len(usable)} of {len(descriptions)} descriptions have two or more sentences; at least "
            f"{MIN_SELECTION + 1} are needed: {MIN_SELECTION} for checkpoint selection and one for training"
        )
    if not MIN_SELECTION <= selection < len(usable):
        raise InvalidInput(
            f"{selection} of {len(usable)} descriptions with two sentences cannot be held out for checkpoint "
            f"selection; pass --selection {MIN_SELECTION} to {len(usable) - 1}"
        )
    return set(np.random.default_rng(seed).choice(usable, selection, replace=False).tolist())


class NeighbourSelection:
    """Checkpoint selection by an AUC: adjacent sentences against pairs of sentences of different descriptions.

    `adjacent` and `compared` bool `[sentences, sentences]`: the positive pairs, and all pairs in the AUC.
    """

    def __init__(self, descriptions: Sequence[str]) -> None:
        sentences_of = [sentences(text) for text in descriptions]
        self.sentences = [sentence for group in sentences_of for sentence in group]
        documents = np.repeat(np.arange(len(sentences_of)), [len(group) for group in sentences_of])
        number = np.arange(len(self.sentences))
        upper = number[:, None] < number  # each pair once
        same_document = documents[:, None] == documents
        self.adjacent: NDArray[np.bool_] = upper & same_document & (number - number[:, None] == 1)
        self.compared: NDArray[np.bool_] = self.adjacent | (upper & ~same_document)

    def __call__(self, encode: Encode) -> dict[str, float]:
        """Return the AUC of an encoder."""
        vectors = encode(self.sentences)
        return {"neighbour_auc": auc((vectors @ vectors.T)[self.compared], self.adjacent[self.compared])}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and the descriptions, and train."""
    parser = argparse.ArgumentParser(
        description=f"Train an encoder on sentences of descriptions, without labels, by --method {', '.join(METHODS)}.",
        epilog="Afterwards: python -m training.papers.export --model OUTPUT/best --output bundles",
    )
    add = parser.add_argument
    add("--companies", type=Path, required=True, help="JSONL of companies, or .txt with one description per line")
    add(
        "--pairs",
        type=Path,
        **SEVERAL,
        help="labelled pairs of these companies, for checkpoint selection",
    )
    add("--output", type=Path, required=True, help="folder of this run; a killed run continues from it")
    add(
        "--selection",
        type=int,
        help=f"descriptions held out for checkpoint selection (default: {SELECTION_DESCRIPTIONS}); not with --pairs",
    )
    add_settings(parser, SentenceSettings)
    options = parser.parse_args(arguments)
    if options.pairs and options.selection is not None:
        parser.error("--selection is not used with --pairs, which select the checkpoint; omit one of them")
    with refusing():
        settings = settings_of(options, SentenceSettings, RECIPES.get(getattr(options, "method", METHODS[0])))
        select = Selection(read_pairs(options.pairs, companies=options.companies)) if options.pairs else None
        selection = SELECTION_DESCRIPTIONS if options.selection is None else options.selection
        task = SentenceTask(settings, read_descriptions(options.companies), selection=selection, select=select)
        run(settings, lambda _processes: task, output=options.output)


if __name__ == "__main__":
    main()
