"""What a training run says about its model: the `training.json` that it writes beside the weights."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from similarity.bundle import ModelBundle
from similarity.errors import InvalidInput
from training.config import DISTILLATION, SENTENCE_METHODS, TrainSettings, settings_from
from training.restore import is_bundle
from training.train import SETTINGS_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """One run: its settings, the step whose model was kept, and that step's selection scores.

    `selection_anchors` is how many anchors chose the step, None where the run did not say.
    `earlier` is the run whose model this one began with, or `bundle` the bundle; `teachers` are the encoders
    that it learnt from.
    """

    settings: TrainSettings
    step: int
    scores: Mapping[str, float]
    selection_anchors: int | None = None
    earlier: "TrainedRun | None" = None
    bundle: ModelBundle | None = None
    teachers: tuple[str, ...] = ()

    @property
    def base_model(self) -> str:
        """What the first of the runs began with: an id, or a folder's own name without its path."""
        if self.earlier is not None:
            return self.earlier.base_model
        if self.bundle is not None:
            return self.bundle.manifest.base_model
        source = self.settings.source
        return Path(source).resolve().name if Path(source).is_dir() else source

    @property
    def first_bundle(self) -> ModelBundle | None:
        """The bundle that the first of the runs began with."""
        return self.earlier.first_bundle if self.earlier is not None else self.bundle

    @property
    def method(self) -> str:
        """One sentence on how it was trained, the earlier runs first."""
        settings = self.settings
        length = f"{settings.steps:,} steps" if settings.steps else f"{settings.epochs:g} epochs"
        if settings.method in SENTENCE_METHODS:
            data = ["on sentences of descriptions, without labels", f"{settings.batch_sentences} sentences"]
        elif settings.method == DISTILLATION:
            data = [f"of {' and '.join(self.teachers)}", f"{settings.batch_texts} texts"]
        else:
            data = [f"on {settings.label_share:.0%} of the labels", f"{settings.batch_pairs} pairs"]
        words = [
            f"{settings.method} {data[0]}",
            f"{length} of batches of {data[1]}",
            f"learning rate {settings.learning_rate:g}",
            *([f"{settings.frozen_layers} lowest layers frozen"] if settings.frozen_layers else []),
            f"at most {settings.max_tokens} tokens",
            f"seed {settings.seed}",
            f"step {self.step:,} chosen by the selection score",
        ]
        return self._before() + ", ".join(words)

    def _before(self) -> str:
        if self.earlier is not None:
            return f"{self.earlier.method}; then "
        if self.bundle is not None:
            return f"began with bundle {self.bundle.encoder_id}, whose card says what it learnt from; then "
        return ""

    def metrics(self) -> dict[str, float]:
        """The selection scores, for a manifest."""
        scores = {f"selection_{name}": score for name, score in self.scores.items() if math.isfinite(score)}
        return {"selection_step": self.step, **scores}


def read_run(folder: Path) -> TrainedRun | None:
    """The run that wrote the model in `folder`, or None if no run of ours did.

    Raises:
        InvalidInput: its training.json is not what a run writes.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        settings = settings_from(told["settings"])
        source = Path(settings.source)
        return TrainedRun(
            settings=settings,
            step=int(told["step"]),
            scores={str(name): float(score) for name, score in told["scores"].items()},
            selection_anchors=told.get("selection_anchors"),
            teachers=tuple(map(str, told.get("teachers", ()))),
            earlier=read_run(source) if source.resolve() != folder.resolve() else None,
            bundle=ModelBundle.load(source) if is_bundle(source) else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(
            f"{path} is not what a training run writes ({error}); export the folder 'best' of a run, or remove the "
            "file to export the weights without its facts"
        ) from error
