"""Exports a torch transformer as one ONNX graph: token ids and attention mask in, unit vector out.

Pooling and normalisation are part of the graph, so that every user of a bundle computes them in the same way. The graph
contains only standard operators; each runtime fuses attention, normalisation and GELU for its machine (measured to be
faster than fusing them in advance with onnxruntime.transformers).
"""

import tempfile
import warnings
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from similarity.errors import InvalidInput
from similarity.model.manifest import INPUT_NAMES, OUTPUT_NAME
from training.model.weights import load_tokenizer, load_transformer, require_transformer_alone

# The first opset with a Gelu operator.
OPSET = 20


class SentenceEncoder(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """A transformer, the mean over non-padding tokens, and unit norm.

    The inputs are `input_ids` and `attention_mask`, int64 `[batch, length]`; the output is float32
    `[batch, dimension]`. Padding does not change the output: the mask excludes it from attention and from the mean.
    """

    def __init__(self, transformer: PreTrainedModel) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        # The mean and the norm of a float16 transformer are float32, because rounding would change the norm.
        states = self.states(input_ids, attention_mask).float()
        weights = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)

    @property
    def dimension(self) -> int:
        """The dimension of a vector."""
        return int(self.transformer.config.hidden_size)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the last hidden states `[batch, length, dimension]`; their mean over tokens is the vector."""
        states: Tensor = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states


def load_encoder(source: str) -> SentenceEncoder:
    """Return the encoder in `source` in evaluation mode, on the CPU in float32.

    Raises:
        InvalidInput: it cannot be read, or contains layers after the transformer.
    """
    require_transformer_alone(source)
    encoder = SentenceEncoder(load_exportable(source))
    encoder.eval()
    return encoder


def load_exportable(source: str) -> PreTrainedModel:
    """Return the transformer in `source` with eager attention: torch's fused kernels cannot be exported."""
    return load_transformer(source, attn_implementation="eager")


def require_positions(encoder: SentenceEncoder, max_tokens: int) -> None:
    """Raise InvalidInput if the transformer has fewer positions than `max_tokens`: long texts would fail later."""
    config = encoder.transformer.config
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and "roberta" in str(config.model_type):
        positions -= int(config.pad_token_id) + 1  # RoBERTa models number positions from pad_token_id + 1
    if positions is not None and max_tokens > positions:
        raise InvalidInput(f"the model reads at most {positions} tokens, not {max_tokens}; give a lower --max-tokens")


def tokenizer_json(source: str) -> str:
    """Return the tokenizer in `source` as tokenizer.json, without its truncation and padding.

    Raises:
        InvalidInput: there is no tokenizer, or it is not a fast one.
    """
    tokenizer = load_tokenizer(source)
    if not tokenizer.is_fast:
        raise InvalidInput(f"{source} has no fast tokenizer; convert it to a tokenizer.json first")
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    return str(backend.to_str(pretty=False))


def to_onnx(encoder: SentenceEncoder) -> onnx.ModelProto:
    """Return the graph of `encoder` in the precision of its weights, with variable batch size and length."""
    example = torch.ones(2, 16, dtype=torch.int64)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The exporter warns about its own internals.
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            encoder,
            (example, torch.ones_like(example)),
            path,
            input_names=list(INPUT_NAMES),
            # Not the final name, because the exporter uses that name for the output of the word embedding.
            output_names=["unit_vector"],
            dynamic_shapes=(axes, axes),
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        model = onnx.load(path)
    return _tidied(model)


def _tidied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rename the output and remove the exporter's metadata (paths of its source)."""
    names = {"unit_vector": OUTPUT_NAME, OUTPUT_NAME: "word_embedding"}
    for node in model.graph.node:
        for ends in (node.input, node.output):
            for index, name in enumerate(ends):
                ends[index] = names.get(name, name)
        del node.metadata_props[:]
        node.doc_string = ""
    model.graph.output[0].name = OUTPUT_NAME
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    onnx.checker.check_model(model)
    return model
