"""The dual encoder and its head (PAUSE, section 3.1), and what the encoders of its rivals have besides.

Both texts of a pair go through one transformer; the mean of its last states over real tokens
([CLS] and [SEP] included) is a text's vector. The head turns two vectors into one logit for each class.
What is served later is the cosine of the vectors; the head exists for training.

IS-BERT has convolutions between states and mean; they are part of the encoder and are served.
QuickThoughts trains a second encoder g for the neighbours of what the first, f, encodes. Its paper
joins both vectors; here f's alone is a text's vector, as long and as cheap as every other method's,
and g is dropped after training.
"""

import copy
from pathlib import Path
from typing import Literal, TypeAlias

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from training.config import Features, Windows
from training.model.weights import load_transformer, weights_source
from training.papers.convolutions import (
    CONVOLUTIONS_FILE,
    TokenConvolutions,
    load_convolutions,
    new_convolutions,
    save_convolutions,
)

HEAD_FILE = "head.safetensors"
HIDDEN = 128

View: TypeAlias = Literal["vectors", "two encoders", "tokens"]
"""What a loss sees of each text: its vector `[d]`, its vectors by f and g `[2, d]`, or its tokens' states `[l, d]`."""


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
    """In place of a head where there are no classes: its logits are `[n, 0]`."""

    def forward(self, left: Tensor, _right: Tensor) -> Tensor:
        """No logits at all."""
        return left.new_empty(len(left), 0)


