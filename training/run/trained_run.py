"""The description of a training run, stored as `training.json` in the folder of its weights."""

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from similarity.bundle import ModelBundle, companies_trained_on, is_bundle, trained_on_path
from similarity.errors import InvalidBundle, InvalidInput
from similarity.text import DEFAULT_SETTINGS
from training.config import DISTILLATION, TrainSettings

SETTINGS_FILE = "training.json"
# Settings that only runs on sentences store (training.papers.sentences). Such a model is exported like any other.
_OF_SENTENCES = ("context", "windows", "batch_sentences")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The initial model of a run, recorded when the run starts, because the model's folder may change later.

    `base_model` is an id, or the name of a folder without its path. `method` describes how the initial model was
    trained; it is empty if unknown. `companies` are the training companies listed with a bundle, `licence` is the
    licence in its manifest.
    """

    base_model: str
    method: str = ""
    companies: tuple[str, ...] = ()
    licence: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain values, from which `read_run` restores the Start."""
        return {**asdict(self), "companies": list(self.companies)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """A training run: its settings, the step of its best model, and that step's selection scores.

    `start` is the initial model. `selection_anchors` is the number of anchors held out for checkpoint selection, None
    if it was not recorded. `companies` are the ids of the companies in its labelled pairs. `teachers` are the encoders
    that it was distilled from, `teachers_trained_on` their training companies. `batch_sentences` is the batch size of a
    run on sentences, None for other runs.
    """

    settings: TrainSettings
    step: int
    scores: Mapping[str, float]
    start: Start
    selection_anchors: int | None = None
    companies: tuple[str, ...] = ()
    teachers: tuple[str, ...] = ()
    teachers_trained_on: tuple[str, ...] = ()
    batch_sentences: int | None = None

    @property
    def training_companies(self) -> tuple[str, ...]:
        """Training companies of the run, and of the initial model and the teachers, as far as these are recorded."""
        return tuple(sorted({*self.companies, *self.start.companies, *self.teachers_trained_on}))

    @property
    def method(self) -> str:
        """One sentence that describes the training, earlier runs first."""
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
        """Return the selection scores and their step, for a manifest."""
        scores = {f"selection_{name}": score for name, score in self.scores.items() if math.isfinite(score)}
        return {"selection_step": self.step, **scores}


def _start_from(stored: Mapping[str, Any], settings: TrainSettings, folder: Path) -> Start:
    """Return the recorded start. A run of an older release has none: return the start of its source as it is now."""
    if "start" in stored:
        return Start(**{**stored["start"], "companies": tuple(stored["start"]["companies"])})
    source = settings.source
    return start_of(source) if Path(source).resolve() != folder.resolve() else Start(base_model=folder.resolve().name)


def start_of(source: str) -> Start:
    """Return the start of a run whose initial model is `source`: a bundle, the model of an earlier run, or another.

    Raises:
        InvalidBundle: the bundle cannot be read, or its text settings differ from the defaults.
        InvalidInput: the training.json of the earlier run is invalid.
    """
    if is_bundle(source):
        return _start_of_bundle(ModelBundle.load(source))
    earlier = read_run(Path(source))
    if earlier is not None:
        return replace(earlier.start, method=earlier.method, companies=earlier.training_companies)
    return Start(base_model=Path(source).resolve().name if Path(source).is_dir() else source)


def _start_of_bundle(bundle: ModelBundle) -> Start:
    if bundle.manifest.text_settings != DEFAULT_SETTINGS:
        raise InvalidBundle(
            f"the text settings of {bundle.folder} differ from those of training, so training cannot start from its "
            "weights; choose another model"
        )
    return Start(
        base_model=bundle.manifest.base_model,
        method=f"began with bundle {bundle.encoder_id}, whose card says what it learnt from",
        companies=tuple(listed_companies(bundle.folder)),
        licence=bundle.manifest.licence,
    )


def copy_listed_companies(bundle_folder: Path, *, to: Path) -> None:
    """Copy the list of training companies stored with a bundle, if there is one, to the bundle in another folder."""
    path = companies_trained_on(bundle_folder)
    if path and path != trained_on_path(to):
        shutil.copyfile(path, trained_on_path(to))


def listed_companies(bundle_folder: Path) -> list[str]:
    """Return the ids on the list of training companies stored with a bundle; empty if there is no list."""
    path = companies_trained_on(bundle_folder)
    return path.read_text(encoding="utf-8").split() if path else []


def refuse_another_run(folder: Path, *, settings: Mapping[str, Any], data: str, start: Mapping[str, Any]) -> None:
    """Raise InvalidInput if `folder` has the model of a run with other settings, pairs or initial model.

    Runs of earlier releases are compared by the settings that they have.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        kept = dict(stored["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} is damaged ({error}); choose another output folder, or remove {folder}") from error
    is_other = any(kept.get(name, value) != value for name, value in json.loads(json.dumps(settings)).items())
    if is_other or ("data" in stored and (stored["data"], stored.get("start")) != (data, start)):
        raise InvalidInput(
            f"{folder} is the model of a run with other settings or pairs; choose another output folder, or remove it"
        )


def read_run(folder: Path) -> TrainedRun | None:
    """Return the run that wrote the model in `folder`, or None if the folder has no training.json.

    Raises:
        InvalidInput: its training.json is invalid.
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
            companies=tuple(map(str, stored.get("companies", ()))),
            teachers=tuple(map(str, stored.get("teachers", ()))),
            teachers_trained_on=tuple(map(str, stored.get("teachers_trained_on", ()))),
            start=_start_from(stored, settings, folder),
            batch_sentences=of_sentences["batch_sentences"],
        )
    except (KeyError, TypeError, AttributeError, ValueError, InvalidInput) as error:
        raise InvalidInput(
            f"{path} is not the training.json of a run ({error}); export the folder 'best' of a run, or remove this "
            "file to export the weights without a description of their training"
        ) from error
