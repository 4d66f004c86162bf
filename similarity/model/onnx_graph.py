"""Reads the interface of an ONNX file without onnx or onnxruntime.

A bundle is checked before any library runs it. So this module parses the protobuf fields itself: inputs, outputs,
operator sets, and whether a tensor is stored outside the file. The field numbers are those of
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

FLOAT = 1
INT64 = 7

_EXTERNAL = 1
_MAX_DEPTH = 64

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_Field: TypeAlias = tuple[int, int | memoryview]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphValue:
    """An input or output. A variable dimension is None in `shape`; `dtype` is an ONNX data type (FLOAT, INT64)."""

    name: str
    dtype: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSummary:
    """The interface of an ONNX model. `opset` is the version of the standard operators."""

    inputs: tuple[GraphValue, ...]
    outputs: tuple[GraphValue, ...]
    opset: int
    has_external_data: bool


def summarise_graph(model: bytes) -> GraphSummary:
    """Return the interface of the ONNX model in `model`.

    Raises:
        ValueError: the bytes are not an ONNX model, or are truncated.
    """
    inputs: list[GraphValue] = []
    outputs: list[GraphValue] = []
    opset = 0
    graphs = 0
    for number, value in _fields(memoryview(model)):
        if number == 7:
            graphs += 1
            inputs, outputs = _interface(_message(value))
        elif number == 8:
            opset = max(opset, _standard_opset(_message(value)))
    if graphs != 1:
        raise ValueError(f"it contains {graphs} graphs instead of one")
    return GraphSummary(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        opset=opset,
        has_external_data=_model_is_external(memoryview(model)),
    )


def _interface(graph: memoryview) -> tuple[list[GraphValue], list[GraphValue]]:
    inputs, outputs = [], []
    for number, value in _fields(graph):
        if number == 11:
            inputs.append(_graph_value(_message(value)))
        elif number == 12:
            outputs.append(_graph_value(_message(value)))
    return inputs, outputs


def _standard_opset(operator_set: memoryview) -> int:
    domain, version = "", 0
    for number, value in _fields(operator_set):
        if number == 1:
            domain = _text(value)
        elif number == 2:
            version = _number(value)
    return version if domain in ("", "ai.onnx") else 0


def _graph_value(value_info: memoryview) -> GraphValue:
    name, dtype = "", 0
    shape: tuple[int | None, ...] = ()
    for number, value in _fields(value_info):
        if number == 1:
            name = _text(value)
        elif number == 2:
            dtype, shape = _tensor_type(_message(value))
    return GraphValue(name=name, dtype=dtype, shape=shape)


def _tensor_type(type_proto: memoryview) -> tuple[int, tuple[int | None, ...]]:
    dtype = 0
    shape: tuple[int | None, ...] = ()
    for number, value in _fields(type_proto):
        if number != 1:
            continue
        for inner_number, inner in _fields(_message(value)):
            if inner_number == 1:
                dtype = _number(inner)
            elif inner_number == 2:
                shape = tuple(_dimension(_message(d)) for n, d in _fields(_message(inner)) if n == 1)
    return dtype, shape


def _dimension(dimension: memoryview) -> int | None:
    for number, value in _fields(dimension):
        if number == 1:
            return _number(value)
    return None


# The messages that can contain tensors: (kind of message, field number) -> kind of the nested message.
_INSIDE = {
    ("model", 7): "graph",
    ("model", 20): "training",
    ("model", 25): "function",
    ("training", 1): "graph",
    ("training", 2): "graph",
    ("graph", 1): "node",
    ("graph", 5): "tensor",
    ("graph", 15): "sparse",
    ("function", 7): "node",
    ("function", 11): "attribute",
    ("node", 5): "attribute",
    ("attribute", 5): "tensor",
    ("attribute", 6): "graph",
    ("attribute", 10): "tensor",
    ("attribute", 11): "graph",
    ("attribute", 22): "sparse",
    ("attribute", 23): "sparse",
    ("sparse", 1): "tensor",
    ("sparse", 2): "tensor",
}


def _model_is_external(model: memoryview) -> bool:
    return _is_external("model", model, depth=0)


def _is_external(kind: str, message: memoryview, *, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        raise ValueError("its graphs are nested too deeply")
    for number, value in _fields(message):
        if kind == "tensor" and (number == 13 or (number == 14 and value == _EXTERNAL)):
            return True
        inside = _INSIDE.get((kind, number))
        if inside is not None and _is_external(inside, _message(value), depth=depth + 1):
            return True
    return False


def _fields(message: memoryview) -> Iterator[_Field]:
    position, end = 0, len(message)
    while position < end:
        key, position = _varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(message, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"byte {position} is not protobuf")
        if number == 0 or position + size > end:
            raise ValueError(f"it is cut off or not protobuf at byte {position}")
        yield number, message[position : position + size]
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message) or shift > 63:
            raise ValueError(f"it is cut off or not protobuf at byte {position}")
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a message was expected where a number stands")
    return value


def _number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise ValueError("a number was expected where a message stands")
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_message(value)).decode("utf-8")
