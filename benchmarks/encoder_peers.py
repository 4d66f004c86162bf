"""The peers of `benchmarks.encoder`: sentence-transformers with each of its documented backends.

See https://sbert.net/docs/sentence_transformer/usage/efficiency.html. Exported models are kept in the cache folder.
"""

import importlib.util
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from training.evaluate.encoding import Encode
from training.model.weights import weights_source

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH_SIZES = (8, 16, 32, 64)
CALIBRATION_TEXTS = 300
# export_dynamic_quantized_onnx_model quantises for these instruction sets.
ONNX_INT8 = ("avx512_vnni", "avx2")


def peers(model: str, cache: Path, texts: Sequence[str], *, threads: int, max_tokens: int) -> dict[str, Encode]:
    """Return each installed backend, warmed up, with the fastest of four batch sizes."""
    if importlib.util.find_spec("sentence_transformers") is None:
        print("left out: sentence-transformers (pip install 'sentence-transformers[onnx,openvino]')")
        return {}
    import torch

    torch.set_num_threads(threads)
    source = weights_source(model)
    found: dict[str, Encode] = {}
    makers: dict[str, Callable[[], SentenceTransformer]] = {
        "torch float32": partial(_torch, source, "float32"),
        "torch bfloat16": partial(_torch, source, "bfloat16"),
    }
    for instructions in ONNX_INT8:
        makers[f"onnx int8 {instructions}"] = partial(_onnx, source, cache, instructions, threads)
    makers["openvino int8"] = partial(_openvino, source, cache, texts, threads)
    for name, make in makers.items():
        try:
            transformer = make()
        except ImportError as error:
            print(f"left out: sentence-transformers, {name} ({str(error).splitlines()[0]})")
            continue
        transformer.max_seq_length = max_tokens
        found[f"sentence-transformers, {name}"] = _fastest(transformer, texts[:128])
    return found


def _torch(source: str, dtype: str) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(source, device="cpu", model_kwargs={"torch_dtype": dtype})


def _onnx(source: str, cache: Path, instructions: str, threads: int) -> "SentenceTransformer":
    import onnxruntime
    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    folder = cache / "onnx"
    if not folder.exists():
        exported = SentenceTransformer(source, device="cpu", backend="onnx", model_kwargs={"export": True})
        for name in ONNX_INT8:
            export_dynamic_quantized_onnx_model(exported, name, str(folder))
        exported.save_pretrained(str(folder))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    file = next(path for path in (folder / "onnx").iterdir() if path.stem.endswith(f"int8_{instructions}"))
    settings = {"file_name": file.name, "session_options": options, "provider": "CPUExecutionProvider"}
    return SentenceTransformer(str(folder), device="cpu", backend="onnx", model_kwargs=settings)


def _openvino(source: str, cache: Path, texts: Sequence[str], threads: int) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    folder = cache / "openvino"
    if not (folder / "openvino" / "openvino_model_qint8_quantized.xml").exists():
        _export_openvino(source, folder, texts)
    settings: dict[str, Any] = {
        "file_name": "openvino_model_qint8_quantized.xml",
        "ov_config": {"INFERENCE_NUM_THREADS": str(threads), "PERFORMANCE_HINT": "LATENCY"},
    }
    return SentenceTransformer(str(folder), device="cpu", backend="openvino", model_kwargs=settings)


def _export_openvino(source: str, folder: Path, texts: Sequence[str]) -> None:
    from optimum.intel import OVQuantizationConfig
    from sentence_transformers import SentenceTransformer, export_static_quantized_openvino_model

    exported = SentenceTransformer(source, device="cpu", backend="openvino", model_kwargs={"export": True})
    exported.save_pretrained(str(folder))
    # The documented call, calibrated on company texts, as our int8 graph is.
    corpus = folder / "calibration"
    corpus.mkdir(exist_ok=True)
    lines = (json.dumps({"text": text}) for text in texts[:CALIBRATION_TEXTS])
    (corpus / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    export_static_quantized_openvino_model(
        exported,
        OVQuantizationConfig(num_samples=min(CALIBRATION_TEXTS, len(texts))),
        str(folder),
        dataset_name=str(corpus),
        dataset_config_name="default",
        dataset_split="train",
        column_name="text",
    )


def _fastest(transformer: "SentenceTransformer", texts: Sequence[str]) -> Encode:
    def encode_with(size: int) -> Encode:
        def encode(chosen: Sequence[str]) -> NDArray[np.float32]:
            vectors = transformer.encode(
                list(chosen), batch_size=size, normalize_embeddings=True, show_progress_bar=False
            )
            return np.asarray(vectors, dtype=np.float32)

        return encode

    candidates = [encode_with(size) for size in BATCH_SIZES]
    candidates[0](texts)
    return min(candidates, key=lambda encode: _seconds(encode, texts))


def _seconds(encode: Encode, texts: Sequence[str]) -> float:
    start = perf_counter()
    encode(texts)
    return perf_counter() - start
