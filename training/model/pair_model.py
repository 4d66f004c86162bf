"""The dual encoder and its head (PAUSE, section 3.1).

Both texts of a pair go through one transformer. A text's vector is the mean of the last states over its
real tokens ([CLS] and [SEP] included). The head turns two vectors into one logit for each class. The
search uses the cosine of the vectors; the head exists for training only.
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
HIDDEN = 128


class PairHead(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """[u, v, |u-v|, u*v] -> 128, ELU -> C logits; `symmetric` is the mean over both orders of a pair."""

    def __init__(self, dimension: int, classes: int, *, features: Features, symmetric: bool) -> None:
        super().__init__()
        self.product = features == "u,v,|u-v|,u*v"
        self.symmetric = symmetric
        self.layers = nn.Sequential(
            nn.Linear(dimension * (4 if self.product else 3), HIDDEN), nn.ELU(), nn.Linear(HIDDEN, classes)
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Logits float32 `[n, C]` of vectors `[n, d]`."""
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
        """Empty logits `[n, 0]`."""
        return left.new_empty(len(left), 0)


class PairModel(nn.Module):  # type: ignore[misc]
    """Transformer, pooling, and a head where there are classes.

    With `frozen_layers` the embeddings and this many of the lowest layers get no gradient and no
    dropout: the `lower_states` of a text never change and can be cached, `pool` continues from them.
    """

    def __init__(self, transformer: PreTrainedModel, head: PairHead | NoHead, *, frozen_layers: int = 0) -> None:
        super().__init__()
        self.transformer = transformer
        self.head = head
        self.frozen_layers = frozen_layers
        if frozen_layers:
            lower, upper = split_layers(transformer, frozen_layers)
            lower.requires_grad_(False)
            # Not registered: their parameters are the transformer's own.
            self._parts = (lower, upper)

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.transformer.config.hidden_size)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors float32 `[r, d]`, not normalised, of int64 `[r, l]` ids and mask."""
        return mean_over_tokens(self.states(input_ids, attention_mask), attention_mask)

    def pool(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors float32 `[r, d]` from `lower_states`."""
        return mean_over_tokens(self.upper_states(lower_states, attention_mask), attention_mask)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The tokens' states `[r, l, d]`; their mean is the vector."""
        if self.frozen_layers:
            return self.upper_states(self.lower_states(input_ids, attention_mask), attention_mask)
        states: Tensor = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def lower_states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States `[r, l, d]` after the frozen layers; they depend on the text alone."""
        lower = self._parts[0].eval()
        with torch.no_grad():
            states: Tensor = lower(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def upper_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """`states` from `lower_states`."""
        upper = self._parts[1].train(self.training)
        states: Tensor = upper(inputs_embeds=lower_states, attention_mask=attention_mask).last_hidden_state
        return states

    def parameters_of_texts(self) -> list[nn.Parameter]:
        """The trained parameters of the encoder, without those of the head."""
        return [
            value for name, value in self.named_parameters() if value.requires_grad and not name.startswith("head.")
        ]

    def save(self, folder: Path) -> None:
        """Write the transformer as Hugging Face does, and the head beside it."""
        self.transformer.save_pretrained(folder)
        (folder / HEAD_FILE).unlink(missing_ok=True)  # the head of an earlier model
        weights = {name: value.contiguous() for name, value in self.head.state_dict().items()}
        if weights:
            save_file(weights, folder / HEAD_FILE)

    def load(self, folder: Path) -> None:
        """Take over the weights that `save` wrote into `folder`."""
        self.transformer.load_state_dict(load_transformer(str(folder)).state_dict())
        if not isinstance(self.head, NoHead):
            self.head.load_state_dict(load_file(folder / HEAD_FILE))


class Unchanged(nn.Module):  # type: ignore[misc]
    """Replaces the embeddings of a transformer that takes states instead of ids."""

    def forward(self, *, inputs_embeds: Tensor, **_ignored: object) -> Tensor:
        """Its input; the lower layers have used ids and positions already."""
        return inputs_embeds


def split_layers(transformer: PreTrainedModel, layers: int) -> tuple[nn.Module, nn.Module]:
    """Two transformers that share the parameters of one: its first `layers` layers, and the rest.

    Raises:
        InvalidInput: it is not built like BERT, or has no layer left to train.
    """
    stack = getattr(getattr(transformer, "encoder", None), "layer", None)
    if stack is None or not hasattr(transformer, "embeddings"):
        raise InvalidInput(
            f"frozen_layers needs a model built like BERT (embeddings, encoder.layer), not {type(transformer).__name__}"
        )
    if not layers < len(stack):
        raise InvalidInput(f"frozen_layers is {layers} of {len(stack)} layers; leave at least one to train")
    return _with(transformer, stack[:layers]), _with(transformer, stack[layers:], embeddings=Unchanged())


def _with(transformer: PreTrainedModel, layers: nn.ModuleList, **changes: nn.Module) -> nn.Module:
    """A transformer with other layers that shares the parameters of this one."""
    part = _shallow(transformer)
    part._modules |= {"encoder": _shallow(transformer.encoder), "pooler": None, **changes}
    part.encoder._modules["layer"] = layers
    return part


def _shallow(module: nn.Module) -> nn.Module:
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin


def mean_over_tokens(states: Tensor, attention_mask: Tensor) -> Tensor:
    """Mean of `[r, l, d]` over the tokens of a 0/1 mask `[r, l]`, in float32."""
    weights = attention_mask.unsqueeze(-1).to(torch.float32)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def load_pair_model(settings: TrainSettings, *, classes: int = 0) -> PairModel:
    """The model that the settings begin with, with a head for `classes` classes (0: no head).

    A folder's own head is used if it fits; a new one is drawn from the settings' seed.

    Raises:
        InvalidInput: the weights cannot be read or hold more than a transformer, or as `split_layers`.
    """
    folder = weights_source(settings.source)
    require_transformer_alone(folder)
    transformer = load_base_transformer(folder)
    head: PairHead | NoHead = NoHead()
    if classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            hidden = int(transformer.config.hidden_size)
            head = PairHead(hidden, classes, features=settings.features, symmetric=settings.symmetric)
        _use_saved(head, Path(folder) / HEAD_FILE)
    return PairModel(transformer, head, frozen_layers=settings.frozen_layers)


def load_base_transformer(folder: str) -> PreTrainedModel:
    """The transformer in a `weights_source`, without gradients for BERT's own pooler, which nothing here uses."""
    transformer = load_transformer(folder)
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)
    return transformer


def _use_saved(head: nn.Module, path: Path) -> None:
    weights = load_file(path) if path.exists() else {}
    if {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in head.state_dict().items()
    }:
        head.load_state_dict(weights)