class PairModel(nn.Module):  # type: ignore[misc]
    """Transformer, convolutions if it has them, pooling, and a head where there are classes.

    With `frozen_layers` the embeddings and so many of the lowest layers get no gradient and no
    dropout: `lower_states` of a text never change and can be kept, `pool` goes on from them.
    `view` is what losses see of a text (`outputs`); for "two encoders" `second` is QuickThoughts' g.
    """

    def __init__(
        self,
        transformer: PreTrainedModel,
        head: PairHead | NoHead,
        *,
        frozen_layers: int = 0,
        convolutions: TokenConvolutions | None = None,
        view: View = "vectors",
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.head = head
        self.convolutions = convolutions
        self.view = view
        self.frozen_layers = frozen_layers
        if frozen_layers:
            lower, upper = split_layers(transformer, frozen_layers)
            lower.requires_grad_(False)
            # Not registered: their parameters are the transformer's own.
            self._parts = (lower, upper)
        self.second: PairModel | None = None
        if view == "two encoders":
            twins = copy.deepcopy(transformer), copy.deepcopy(convolutions)
            self.second = PairModel(twins[0], NoHead(), frozen_layers=frozen_layers, convolutions=twins[1])

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.transformer.config.hidden_size) if self.convolutions is None else self.convolutions.dimension

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors float32 `[r, d]`, not normalised, of int64 `[r, l]` ids and mask."""
        return mean_over_tokens(self.states(input_ids, attention_mask), attention_mask)

    def pool(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors float32 `[r, d]` from `lower_states`."""
        return mean_over_tokens(self.upper_states(lower_states, attention_mask), attention_mask)

    def outputs(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """What a loss sees of ids and mask `[r, l]`, by `view`: float32 `[r, d]`, `[r, 2, d]` or `[r, l, d]`."""
        if self.frozen_layers:
            return self.outputs_above(self.lower_states(input_ids, attention_mask), attention_mask)
        if self.view == "tokens":
            return self.states(input_ids, attention_mask).float()
        own = self.encode(input_ids, attention_mask)
        return own if self.second is None else torch.stack([own, self.second.encode(input_ids, attention_mask)], dim=1)

    def outputs_above(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """The same from `lower_states`, which f and g share."""
        if self.view == "tokens":
            return self.upper_states(lower_states, attention_mask).float()
        own = self.pool(lower_states, attention_mask)
        return own if self.second is None else torch.stack([own, self.second.pool(lower_states, attention_mask)], dim=1)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The tokens' states `[r, l, d]` of which a vector is the mean."""
        if self.frozen_layers:
            return self.upper_states(self.lower_states(input_ids, attention_mask), attention_mask)
        states = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states if self.convolutions is None else self.convolutions(states, attention_mask)

    def lower_states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States `[r, l, d]` after the frozen layers: always the same for the same text."""
        lower = self._parts[0].eval()
        with torch.no_grad():
            states: Tensor = lower(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def upper_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """`states` from `lower_states`."""
        upper = self._parts[1].train(self.training)
        states = upper(inputs_embeds=lower_states, attention_mask=attention_mask).last_hidden_state
        return states if self.convolutions is None else self.convolutions(states, attention_mask)

    def parameters_of_texts(self) -> list[nn.Parameter]:
        """The trained parameters that texts go through; the head's are not among them."""
        return [
            value for name, value in self.named_parameters() if value.requires_grad and not name.startswith("head.")
        ]

    def save(self, folder: Path) -> None:
        """Writes the transformer as Hugging Face does, convolutions and head beside it, not the second encoder."""
        self.transformer.save_pretrained(folder)
        for name in (CONVOLUTIONS_FILE, HEAD_FILE):
            (folder / name).unlink(missing_ok=True)  # of another model that was here
        if self.convolutions is not None:
            save_convolutions(self.convolutions, folder)
        weights = {name: value.contiguous() for name, value in self.head.state_dict().items()}
        if weights:
            save_file(weights, folder / HEAD_FILE)


class Unchanged(nn.Module):  # type: ignore[misc]
    """In place of the embeddings of a transformer that is given states instead of ids."""

    def forward(self, *, inputs_embeds: Tensor, **_ignored: object) -> Tensor:
        """What it was given; ids and positions were dealt with below."""
        return inputs_embeds


def split_layers(transformer: PreTrainedModel, layers: int) -> tuple[nn.Module, nn.Module]:
    """Two transformers that share the parameters of one: its first `layers` layers, and the rest.

    Raises:
        ValueError: it is not built like BERT, or has no layer left to train.
    """
    stack = getattr(getattr(transformer, "encoder", None), "layer", None)
    if stack is None or not hasattr(transformer, "embeddings"):
        raise ValueError(
            f"frozen_layers needs a model built like BERT (embeddings, encoder.layer), not {type(transformer).__name__}"
        )
    if not layers < len(stack):
        raise ValueError(f"frozen_layers is {layers} of {len(stack)} layers; leave at least one to train")
    return _with(transformer, stack[:layers]), _with(transformer, stack[layers:], embeddings=Unchanged())


def _with(transformer: PreTrainedModel, layers: nn.ModuleList, **changes: nn.Module) -> nn.Module:
    """The same transformer, its parameters shared, with other layers."""
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


def load_pair_model(
    source: str,
    *,
    classes: int,
    features: Features,
    symmetric: bool,
    frozen_layers: int = 0,
    seed: int = 0,
    view: View = "vectors",
    windows: Windows = "1,3,5",
) -> PairModel:
    """A model for `classes` classes (0: no head) from a Hugging Face id, folder or package.

    A folder's own convolutions are used, and its own head if it fits. A new head, and the new
    convolutions that the view "tokens" needs, are drawn from `seed`.

    Raises:
        ValueError: as `split_layers`.
    """
    folder = weights_source(source)
    transformer = load_transformer(folder)
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)  # BERT's own, which nothing here uses
    hidden = int(transformer.config.hidden_size)
    convolutions = load_convolutions(Path(folder))
    if convolutions is None and view == "tokens":
        convolutions = new_convolutions(hidden, windows=[int(window) for window in windows.split(",")], seed=seed)
    dimension = hidden if convolutions is None else convolutions.dimension
    head: PairHead | NoHead = NoHead()
    if classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = PairHead(dimension, classes, features=features, symmetric=symmetric)
        _use_saved(head, Path(folder) / HEAD_FILE)
    return PairModel(transformer, head, frozen_layers=frozen_layers, convolutions=convolutions, view=view)


def _use_saved(head: nn.Module, path: Path) -> None:
    weights = load_file(path) if path.exists() else {}
    if {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in head.state_dict().items()
    }:
        head.load_state_dict(weights)


def load_weights(model: PairModel, folder: Path) -> None:
    """Gives `model` the weights that `save` wrote into `folder`."""
    saved = load_transformer(str(folder))
    model.transformer.load_state_dict(saved.state_dict())
    convolutions = load_convolutions(folder)
    if model.convolutions is not None and convolutions is not None:
        model.convolutions.load_state_dict(convolutions.state_dict())
    if not isinstance(model.head, NoHead):
        model.head.load_state_dict(load_file(folder / HEAD_FILE))
