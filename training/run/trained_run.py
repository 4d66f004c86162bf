"""The facts of a training run about its model and its start: the `training.json` beside the weights."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from similarity.bundle import ModelBundle, is_bundle
from similarity.errors import InvalidBundle, InvalidInput
from similarity.generations.gate import companies_trained_on
from similarity.text import DEFAULT_SETTINGS
from training.config import DISTILLATION, TrainSettings

SETTINGS_FILE = "training.json"
# Settings that only runs on sentences store (training.papers.sentences); such a model is exported like any other.
_OF_SENTENCES = ("context", "windows", "batch_sentences")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The model that a run began with, recorded at its begin, because the folder may change later.

    `base_model` is an id, or a folder's own name without its path. `method` says in words how that was trained
    before, empty where we do not know; `companies` are those that a bundle's list says it was trained on, `licence`
    the one in its manifest.
    """

    base_model: str
    method: str = ""
    companies: tuple[str, ...] = ()
    licence: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values; `read_run` makes a Start of them again."""
        return {**asdict(self), "companies": list(self.companies)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """One run: its settings, the step whose model was kept, and that step's selection scores.

    `start` is what it began with. `selection_anchors` is how many anchors were held out to choose the step, None
    where the run did not say; `teachers` are the encoders that it was distilled from, `teachers_trained_on` the
    companies on their lists; `batch_sentences` is the size of a batch where it learnt from sentences.
    """

    settings: TrainSettings
    step: int
    scores: Mapping[str, float]
    start: Start
    selection_anchors: int | None = None
    teachers: tuple[str, ...] = ()
    teachers_trained_on: tuple[str, ...] = ()
    batch_sentences: int | None = None

    @property
    def companies_before(self) -> tuple[str, ...]:
        """The companies that its start and its teachers were trained on, by the lists beside their bundles."""
        return tuple(sorted({*self.start.companies, *self.teachers_trained_on}))

    @property
    def method(self) -> str:
        """One sentence on how it was trained, the earlier runs first."""
        settings = self.settings
        length = f"{settings.steps:,} steps" if settings.steps else f"{settings.epochs:g} epochs"
        if self.batch_sentences:
            data = ["on sentences of descriptions, without labels", f"{self.batch_sentences} sentences"]
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
        return "; then ".join(filter(None, [self.start.method, ", ".join(words)]))

    def metrics(self) -> dict[str, float]:
        """The selection scores, for a manifest."""
        scores = {f"selection_{name}": score for name, score in self.scores.items() if math.isfinite(score)}
        return {"selection_step": self.step, **scores}


def _start_from(stored: Mapping[str, Any], settings: TrainSettings, folder: Path) -> Start:
    """The recorded start; for runs of older releases, which recorded none, the model that lies there now."""
    if "start" in stored:
        return Start(**{**stored["start"], "companies": tuple(stored["start"]["companies"])})
    source = settings.source
    return start_of(source) if Path(source).resolve() != folder.resolve() else Start(base_model=folder.resolve().name)


def start_of(source: str) -> Start:
    """The start of a run that begins now with `source`: a bundle, the model of an earlier run, or another.

    Raises:
        InvalidBundle: the bundle cannot be read, or prepares texts in another way than training does.
        InvalidInput: the training.json of the earlier run is not what a run writes.
    """
    if is_bundle(source):
        return _start_of_bundle(ModelBundle.load(source))
    earlier = read_run(Path(source))
    if earlier is not None:
        return replace(earlier.start, method=earlier.method, companies=earlier.companies_before)
    return Start(base_model=Path(source).resolve().name if Path(source).is_dir() else source)


def _start_of_bundle(bundle: ModelBundle) -> Start:
    if bundle.manifest.text_settings != DEFAULT_SETTINGS:
        raise InvalidBundle(
            f"{bundle.folder} prepares texts in another way than training does, so its weights would not fit; "
            "begin with another model"
        )
    return Start(
        base_model=bundle.manifest.base_model,
        method=f"began with bundle {bundle.encoder_id}, whose card says what it learnt from",
        companies=tuple(listed_companies(bundle.folder)),
        licence=bundle.manifest.licence,
    )


def listed_companies(bundle_folder: Path) -> list[str]:
    """The ids of the companies that a bundle was trained on, as the list beside it says; none without a list."""
    path = companies_trained_on(bundle_folder)
    return path.read_text(encoding="utf-8").split() if path else []


def read_run(folder: Path) -> TrainedRun | None:
    """The run that wrote the model in `folder`, or None if no run of ours did.

    Raises:
        InvalidInput: its training.json is not what a run writes.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        values = dict(stored["settings"])
        of_sentences = {name: values.pop(name, None) for name in _OF_SENTENCES}
        settings = TrainSettings.from_values(values)
        return TrainedRun(
            settings=settings,
            step=int(stored["step"]),
            scores={str(name): float(score) for name, score in stored["scores"].items()},
            selection_anchors=stored.get("selection_anchors"),
            teachers=tuple(map(str, stored.get("teachers", ()))),
            teachers_trained_on=tuple(map(str, stored.get("teachers_trained_on", ()))),
            start=_start_from(stored, settings, folder),
            batch_sentences=of_sentences["batch_sentences"],
        )
    except (KeyError, TypeError, AttributeError, ValueError, InvalidInput) as error:
        raise InvalidInput(
            f"{path} is not what a training run writes ({error}); export the folder 'best' of a run, or remove the "
            "file to export the weights without its facts"
        ) from error
