"""A whole bundle of a few kilobytes, written byte by byte, that onnxruntime really runs.

A word's vector is its row of a table set by hand; a text's is the mean over its real tokens, of
unit norm. So expected values are arithmetic. No onnx package is needed.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from similarity.bundle import CARD_FILE, MODEL_FILE, TOKENIZER_FILE, ModelBundle, write_manifest
from similarity.model.manifest import Manifest
from similarity.text import TextSettings

Value: TypeAlias = int | bytes | str
Fields: TypeAlias = Sequence[tuple[int, Value]]

DIMENSION = 4
MAX_TOKENS = 8
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "anvils", "boats", "cars")
# One row per word. The special tokens point nowhere in particular, so only words tell texts apart.
TABLE = np.array(
    [[9, 9, 9, 9], [0, 0, 0, 1], [0, 0, 0, 0.5], [0, 0, 0, 0.5], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
    dtype=np.float32,
)
FLOAT, INT64, INT8, BOOL = 1, 7, 3, 9
OPSET = 18


def message(fields: Fields) -> bytes:
    """A protobuf message: numbers as varints, everything else length-delimited."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(_varint(number << 3) + _varint(value))
        else:
            content = value.encode() if isinstance(value, str) else value
            parts.append(_varint(number << 3 | 2) + _varint(len(content)) + content)
    return b"".join(parts)


def tensor(name: str, values: NDArray[np.generic], *extra: tuple[int, Value]) -> bytes:
    """A TensorProto with its values in raw_data."""
    element = {"float32": FLOAT, "int64": INT64}[values.dtype.name]
    dims: Fields = [(1, size) for size in values.shape]
    return message([*dims, (2, element), (8, name), (9, values.tobytes()), *extra])


def value_info(name: str, element: int, shape: Sequence[int | str]) -> bytes:
    """A ValueInfoProto; a dimension that varies is given by name."""
    sizes = [(1, message([(1, size) if isinstance(size, int) else (2, size)])) for size in shape]
    return message([(1, name), (2, message([(1, message([(1, element), (2, message(sizes))]))]))])


def node(operator: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    """A NodeProto with whole-number attributes."""
    settings = [(5, message([(1, name), (3, value), (20, 2)])) for name, value in attributes.items()]
    return message([*((1, name) for name in inputs), (2, output), (4, operator), *settings])


def endless_loop(source: str, output: str) -> bytes:
    """A Loop node without a limit, whose body hands `source` on and asks for one more round each time."""
    shape = ("batch", DIMENSION)
    body = message(
        [
            (1, node("Identity", ["again"], "once_more")),
            (1, node("Identity", ["state"], "next_state")),
            (2, "body"),
            *((11, value_info(*each)) for each in (("round", INT64, ()), ("again", BOOL, ()), ("state", FLOAT, shape))),
            *((12, value_info(*each)) for each in (("once_more", BOOL, ()), ("next_state", FLOAT, shape))),
        ]
    )
    graph_attribute = message([(1, "body"), (6, body), (20, 5)])
    return message([(1, ""), (1, ""), (1, source), (2, output), (4, "Loop"), (5, graph_attribute)])


@dataclass(frozen=True, kw_only=True)
class TinyGraph:
    """What can be made wrong about the graph."""

    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    input_element: int = INT64
    output: str = "embedding"
    output_shape: tuple[int | str, ...] = ("batch", DIMENSION)
    unit_norm: bool = True
    endless: bool = False
    opset: int = OPSET
    table_extra: tuple[tuple[int, Value], ...] = ()
    nodes: tuple[bytes, ...] = ()

    def to_bytes(self) -> bytes:
        """The ModelProto."""
        ids, mask = self.inputs[0], self.inputs[-1]
        last = "last_state" if self.endless else self.output
        pooled = last if not self.unit_norm else "mean"
        nodes = [
            node("Gather", ["table", ids], "states", axis=0),
            node("Cast", [mask], "real", to=FLOAT),
            node("Unsqueeze", ["real", "last"], "weights"),
            node("Mul", ["states", "weights"], "weighted"),
            node("ReduceSum", ["weighted", "tokens"], "sum", keepdims=0),
            node("ReduceSum", ["weights", "tokens"], "count", keepdims=0),
            node("Div", ["sum", "count"], pooled),
        ]
        if self.unit_norm:
            nodes.append(node("LpNormalization", ["mean"], last, axis=1, p=2))
        if self.endless:
            nodes.append(endless_loop(last, self.output))
        initializers = [
            tensor("table", TABLE, *self.table_extra),
            tensor("last", np.array([2], dtype=np.int64)),
            tensor("tokens", np.array([1], dtype=np.int64)),
        ]
        graph = message(
            [
                *((1, content) for content in (*nodes, *self.nodes)),
                (2, "tiny"),
                *((5, content) for content in initializers),
                *((11, value_info(name, self.input_element, ["batch", "length"])) for name in self.inputs),
                (12, value_info(self.output, FLOAT, self.output_shape)),
            ]
        )
        return message([(1, 8), (7, graph), (8, message([(1, ""), (2, self.opset)]))])


def tiny_tokenizer() -> str:
    """tokenizer.json: lower case, words at white space, [CLS] and [SEP] around."""
    tokenizer = Tokenizer(models.WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return str(tokenizer.to_str())


TINY_MANIFEST = Manifest(
    base_model="tiny",
    dimension=DIMENSION,
    max_tokens=MAX_TOKENS,
    opset=OPSET,
    quantisation="none",
    text_settings=TextSettings(),
    training_data="set by hand",
)


def write_tiny_bundle(folder: Path, graph: TinyGraph | None = None, **changes: object) -> ModelBundle:
    """Writes a bundle to `folder`; `changes` replace fields of its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL_FILE).write_bytes((graph or TinyGraph()).to_bytes())
    (folder / TOKENIZER_FILE).write_text(tiny_tokenizer(), encoding="utf-8")
    (folder / CARD_FILE).write_text("A tiny model.\n", encoding="utf-8")
    return write_manifest(folder, replace(TINY_MANIFEST, **changes))  # type: ignore[arg-type]  # any field may change


def expected_vector(*words: str) -> NDArray[np.float32]:
    """What the tiny model must make of these words: the mean of rows, of unit norm."""
    rows = [TABLE[WORDS.index(word)] for word in ("[CLS]", *words, "[SEP]")]
    mean = np.mean(rows, axis=0)
    vector: NDArray[np.float32] = (mean / np.linalg.norm(mean)).astype(np.float32)
    return vector


def _varint(value: int) -> bytes:
    content = b""
    while True:
        value, low = value >> 7, value & 0x7F
        content += struct.pack("B", low | (0x80 if value else 0))
        if not value:
            return content
