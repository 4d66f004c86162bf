"""The content of a bundle's manifest.json, and its strict parser.

Unknown, missing and ill-typed fields are errors: with a misspelt setting the vectors would look right but be wrong.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from similarity.model.calibration import Calibration
from similarity.model.ranker import Ranker, is_finite, ranker_from_json, ranker_to_json
from similarity.text import TEXT_REVISIONS, TextSettings

SCHEMA_VERSION = 3  # 1 had no licence, 2 no ranker
POOLING = "mean"
NORMALISATION = "l2"
# The inputs and the output of every bundle's graph.
INPUT_NAMES = ("input_ids", "attention_mask")
OUTPUT_NAME = "embedding"

# Members that are not in schema 1, and the schema version that added them.
_SINCE = {"licence": 2, "ranker": 3}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_DIMENSION = 16_384
_MAX_TOKENS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of a bundle's model.

    `dimension` is the length of a vector. Texts are truncated to `max_tokens` tokens, including special tokens.
    `pooling` ("mean" over non-padding tokens) and `normalisation` ("l2") are part of the graph. `quantisation` is the
    storage format of the weights ("none": float32). `metrics` are figures by name; `calibration` maps a cosine to a
    probability. `licence` is the SPDX expression of the weights; it may be empty, except in schema 2. `ranker` holds
    the weights of the second stage.

    Raises:
        ValueError: a value is out of range.
    """

    base_model: str
    dimension: int
    max_tokens: int
    opset: int
    quantisation: str
    text_settings: TextSettings
    training_data: str
    pooling: str = POOLING
    normalisation: str = NORMALISATION
    metrics: Mapping[str, float] = field(default_factory=dict)
    calibration: Calibration | None = None
    licence: str = ""
    ranker: Ranker | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= _MAX_DIMENSION:
            raise ValueError(f"dimension is {self.dimension}, not 1 to {_MAX_DIMENSION:,}")
        if not 3 <= self.max_tokens <= _MAX_TOKENS:
            raise ValueError(f"max_tokens is {self.max_tokens}, not 3 to {_MAX_TOKENS:,}")
        if self.opset < 1:
            raise ValueError(f"opset is {self.opset}, not a positive number")
        if self.text_settings.revision not in TEXT_REVISIONS:
            raise ValueError(
                f"text_settings.revision is {self.text_settings.revision}, but this release prepares texts by "
                f"revision {' or '.join(map(str, TEXT_REVISIONS))}"
            )
        if self.pooling != POOLING:
            raise ValueError(f"pooling is {self.pooling!r:.40}, this release knows {POOLING!r}")
        if self.normalisation != NORMALISATION:
            raise ValueError(f"normalisation is {self.normalisation!r:.40}, this release knows {NORMALISATION!r}")


def manifest_to_json(manifest: Manifest, sha256: Mapping[str, str]) -> dict[str, object]:
    """Return the JSON object that is stored as manifest.json."""
    values = {item.name: getattr(manifest, item.name) for item in fields(manifest)}
    values["text_settings"] = asdict(manifest.text_settings)
    values["metrics"] = dict(manifest.metrics)
    values["calibration"] = asdict(manifest.calibration) if manifest.calibration else None
    values["ranker"] = ranker_to_json(manifest.ranker)
    # If the later members are empty, write the earlier schema again, so that such a bundle keeps its `bundle_id`.
    version = 3 if manifest.ranker else 2 if manifest.licence else 1
    for name, since in _SINCE.items():
        if version < since:
            del values[name]
    return {"schema_version": version, **values, "sha256": dict(sha256)}


def manifest_from_json(content: object) -> tuple[Manifest, dict[str, str]]:
    """Return the manifest and the SHA-256 of each file by name.

    Raises:
        ValueError: a field is unknown, missing, of the wrong type or out of range, or this release does not read the
            schema.
    """
    found = _object("the manifest", content)
    version = _whole_number(found, "schema_version")
    if version > SCHEMA_VERSION:
        raise ValueError(f"schema_version {version} is newer than this release reads ({SCHEMA_VERSION}); upgrade it")
    if version < 1:
        raise ValueError(f"schema_version is {version}, not 1 to {SCHEMA_VERSION}")
    names = {"schema_version", "sha256", *(item.name for item in fields(Manifest))}
    _check_names("the manifest", found, names - {name for name, since in _SINCE.items() if version < since})
    manifest = Manifest(
        base_model=_words(found, "base_model"),
        dimension=_whole_number(found, "dimension"),
        max_tokens=_whole_number(found, "max_tokens"),
        opset=_whole_number(found, "opset"),
        quantisation=_words(found, "quantisation"),
        text_settings=_text_settings(found["text_settings"]),
        training_data=_words(found, "training_data"),
        pooling=_words(found, "pooling"),
        normalisation=_words(found, "normalisation"),
        metrics=_numbers("metrics", found["metrics"]),
        calibration=_calibration(found["calibration"]),
        licence=_words(found, "licence") if version == 2 or found.get("licence") else "",
        ranker=ranker_from_json(found.get("ranker")),
    )
    return manifest, _hashes(found["sha256"])


def _text_settings(content: object) -> TextSettings:
    found: dict[str, Any] = _object("text_settings", content)
    _check_names("text_settings", found, {item.name for item in fields(TextSettings)})
    defaults = asdict(TextSettings())
    for name, value in found.items():
        if type(value) is not type(defaults[name]):
            kind = "true or false" if isinstance(defaults[name], bool) else "a whole number"
            raise ValueError(f"text_settings.{name} is {value!r:.40}, not {kind}")
    return TextSettings(**found)


def _calibration(content: object) -> Calibration | None:
    if content is None:
        return None
    numbers = _numbers("calibration", content)
    _check_names("calibration", numbers, {item.name for item in fields(Calibration)})
    return Calibration(**numbers)


def _hashes(content: object) -> dict[str, str]:
    hashes: dict[str, str] = {}
    for name, value in _object("sha256", content).items():
        if not isinstance(value, str) or not _SHA256.fullmatch(value):
            raise ValueError(f"sha256 of {name!r:.80} is not 64 hexadecimal digits")
        hashes[name] = value
    return hashes


def _numbers(name: str, content: object) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, value in _object(name, content).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
            raise ValueError(f"{name}.{key} is {value!r:.40}, not a finite number")
        numbers[key] = value
    return numbers


def _whole_number(found: Mapping[str, object], name: str) -> int:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is {value!r:.40}, not a whole number")
    return value


def _words(found: Mapping[str, object], name: str) -> str:
    value = found[name]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} is {value!r:.40}, not a text")
    return value


def _object(name: str, content: object) -> dict[str, object]:
    if not isinstance(content, dict):
        raise ValueError(f"{name} is not a JSON object")
    return content


def _check_names(name: str, found: Mapping[str, object], wanted: set[str]) -> None:
    missing, unknown = sorted(wanted - set(found)), sorted(set(found) - wanted)
    if missing:
        raise ValueError(f"{name} has no field {missing[0]!r}")
    if unknown:
        raise ValueError(f"{name} has the unknown field {unknown[0]!r:.80}")
