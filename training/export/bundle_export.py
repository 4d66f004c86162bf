"""Exports a model's weights as a bundle, after quality checks. The command is training.export."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from similarity.bundle import CARD_FILE, MODEL_FILE, TOKENIZER_FILE, ModelBundle, write_manifest
from similarity.encoder import TextEncoder, padded
from similarity.model.manifest import Manifest
from similarity.text import DEFAULT_SETTINGS, TextSettings, embedding_text
from training.console import Log
from training.evaluate.judged import read_companies
from training.export.card import model_card
from training.export.gates import (
    ExportRefused,
    JudgedData,
    Reference,
    check_closeness,
    check_parity,
    check_ranking,
)
from training.export.graph import OPSET, SentenceEncoder, load_encoder, require_positions, to_onnx, tokenizer_json
from training.export.publishing import publish
from training.export.quantise import Feed, quantise
from training.model.weights import weights_source
from training.run.trained_run import TrainedRun

FLOAT32, FLOAT16, INT8 = "float32", "float16", "int8"
SAMPLE = Path(__file__).parents[2] / "data" / "sample" / "companies.jsonl"
# Number of texts that calibrate int8. The next CALIBRATION_TEXTS, if there are any, check the result.
CALIBRATION_TEXTS = 256
# From a sample file with more companies, 2 x CALIBRATION_TEXTS random ones are used; from a shorter file, all.
LONG_SAMPLE = 1_024
MAX_BYTES = 150_000_000  # an int8 bundle of BERT-base has 110 million


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """The model to export and the content of its manifest.

    `text_settings` are part of the bundle's `encoder_id`. `run` is the model's training run. `judged_by` says who made
    the relevance labels, for the model card. An int8 bundle larger than `max_bytes` is refused.
    """

    model: str
    base_model: str
    licence: str
    training_data: str
    run: TrainedRun | None = None
    judged_by: str = ""
    precision: str = INT8
    max_tokens: int = 128
    max_bytes: int = MAX_BYTES
    text_settings: TextSettings = DEFAULT_SETTINGS


def export(
    settings: ExportSettings,
    *,
    output: Path,
    sample: Path,
    judged: JudgedData | None = None,
    reference: Reference | None = None,
    load: Callable[[str], SentenceEncoder] = load_encoder,
    log: Log,
) -> ModelBundle:
    """Write the bundle to `output/<encoder_id>/` and return it.

    `sample`: file of companies; their texts calibrate int8, and check int8 or float16 against float32. `load` reads the
    encoder from a `weights_source`: a folder or a Hugging Face id.

    Raises:
        ExportRefused: a check failed; nothing was written.
        InvalidInput: the model, the judged pairs or the companies cannot be used; nothing was written.
    """
    source = weights_source(settings.model)
    original = load(source)
    require_positions(original, settings.max_tokens)
    tokenizer = tokenizer_json(source)
    model = to_onnx(original)
    manifest = Manifest(
        base_model=settings.base_model,
        dimension=original.dimension,
        max_tokens=settings.max_tokens,
        opset=OPSET,
        quantisation="none (float32)",
        text_settings=settings.text_settings,
        training_data=settings.training_data,
        licence=settings.licence,
        metrics={**(settings.run.metrics() if settings.run else {}), **check_parity(original, model, log)},
    )
    with tempfile.TemporaryDirectory() as temporary:
        draft = _write_draft(Path(temporary) / FLOAT32, model, tokenizer, manifest)
        encoder, float32 = TextEncoder(draft), None
        if settings.precision != FLOAT32:
            float32 = encoder
            texts = sample_texts(sample, settings.text_settings)
            if settings.precision == INT8:
                smaller = quantise(model, list(_feeds(float32, texts[:CALIBRATION_TEXTS])))
                manifest = replace(manifest, quantisation="int8: smoothed static activations, per-channel weights")
                texts = _check_texts(texts, log)
            else:
                smaller = to_onnx(original.half())
                manifest = replace(manifest, quantisation="float16, for GPUs")
            draft = _write_draft(Path(temporary) / settings.precision, smaller, tokenizer, manifest)
            if settings.precision == INT8:
                _check_size(draft, settings.max_bytes)
            encoder = TextEncoder(draft)
            manifest = _with_metrics(manifest, check_closeness(float32, encoder, texts, log))
        if judged:
            figures = check_ranking(encoder, judged, log, float32=float32, reference=reference)
            manifest = _with_metrics(manifest, figures)
        card = model_card(manifest, reference=_name_of(reference), judged_by=settings.judged_by)
        (draft.folder / CARD_FILE).write_text(card, encoding="utf-8")
        bundle = write_manifest(draft.folder, manifest)
        return publish(bundle.folder, output / bundle.encoder_id)


def sample_texts(sample: Path, settings: TextSettings) -> list[str]:
    """Return the prepared texts of a file's companies; of a long file, a random sample with a fixed seed."""
    companies = list(read_companies(sample))
    if len(companies) > LONG_SAMPLE:
        chosen = np.random.default_rng(0).choice(len(companies), 2 * CALIBRATION_TEXTS, replace=False)
        companies = [companies[row] for row in chosen]
    return [embedding_text(company, settings) for company in companies]


def _check_texts(texts: list[str], log: Log) -> list[str]:
    """Return the texts after the calibration texts; if there are none, the calibration texts."""
    others = texts[CALIBRATION_TEXTS : 2 * CALIBRATION_TEXTS]
    if len(others) < CALIBRATION_TEXTS:
        checked = f"{len(others)} texts" if others else "the texts that calibrated it"
        log(f"int8 is checked on {checked}; pass at least {2 * CALIBRATION_TEXTS} companies as --sample")
    return others or texts


def _feeds(encoder: TextEncoder, texts: Iterable[str]) -> Iterator[Feed]:
    for ids in encoder.tokenise(list(texts)):
        input_ids, attention_mask = padded([ids])
        yield {"input_ids": input_ids, "attention_mask": attention_mask}


def _name_of(reference: Reference | None) -> str:
    if reference is None:
        return ""
    manifest = reference.encoder.bundle.manifest
    return f"{manifest.base_model} ({reference.encoder.encoder_id}), training data: {manifest.training_data}"


def _with_metrics(manifest: Manifest, metrics: dict[str, float]) -> Manifest:
    return replace(manifest, metrics={**manifest.metrics, **metrics})


def _write_draft(folder: Path, model: onnx.ModelProto, tokenizer: str, manifest: Manifest) -> ModelBundle:
    folder.mkdir()
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    (folder / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
    return write_manifest(folder, manifest)


def _check_size(draft: ModelBundle, max_bytes: int) -> None:
    size = sum(len(draft.read(name)) for name in draft.sha256)
    if size > max_bytes:
        raise ExportRefused(
            f"the bundle has {size / 1e6:,.1f} MB, more than {max_bytes / 1e6:,.1f}; choose a smaller model, or allow "
            "more with --max-megabytes"
        )
