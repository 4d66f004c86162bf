"""Restores a torch model from a bundle: writes the weights of its ONNX graph to a Hugging Face folder.

A bundle contains no torch weights, but its graph contains all parameters: biases, norms and small tables under their
torch names; each weight matrix as the operand of the MatMul before a named bias. In an int8 bundle the matrix is
multiplied by the scales of its columns and, if activations were smoothed (training.export.quantise), by the factors of
its rows. The int8 rounding error remains, but is too small to lower the quality at the start of training. Only encoders
built like BERT can be restored; this is checked by comparing vectors.
"""

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from similarity.bundle import MODEL_FILE, TOKENIZER_FILE, ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidBundle

Floats = NDArray[np.float32]

PREFIX = "transformer."
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
# Rounding to int8 leaves a cosine of at least .9985 (decision 4 in docs/decisions). Other architectures have less.
LOWEST_COSINE = 0.98
PROBES = (
    "The company makes shoes and sports clothing and sells them in its own shops.",
    "Software with which hospitals plan the shifts of nurses and doctors.",
    "The company mines copper and gold in open pits.",
    "Bank.",
)


@cache
def restored(bundle_folder: Path) -> Path:
    """Return a Hugging Face folder with the model of a bundle; it is deleted when the process ends.

    Raises:
        InvalidBundle: the bundle cannot be read, or its encoder is not built like BERT.
    """
    bundle = ModelBundle.load(bundle_folder)
    folder = Path(tempfile.mkdtemp(prefix=f"restored-{bundle.encoder_id}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        transformer = _transformer(onnx.load_from_string(bundle.read(MODEL_FILE)).graph)
        tokenizer = _tokenizer(bundle)
        _check(transformer, bundle)
    except (LookupError, RuntimeError, ValueError) as error:
        raise InvalidBundle(
            f"training cannot start from {bundle_folder} ({error}): only encoders built and trained like BERT can be "
            "restored from a bundle; pass the weights it was exported from instead"
        ) from error
    transformer.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def weights(graph: onnx.GraphProto) -> dict[str, Floats]:
    """Return the parameters of the transformer by torch name, float32, matrices as `[outputs, inputs]`."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    found = {
        name.removeprefix(PREFIX): values
        for name, values in constants.items()
        if name.startswith(PREFIX) and values.dtype == np.float32
    }
    for name, values in constants.items():
        if name.startswith(PREFIX) and name.endswith(".int8"):
            table = name.removesuffix(".int8")
            found[table.removeprefix(PREFIX)] = values.astype(np.float32) * constants[f"{table}.scale"]
            del found[f"{table.removeprefix(PREFIX)}.scale"]
    for bias, product in _products(graph, makers):
        matrix = _constant(product.input[1], constants, makers)
        factors = _smoothing(product.input[0], constants, makers)
        matrix = matrix if factors is None else matrix * factors[:, None]
        found[f"{bias.removeprefix(PREFIX).removesuffix('.bias')}.weight"] = np.ascontiguousarray(matrix.T)
    return found


def _products(graph: onnx.GraphProto, makers: Mapping[str, onnx.NodeProto]) -> Iterator[tuple[str, onnx.NodeProto]]:
    """Yield each bias that is added to a matrix product, with the product's node."""
    for node in graph.node:
        if node.op_type != "Add":
            continue
        biases = [name for name in node.input if name.startswith(PREFIX) and name.endswith(".bias")]
        products = [makers[name] for name in node.input if name in makers and makers[name].op_type == "MatMul"]
        if biases and products:
            yield biases[0], products[0]


def _constant(name: str, constants: Mapping[str, Floats], makers: Mapping[str, onnx.NodeProto]) -> Floats:
    """Return the matrix `[inputs, outputs]` called `name`: a constant, or int8 values times their scales."""
    if name in constants:
        return constants[name]
    values, scales, _zeros = (constants[part] for part in makers[name].input)
    matrix: Floats = values.astype(np.float32) * scales
    return matrix


def _smoothing(name: str, constants: Mapping[str, Floats], makers: Mapping[str, onnx.NodeProto]) -> Floats | None:
    """Return the smoothing factors of an activation's channels, or None if it was not smoothed."""
    while makers[name].op_type in ("DequantizeLinear", "QuantizeLinear"):
        name = makers[name].input[0]
    node = makers[name]
    return constants[node.input[1]] if node.op_type == "Mul" and node.input[1].endswith(".factors") else None


def _transformer(graph: onnx.GraphProto) -> BertModel:
    """Return a BERT in evaluation mode with the graph's weights; the pooler, which no bundle has, is zero."""
    found = weights(graph)
    transformer = BertModel(_config(graph, found))
    # Copies, because the arrays read from the file are read-only.
    state = {name: torch.from_numpy(values.copy()) for name, values in found.items()}
    for name, parameter in transformer.pooler.named_parameters(prefix="pooler"):
        state[name] = torch.zeros_like(parameter)
    missing = sorted(transformer.state_dict().keys() - state.keys())
    if missing:
        raise ValueError(f"its graph has no {missing[0]}")
    transformer.load_state_dict(state)
    transformer.eval()
    return transformer


def _config(graph: onnx.GraphProto, found: Mapping[str, Floats]) -> BertConfig:
    """Return the configuration: sizes from the weights; attention heads, norm and activation from the operators."""
    vocabulary, hidden = found["embeddings.word_embeddings.weight"].shape
    layers = {name.split(".")[2] for name in found if name.startswith("encoder.layer.")}
    norm, gelu = (_first(graph, operator) for operator in ("LayerNormalization", "Gelu"))
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=len(layers),
        num_attention_heads=hidden // _head_size(graph),
        intermediate_size=len(found["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(found["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(found["embeddings.token_type_embeddings.weight"]),
        layer_norm_eps=_attributes(norm).get("epsilon", 1e-5),
        hidden_act="gelu_pytorch_tanh" if _attributes(gelu).get("approximate") == b"tanh" else "gelu",
    )


def _head_size(graph: onnx.GraphProto) -> int:
    """Return the last dimension of the reshaped queries `[batch, length, attention heads, head size]`."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    bias = f"{PREFIX}encoder.layer.0.attention.self.query.bias"
    shape = _first(graph, "Reshape", of=_first(graph, "Add", of=bias).output[0]).input[1]
    return int(constants[shape if shape in constants else makers[shape].input[-1]].reshape(-1)[-1])


def _first(graph: onnx.GraphProto, operator: str, *, of: str | None = None) -> onnx.NodeProto:
    for node in graph.node:
        if node.op_type == operator and (of is None or of in node.input):
            return node
    raise ValueError(f"its graph has no {operator}" + (f" of {of}" if of else ""))


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def _tokenizer(bundle: ModelBundle) -> PreTrainedTokenizerFast:
    content = bundle.read(TOKENIZER_FILE)
    known = {token["content"] for token in json.loads(content)["added_tokens"]}
    special = {role: token for role, token in SPECIAL_TOKENS.items() if token in known}
    return PreTrainedTokenizerFast(tokenizer_file=str(bundle.folder / TOKENIZER_FILE), **special)


def _check(transformer: BertModel, bundle: ModelBundle) -> None:
    """Raise ValueError if torch's vectors differ from the bundle's."""
    encoder = TextEncoder(bundle)
    if encoder.dimension != transformer.config.hidden_size:
        raise ValueError("it has layers after the transformer")
    with torch.no_grad():
        for text, vector in zip(PROBES, encoder.encode(PROBES), strict=True):
            ids = torch.from_numpy(next(iter(encoder.tokenise([text]))))[None]
            mean = transformer(input_ids=ids).last_hidden_state[0].mean(dim=0)
            cosine = float(torch.nn.functional.cosine_similarity(mean, torch.from_numpy(vector), dim=0))
            if not cosine >= LOWEST_COSINE:
                raise ValueError(f"the restored model's vectors differ from the bundle's, cosine {cosine:.3f}")
