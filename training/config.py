"""All settings of a training run: plain values, checked when they are made, saved with every checkpoint."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from similarity.bundle import ModelBundle, is_bundle, seed_folder
from similarity.errors import InvalidInput

Precision = Literal["auto", "float32", "bfloat16"]
Features = Literal["u,v,|u-v|,u*v", "u,v,|u-v|"]
Correction = Literal["non-negative", "clamped", "none"]
Order = Literal["auto", "composition", "anchors"]

# The method of training.distil, and the settings that only it has.
DISTILLATION = "distillation"
_OF_DISTILLATION = ("batch_texts", "scale_weight")

# The paper's encoders, and the one whose weights come with a Python package.
PRESETS: Mapping[str, str] = {
    "pause-base": "google-bert/bert-base-uncased",
    "pause-small": "google/bert_uncased_L-2_H-128_A-2",
    "minilm-l6": "sentence-transformers/all-MiniLM-L6-v2",
}

# Default seed of a run. It draws the held-out anchors: evaluation and calibration need the same seed to find them.
SEED = 1
# Begins with the bundle that ships with this code instead of a base model.
SHIPPED = "shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """The settings of one run; defaults are the paper's (section 4) unless a comment says otherwise.

    Raises:
        InvalidInput: a value is out of its range; the message says which are allowed.
    """

    # Model
    model: str = "minilm-l6"  # a preset, a Hugging Face id, a folder, a bundle, or a package that ships one
    max_tokens: int = 128  # of the public code; where training begins with a bundle, those of the bundle
    features: Features = "u,v,|u-v|,u*v"
    symmetric: bool = True  # mean of both orders; False for NLI, which is directed
    frozen_layers: int = 0  # lowest layers that stay as they are; their states are computed once
    # Loss
    method: str = "pause"  # see training.losses.objectives
    priors: tuple[float, ...] = ()  # positive share of each class among the unlabelled pairs; () = of the labelled ones
    alpha: float = 3.0  # exponent of the annealing; 0 = constant weight
    unlabelled_weight: float = 1.0  # that the annealing ends at
    correction: Correction = "non-negative"
    contrastive_weight: float = 0.3  # lambda, the share of the second loss of two
    temperature: float = 0.05  # of the listwise loss and of distillation
    scale: float = 20.0  # of the cosines of the in-batch loss
    contrastive_temperature: float = 1.0  # of the supervised contrastive loss, on products that are not normalised
    positives: int = 0  # an anchor's, in the supervised contrastive loss; 0 = all
    negatives: int = 0
    # Data
    label_share: float = 1.0  # of the labels; the others are hidden
    labelled_share: float | None = None  # of a batch; None = the data's own composition
    labelled_copies: int = 1  # 2 = dropout labels
    order: Order = "auto"  # of pairs in batches; auto = as the method needs it
    batch_pairs: int = 128
    # Texts (distillation)
    batch_texts: int = 128
    scale_weight: float = 0.1  # of how far the cosines are from the teachers', beside their order
    # Optimisation
    epochs: float = 2.0
    steps: int | None = None  # instead of epochs
    learning_rate: float = 7.5e-5
    final_learning_rate: float = 5e-6  # of the public code
    head_learning_rate: float | None = None  # None = learning_rate; the head alone starts from nothing
    warmup: float = 0.1  # share of the steps
    weight_decay: float = 0.0
    clip_norm: float = 1.0  # longest gradient; 0 = any
    micro_tokens: int = 16_384  # of a batch that are kept in memory; more are encoded twice, with the same gradients
    precision: Precision = "auto"
    compile: bool = False
    # Run
    seed: int = SEED
    evaluate_every: int = 100  # steps
    checkpoint_every: int = 500  # steps; 0 = never

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in get_args(choices):
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(get_args(choices))}")
        for name, low in _LEAST.items():
            if not getattr(self, name) >= low:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be {low} or more")
        for name in ("label_share", "warmup", "contrastive_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        for name in ("label_share", "epochs", "learning_rate", "temperature", "scale", "contrastive_temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be above 0")
        if self.steps is not None and self.steps < 1:
            raise InvalidInput(f"steps is {self.steps}; it must be 1 or more, or left out")
        if self.head_learning_rate is not None and not self.head_learning_rate > 0:
            raise InvalidInput(f"head_learning_rate is {self.head_learning_rate}; it must be above 0")
        if self.labelled_share is not None and not 0 < self.labelled_share < 1:
            raise InvalidInput(f"labelled_share is {self.labelled_share}; it must lie between 0 and 1")

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Settings from JSON values; an unknown name is an error, not a default.

        Raises:
            InvalidInput: an unknown name, or a value out of its range.
        """
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise InvalidInput(f"unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
        read: dict[str, Any] = {name: tuple(value) if name == "priors" else value for name, value in values.items()}
        return cls(**read)

    @property
    def source(self) -> str:
        """The model that a preset stands for, the folder of the shipped bundle, or `model` itself.

        Raises:
            InvalidBundle: no bundle ships with this installation.
        """
        return str(seed_folder()) if self.model == SHIPPED else PRESETS.get(self.model, self.model)

    @property
    def tokens_of_start(self) -> int:
        """The longest text in tokens: that of the bundle that training begins with, else `max_tokens`.

        Raises:
            InvalidBundle: it cannot be read.
        """
        return ModelBundle.load(self.source).manifest.max_tokens if is_bundle(self.source) else self.max_tokens


_CHOICES = {"precision": Precision, "features": Features, "correction": Correction, "order": Order}
_LEAST: Mapping[str, float] = {
    "max_tokens": 3,
    "frozen_layers": 0,
    "alpha": 0,
    "unlabelled_weight": 0,
    "positives": 0,
    "negatives": 0,
    "labelled_copies": 1,
    "batch_pairs": 2,
    "batch_texts": 2,
    "scale_weight": 0,
    "final_learning_rate": 0,
    "weight_decay": 0,
    "clip_norm": 0,
    "micro_tokens": 1,
    "evaluate_every": 1,
    "checkpoint_every": 0,
}


def settings_values(settings: TrainSettings) -> dict[str, Any]:
    """The values that `TrainSettings.from_values` reads; those of distillation only where it is the method."""
    unused = () if settings.method == DISTILLATION else _OF_DISTILLATION
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(settings).items()
        if name not in unused
    }
