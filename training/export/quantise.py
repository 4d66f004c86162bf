"""Quantises a float32 ONNX graph to int8: static activations, per-channel weights.

Matrix products with constant weights and large embedding tables are quantised; the rest of the graph stays float32.
Activation ranges are fixed by calibration texts, so that a vector does not depend on the other texts of its batch. The
graph contains only standard operators (QuantizeLinear, DequantizeLinear), which onnxruntime and OpenVINO both fuse.

A few channels of a transformer's activations are ten times larger than the others, and would leave the others only a
few int8 steps. Smoothing (Xiao et al. 2023, https://arxiv.org/abs/2211.10438) divides each channel by a factor and
multiplies the corresponding row of the weights by it: the product is the same, only the ranges change. For its gain see
decision 4 in docs/decisions/README.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import TypeAlias

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from similarity.errors import InvalidInput

Feed: TypeAlias = Mapping[str, NDArray[np.int64]]
Floats: TypeAlias = NDArray[np.float32]

# Smaller embedding tables (positions, segments) are not quantised.
MIN_TABLE_ROWS = 4_096
# Smoothing exponent: how far outliers are moved from activations to weights, from 0 (not at all) to 1 (completely).
SMOOTHING = 0.75
# Activations are smoothed only if the largest channel is at least this many times the median channel.
OUTLIER_RATIO = 3.0
_TINY = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRange:
    """The range of one activation on the calibration texts.

    `low` and `high` are means over texts of its lowest and highest value, extended to contain 0: rare extreme values
    are clipped, so that the other values have finer steps. `channels` is the largest absolute value of each channel.
    """

    low: float
    high: float
    channels: Floats


def quantise(model: onnx.ModelProto, feeds: Sequence[Feed]) -> onnx.ModelProto:
    """Return an int8 copy of `model`, calibrated on `feeds` (one text each, so without padding).

    Raises:
        InvalidInput: the graph has no matrix product with constant weights, or there are no feeds.
    """
    quantised = smooth(model, feeds)
    products = _constant_products(quantised.graph)
    for tensor, activation in measure_ranges(quantised, _inputs(products), feeds).items():
        _quantise_activation(quantised.graph, tensor, activation, products)
    for node in products:
        _quantise_weight(quantised.graph, node)
    for node in list(quantised.graph.node):
        _quantise_table(quantised.graph, node)
    _drop_unused_weights(quantised.graph)
    _sort(quantised.graph)
    return quantised


def smooth(model: onnx.ModelProto, feeds: Sequence[Feed]) -> onnx.ModelProto:
    """Return a float32 copy of `model` with the same output, whose activations have channels of similar size."""
    smoothed = onnx.ModelProto()
    smoothed.CopyFrom(model)
    products = _constant_products(smoothed.graph)
    if not products:
        raise InvalidInput(
            "the graph has no matrix product with constant weights to convert to int8; export --precision float32"
        )
    for tensor, activation in measure_ranges(model, _inputs(products), feeds).items():
        if activation.channels.max() >= OUTLIER_RATIO * np.median(activation.channels):
            users = [node for node in products if node.input[0] == tensor]
            _smooth_activation(smoothed.graph, tensor, activation.channels, users)
    _sort(smoothed.graph)
    return smoothed


def measure_ranges(model: onnx.ModelProto, tensors: Sequence[str], feeds: Sequence[Feed]) -> dict[str, ActivationRange]:
    """Run the texts through the float32 graph and return the ranges of the activations `tensors`.

    Raises:
        InvalidInput: there are no feeds.
    """
    if not feeds:
        raise InvalidInput("there are no calibration texts; give some with --sample")
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in tensors)
    options = onnxruntime.SessionOptions()
    # Operator fusion would remove the measured tensors.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    extremes = np.zeros((len(feeds), len(tensors), 2))
    channels: list[Floats] = [np.zeros(1, dtype=np.float32)] * len(tensors)
    for row, feed in enumerate(feeds):
        for column, values in enumerate(session.run(list(tensors), dict(feed))):
            extremes[row, column] = values.min(), values.max()
            largest = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            channels[column] = np.maximum(channels[column], largest)
    lows, highs = extremes.mean(axis=0).T
    return {
        name: ActivationRange(low=min(float(low), 0.0), high=max(float(high), 0.0), channels=sizes)
        for name, low, high, sizes in zip(tensors, lows, highs, channels, strict=True)
    }


def quantised_columns(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 values and one scale per column of a float32 matrix `[inputs, outputs]`."""
    scale = np.maximum(np.abs(weight).max(axis=0), np.finfo(np.float32).tiny) / 127
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def _constant_products(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    matrices = {weight.name for weight in graph.initializer if len(weight.dims) == 2}
    return [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in matrices]


def _inputs(products: Sequence[onnx.NodeProto]) -> list[str]:
    return sorted({node.input[0] for node in products})


def _smooth_activation(graph: onnx.GraphProto, tensor: str, channels: Floats, users: Sequence[onnx.NodeProto]) -> None:
    names = sorted({node.input[1] for node in users})
    rows = np.abs(np.concatenate([_weight(graph, name) for name in names], axis=1)).max(axis=1)
    factors = np.maximum(channels, _TINY) ** SMOOTHING / np.maximum(rows, _TINY) ** (1 - SMOOTHING)
    factors = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
    for name in names:
        weight = next(tensor for tensor in graph.initializer if tensor.name == name)
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * factors[:, None], name))
    _add_weight(graph, f"{tensor}.factors", 1 / factors)
    graph.node.append(helper.make_node("Mul", [tensor, f"{tensor}.factors"], [f"{tensor}.even"]))
    for node in users:
        node.input[0] = f"{tensor}.even"


def _quantise_activation(
    graph: onnx.GraphProto, tensor: str, activation: ActivationRange, products: Sequence[onnx.NodeProto]
) -> None:
    scale = max((activation.high - activation.low) / 255, float(np.finfo(np.float32).tiny))
    zero = int(np.clip(round(-activation.low / scale), 0, 255))
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
    """Quantise an embedding table with one scale per row (word), because rows differ in size more than columns."""
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
    """Order the nodes so that each follows the nodes that produce its inputs, as ONNX requires."""
    maker_of = {output: index for index, node in enumerate(graph.node) for output in node.output}
    sources = {
        index: [maker_of[name] for name in node.input if name in maker_of] for index, node in enumerate(graph.node)
    }
    nodes = [graph.node[index].SerializeToString() for index in TopologicalSorter(sources).static_order()]
    del graph.node[:]
    graph.node.extend(map(onnx.NodeProto.FromString, nodes))
