"""All settings of a training run: plain values, validated by the constructor and saved with every checkpoint."""

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

# The method of training.distil, and the settings that only distillation has.
DISTILLATION = "distillation"
_OF_DISTILLATION = ("batch_texts", "scale_weight")

# The paper's encoders, and the one whose weights come with a Python package.
PRESETS: Mapping[str, str] = {
    "pause-base": "google-bert/bert-base-uncased",
    "pause-small": "google/bert_uncased_L-2_H-128_A-2",
    "minilm-l6": "sentence-transformers/all-MiniLM-L6-v2",
}

# Default seed of a run. It selects the held-out anchors, so evaluation and calibration must use the same seed.
SEED = 1
# The value of `model` that stands for the shipped bundle.
SHIPPED = "shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """The settings of one run; defaults are the paper's (section 4) unless a comment says otherwise.

    Raises:
        InvalidInput: a value is out of its range; the message says which are allowed.
    """

    # Model
    model: str = "minilm-l6"  # not the paper's; a preset, Hugging Face id, folder, bundle, or package with a model
    max_tokens: int = 128  # of the authors' code; if training begins with a bundle, its `max_tokens` is used
    features: Features = "u,v,|u-v|,u*v"
    symmetric: bool = True  # logits are the mean of both orders; False for NLI, which is directed
    frozen_embeddings: bool = False  # token embeddings are not trained, so that tokens not seen keep their meaning
    frozen_layers: int = 0  # number of lowest layers that are not trained; their output is computed once
    # Loss
    method: str = "pause"  # see training.losses.methods
    priors: tuple[float, ...] = ()  # share of each class among the unlabelled pairs; () = its share of the labels
    alpha: float = 3.0  # exponent of the annealing; 0 = constant weight
    unlabelled_weight: float = 1.0  # weight of the PU risk at the last step
    correction: Correction = "non-negative"  # see training.losses.pause
    contrastive_weight: float = 0.3  # lambda: weight of the second loss of two; the first has 1 - lambda
    temperature: float = 0.05  # of the listwise loss and of distillation
    scale: float = 20.0  # factor of the cosines in the in-batch loss
    contrastive_temperature: float = 1.0  # of the supervised contrastive loss, on inner products
    positives: int = 0  # positives per anchor in the supervised contrastive loss; 0 = all
    negatives: int = 0  # negatives per anchor in the supervised contrastive loss; 0 = all
    # Data
    label_share: float = 1.0  # share of the labels that is used; the others are hidden
    labelled_share: float | None = None  # labelled share of a batch; None = the labelled share of the data
    labelled_copies: int = 1  # how often a batch contains a labelled pair; 2 = dropout labels
    order: Order = "auto"  # order of pairs in batches; auto = as the method needs it
    batch_pairs: int = 128
    # Texts (distillation)
    batch_texts: int = 128
    scale_weight: float = 0.1  # weight of the squared difference to the teachers' cosines
    # Optimisation
    epochs: float = 2.0
    steps: int | None = None  # instead of epochs
    learning_rate: float = 7.5e-5
    final_learning_rate: float = 5e-6  # of the authors' code
    head_learning_rate: float | None = None  # None = learning_rate; the head starts from random weights
    warmup: float = 0.1  # share of the steps
    weight_decay: float = 0.0
    clip_norm: float = 1.0  # largest gradient norm; 0 = no clipping
    micro_tokens: int = 16_384  # padded tokens whose graphs are kept; a larger batch is encoded twice (same gradients)
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
        """Return settings from JSON values.

        Raises:
            InvalidInput: a name is unknown, or a value is out of range.
        """
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise InvalidInput(f"unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
        read: dict[str, Any] = {name: tuple(value) if name == "priors" else value for name, value in values.items()}
        return cls(**read)

    @property
    def source(self) -> str:
        """The model id of a preset, the folder of the shipped bundle, or `model` itself.

        Raises:
            InvalidBundle: this installation contains no shipped bundle.
        """
        return str(seed_folder()) if self.model == SHIPPED else PRESETS.get(self.model, self.model)

    @property
    def tokens_of_start(self) -> int:
        """The `max_tokens` of the bundle that training begins with, else of the settings.

        Raises:
            InvalidBundle: the bundle cannot be read.
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
    """Return the values for `TrainSettings.from_values`; settings of distillation only if it is the method.

    `frozen_embeddings` is left out if it is off, so that a run of an earlier release can be continued.
    """
    unused = {
        *(() if settings.method == DISTILLATION else _OF_DISTILLATION),
        *(() if settings.frozen_embeddings else ("frozen_embeddings",)),
    }
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(settings).items()
        if name not in unused
    }
