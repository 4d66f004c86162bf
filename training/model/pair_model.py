"""The dual encoder and its head (PAUSE, section 3.1).

Both texts of a pair go through one transformer. The vector of a text is the mean of the last hidden states of its
non-padding tokens, including [CLS] and [SEP]. The head computes one logit per class from two vectors. The search uses
the cosine of the vectors; the head exists for training only. PAUSE: https://arxiv.org/abs/2109.03155.

In shapes, r is the number of texts, n of pairs, l of tokens after padding, d the dimension, C the number of classes.
"""

import copy
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from similarity.errors import InvalidInput
from training.config import Features, TrainSettings
from training.model.weights import load_transformer, require_transformer_alone, weights_source

HEAD_FILE = "head.safetensors"
HIDDEN = 128  # PAUSE, section 3.1: "a 128-way fully-connected layer with ELU activation"


class PairHead(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """Classifier on two vectors: Linear(4d or 3d, 128), ELU, Linear(128, C), on [u, v, |u-v|] and perhaps u*v.

    If `symmetric`, the logits are the mean of both orders of a pair.
    """

    def __init__(self, dimension: int, classes: int, *, features: Features, symmetric: bool) -> None:
        super().__init__()
        self.product = features == "u,v,|u-v|,u*v"
        self.symmetric = symmetric
        self.layers = nn.Sequential(
            nn.Linear(dimension * (4 if self.product else 3), HIDDEN), nn.ELU(), nn.Linear(HIDDEN, classes)
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return logits float32 `[n, C]` of vectors `[n, d]`."""
        logits = self._one_order(left, right)
        return (logits + self._one_order(right, left)) / 2 if self.symmetric else logits

    def _one_order(self, left: Tensor, right: Tensor) -> Tensor:
        parts = [left, right, (left - right).abs()]
        if self.product:
            parts.append(left * right)
        logits: Tensor = self.layers(torch.cat(parts, dim=1))
        return logits


class NoHead(nn.Module):  # type: ignore[misc]
    """The head of a model without classes: its logits are `[n, 0]`."""

    def forward(self, left: Tensor, _right: Tensor) -> Tensor:
        """Return empty logits `[n, 0]`."""
        return left.new_empty(len(left), 0)


class PairModel(nn.Module):  # type: ignore[misc]
    """Transformer, pooling, and, if there are classes, a head.

    If `frozen_layers` is above 0, the embeddings and the lowest `frozen_layers` layers are not trained and have no
    dropout. Their output (`lower_states`) is constant and can be cached; `encode_from_lower_states` starts from it.
    """

    def __init__(self, transformer: PreTrainedModel, head: PairHead | NoHead, *, frozen_layers: int = 0) -> None:
        super().__init__()
        self.transformer = transformer
        self.head = head
        self.frozen_layers = frozen_layers
        if frozen_layers:
            lower, upper = split_layers(transformer, frozen_layers)
            lower.requires_grad_(False)
            # A tuple, so that torch does not register them as submodules: they share the transformer's parameters.
            self._parts = (lower, upper)

    @property
    def dimension(self) -> int:
        """The dimension of a vector."""
        return int(self.transformer.config.hidden_size)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return vectors float32 `[r, d]`, not normalised, of int64 `[r, l]` ids and mask."""
        return self.pooled(self.states(input_ids, attention_mask), attention_mask)

    def encode_from_lower_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return vectors float32 `[r, d]`, computed from `lower_states`."""
        return self.pooled(self.upper_states(lower_states, attention_mask), attention_mask)

    def pooled(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the vectors of the last hidden states `[r, l, d]`: their means over tokens."""
        return mean_over_tokens(states, attention_mask)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the last hidden states `[r, l, d]`."""
        if self.frozen_layers:
            return self.upper_states(self.lower_states(input_ids, attention_mask), attention_mask)
        states: Tensor = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def lower_states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states `[r, l, d]` after the frozen layers; they depend on the text only."""
        lower = self._parts[0].eval()
        with torch.no_grad():
            states: Tensor = lower(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def upper_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the last hidden states `[r, l, d]`, computed from the output of the frozen layers."""
        upper = self._parts[1].train(self.training)
        states: Tensor = upper(inputs_embeds=lower_states, attention_mask=attention_mask).last_hidden_state
        return states

    def trained_encoder_parameters(self) -> list[nn.Parameter]:
        """Return the trained parameters of the encoder, without the head."""
        return [
            value for name, value in self.named_parameters() if value.requires_grad and not name.startswith("head.")
        ]

    def save(self, folder: Path) -> None:
        """Write the transformer in Hugging Face's format, and the head to the same folder."""
        self.transformer.save_pretrained(folder)
        (folder / HEAD_FILE).unlink(missing_ok=True)  # the head of an earlier model
        weights = {name: value.contiguous() for name, value in self.head.state_dict().items()}
        if weights:
            save_file(weights, folder / HEAD_FILE)

    def load(self, folder: Path) -> None:
        """Load the weights that `save` wrote to `folder`."""
        self.transformer.load_state_dict(load_transformer(str(folder)).state_dict())
        if not isinstance(self.head, NoHead):
            self.head.load_state_dict(load_file(folder / HEAD_FILE))


class PassThroughEmbeddings(nn.Module):  # type: ignore[misc]
    """Embedding layer of the upper layers, whose input is the output of the frozen layers; it changes nothing."""

    def forward(self, *, inputs_embeds: Tensor, **_ignored: object) -> Tensor:
        """Return the input; the frozen layers have already used ids and positions."""
        return inputs_embeds


def split_layers(transformer: PreTrainedModel, layers: int) -> tuple[nn.Module, nn.Module]:
    """Return two transformers that share the parameters of `transformer`: its first `layers` layers, and the others.

    Raises:
        InvalidInput: the transformer is not built like BERT, or no layer is left to train.
    """
    stack = getattr(getattr(transformer, "encoder", None), "layer", None)
    if stack is None or not hasattr(transformer, "embeddings"):
        raise InvalidInput(
            f"frozen_layers needs a model built like BERT (embeddings, encoder.layer), not {type(transformer).__name__}"
        )
    if not layers < len(stack):
        raise InvalidInput(f"frozen_layers is {layers} of {len(stack)} layers; leave at least one to train")
    upper = _with_layers(transformer, stack[layers:], embeddings=PassThroughEmbeddings())
    return _with_layers(transformer, stack[:layers]), upper


def _with_layers(transformer: PreTrainedModel, layers: nn.ModuleList, **changes: nn.Module) -> nn.Module:
    """Return a copy of the transformer with these layers; it shares the parameters."""
    part = _shallow_copy(transformer)
    part._modules |= {"encoder": _shallow_copy(transformer.encoder), "pooler": None, **changes}
    part.encoder._modules["layer"] = layers
    return part


def _shallow_copy(module: nn.Module) -> nn.Module:
    shallow_copy = copy.copy(module)
    shallow_copy._modules = dict(module._modules)
    return shallow_copy


def mean_over_tokens(states: Tensor, attention_mask: Tensor) -> Tensor:
    """Return the mean of `[r, l, d]` over the tokens of a 0/1 mask `[r, l]`, in float32."""
    weights = attention_mask.unsqueeze(-1).to(torch.float32)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def load_pair_model(settings: TrainSettings, *, classes: int = 0) -> PairModel:
    """Return the initial model of a run, with a head for `classes` classes (0: no head).

    If the model folder contains a head of the same shape, that head is loaded. Otherwise the head is initialised
    randomly with `settings.seed`.

    Raises:
        InvalidInput: the weights cannot be read; they contain modules besides the transformer; or `frozen_layers`
            does not fit the model (see `split_layers`).
    """
    folder = weights_source(settings.source)
    require_transformer_alone(folder)
    transformer = load_base_transformer(folder)
    if settings.frozen_embeddings:
        transformer.get_input_embeddings().requires_grad_(False)
    head: PairHead | NoHead = NoHead()
    if classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            hidden = int(transformer.config.hidden_size)
            head = PairHead(hidden, classes, features=settings.features, symmetric=settings.symmetric)
        _load_fitting_head(head, Path(folder) / HEAD_FILE)
    return PairModel(transformer, head, frozen_layers=settings.frozen_layers)


def load_base_transformer(folder: str) -> PreTrainedModel:
    """Return the transformer in a `weights_source`; BERT's pooler, which is not used here, gets no gradients."""
    transformer = load_transformer(folder)
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)
    return transformer


def _load_fitting_head(head: nn.Module, path: Path) -> None:
    weights = load_file(path) if path.exists() else {}
    if {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in head.state_dict().items()
    }:
        head.load_state_dict(weights)
