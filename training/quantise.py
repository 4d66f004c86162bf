"""Turns a float32 ONNX graph into an int8 one: static activations, per-channel weights.

Only matrix products with constant weights become integer; attention products, softmax and
normalisation stay float32. Activation ranges are fixed by calibration texts, so that a vector does
not depend on the texts that share its batch. The graph keeps to standard operators
(QuantizeLinear, DequantizeLinear), which onnxruntime and OpenVINO both fuse.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Feed: TypeAlias = Mapping[str, NDArray[np.int64]]
Floats: TypeAlias = NDArray[np.float32]

# Embedding tables below this many rows (positions, segments) are too small to be worth it.
MIN_TABLE_ROWS = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The values of one activation: the lowest and the highest that are kept apart."""

    low: float
    high: float


def quantise(model: onnx.ModelProto, feeds: Iterable[Feed]) -> onnx.ModelProto:
    """An int8 copy of `model`, calibrated on `feeds` (one text each, so that nothing is padding).

    Raises:
        ValueError: the graph has no matrix product with constant weights, or there are no feeds.
    """
    quantised = onnx.ModelProto()
    quantised.CopyFrom(model)
    products = _constant_products(quantised.graph)
    if not products:
        raise ValueError("the graph has no matrix product with constant weights; is it a transformer?")
    ranges = observe_ranges(model, [node.input[0] for node in products], feeds)
    for tensor, observed in ranges.items():
        _quantise_activation(quantised.graph, tensor, observed, products)
    for node in products:
        _quantise_weight(quantised.graph, node)
    for node in list(quantised.graph.node):
        _quantise_table(quantised.graph, node)
    _drop_unused_weights(quantised.graph)
    _sort(quantised.graph)
    return quantised


def observe_ranges(model: onnx.ModelProto, tensors: Sequence[str], feeds: Iterable[Feed]) -> dict[str, Range]:
    """The range of each tensor: the mean over texts of its lowest and of its highest value.

    The mean instead of the extreme clips what only a rare text reaches, and leaves more steps for
    the rest.
    """
    names = sorted(set(tensors))
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    # Fusion would remove the very tensors that are asked for.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    extremes = [[(values.min(), values.max()) for values in session.run(names, dict(feed))] for feed in feeds]
    if not extremes:
        raise ValueError("there are no calibration texts; give some with --companies")
    means = np.mean(np.array(extremes, dtype=np.float64), axis=0)
    return {name: Range(low=min(low, 0.0), high=max(high, 0.0)) for name, (low, high) in zip(names, means, strict=True)}


def quantised_columns(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """int8 values and one scale per column of a float32 `[inputs, outputs]` matrix."""
    scale = np.maximum(np.abs(weight).max(axis=0), np.finfo(np.float32).tiny) / 127
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def _constant_products(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    matrices = {weight.name for weight in graph.initializer if len(weight.dims) == 2}
    return [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in matrices]


def _quantise_activation(
    graph: onnx.GraphProto, tensor: str, observed: Range, products: Sequence[onnx.NodeProto]
) -> None:
    scale = max((observed.high - observed.low) / 255, float(np.finfo(np.float32).tiny))
    zero = int(np.clip(round(-observed.low / scale), 0, 255))
    _add_weight(graph, f"{tensor}.scale", np.array(scale, dtype=np.float32))
    _add_weight(graph, f"{tensor}.zero", np.array(zero, dtype=np.uint8))
    parameters = [f"{tensor}.scale", f"{tensor}.zero"]
    graph.node.append(helper.make_node("QuantizeLinear", [tensor, *parameters], [f"{tensor}.int8"]))
    graph.node.append(helper.make_node("DequantizeLinear", [f"{tensor}.int8", *parameters], [f"{tensor}.float"]))
    for node in products:
        if node.input[0] == tensor:
            node.input[0] = f"{tensor}.float"


def _quantise_weight(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    name = node.input[1]
    if f"{name}.int8" not in {weight.name for weight in graph.initializer}:
        values, scale = quantised_columns(_weight(graph, name))
        _add_weight(graph, f"{name}.int8", values)
        _add_weight(graph, f"{name}.scale", scale)
        _add_weight(graph, f"{name}.zero", np.zeros(len(scale), dtype=np.int8))
        parts = [f"{name}.int8", f"{name}.scale", f"{name}.zero"]
        graph.node.append(helper.make_node("DequantizeLinear", parts, [f"{name}.float"], axis=1))
    node.input[1] = f"{name}.float"


def _quantise_table(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """A scale per row (word): rows differ in size far more than columns do."""
    sizes = {weight.name: tuple(weight.dims) for weight in graph.initializer}
    if node.op_type != "Gather" or len(sizes.get(node.input[0], ())) != 2:
        return
    name, ids, output = node.input[0], node.input[1], node.output[0]
    if sizes[name][0] < MIN_TABLE_ROWS:
        return
    values, scale = quantised_columns(_weight(graph, name).T)
    _add_weight(graph, f"{name}.int8", np.ascontiguousarray(values.T))
    _add_weight(graph, f"{name}.scale", scale[:, None])
    graph.node.remove(node)
    graph.node.extend(
        [
            helper.make_node("Gather", [f"{name}.int8", ids], [f"{output}.int8"]),
            helper.make_node("Gather", [f"{name}.scale", ids], [f"{output}.scale"]),
            helper.make_node("Cast", [f"{output}.int8"], [f"{output}.float"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [f"{output}.float", f"{output}.scale"], [output]),
        ]
    )


def _weight(graph: onnx.GraphProto, name: str) -> Floats:
    tensor = next(weight for weight in graph.initializer if weight.name == name)
    values: Floats = numpy_helper.to_array(tensor)
    return values


def _add_weight(graph: onnx.GraphProto, name: str, values: NDArray[np.generic]) -> None:
    graph.initializer.append(numpy_helper.from_array(values, name))


def _drop_unused_weights(graph: onnx.GraphProto) -> None:
    used = {name for node in graph.node for name in node.input}
    for weight in [weight for weight in graph.initializer if weight.name not in used]:
        graph.initializer.remove(weight)


def _sort(graph: onnx.GraphProto) -> None:
    """Puts every node behind those that feed it, as ONNX demands."""
    made_by = {output: index for index, node in enumerate(graph.node) for output in node.output}
    order: list[int] = []
    placed: set[int] = set()
    waiting = list(range(len(graph.node) - 1, -1, -1))
    while waiting:
        index = waiting[-1]
        sources = [made_by[name] for name in graph.node[index].input if name in made_by]
        missing = [source for source in sources if source not in placed]
        if missing and index not in placed:
            waiting.extend(missing)
            continue
        waiting.pop()
        if index not in placed:
            placed.add(index)
            order.append(index)
    nodes = [graph.node[index] for index in order]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
