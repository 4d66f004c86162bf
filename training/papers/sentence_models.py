"""The encoders of methods on sentences: QuickThoughts' two encoders, and IS-BERT's convolutions.

`encode` and `encode_from_lower_states` return the inputs of the loss in training mode, and the vectors of the texts in
evaluation mode.
"""

import copy
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from training.export.graph import SentenceEncoder, load_exportable
from training.model.pair_model import NoHead, PairModel, mean_over_tokens

CONVOLUTIONS_FILE = "cnn.safetensors"
FILTERS = 256


class TokenConvolutions(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """IS-BERT's layers between transformer and mean: `filters` ReLU convolutions for each of the (odd) `windows`.

    The length does not change. Padding tokens count as zeros, as positions beyond the ends of a text do, so that
    padding does not change the result.
    """

    def __init__(self, dimension: int, *, windows: Sequence[int], filters: int = FILTERS) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(dimension, filters, window, padding=window // 2) for window in windows)

    @property
    def dimension(self) -> int:
        """The dimension of a convolved state."""
        return sum(int(layer.out_channels) for layer in self.layers)

    def forward(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return states `[r, l, dimension]` of states `[r, l, d]`; those of padding tokens are undefined."""
        channels = (states * attention_mask.unsqueeze(-1).to(states.dtype)).transpose(1, 2)
        return torch.cat([torch.relu(layer(channels)) for layer in self.layers], dim=1).transpose(1, 2)


def new_convolutions(dimension: int, *, windows: Sequence[int], seed: int) -> TokenConvolutions:
    """Return convolutions with random weights drawn from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TokenConvolutions(dimension, windows=windows)


def save_convolutions(convolutions: TokenConvolutions, folder: Path) -> None:
    """Write the convolutions to the folder of the transformer's weights."""
    weights = {name: value.contiguous() for name, value in convolutions.state_dict().items()}
    save_file(weights, folder / CONVOLUTIONS_FILE)


def load_convolutions(folder: Path) -> TokenConvolutions | None:
    """Return the convolutions that `save_convolutions` wrote to `folder`; None if there are none."""
    path = folder / CONVOLUTIONS_FILE
    if not path.exists():
        return None
    weights = load_file(path)
    kernels = [weights[f"layers.{number}.weight"] for number in range(len(weights) // 2)]
    filters, dimension, _ = kernels[0].shape
    convolutions = TokenConvolutions(dimension, windows=[kernel.shape[2] for kernel in kernels], filters=filters)
    convolutions.load_state_dict(weights)
    return convolutions


class TwoEncoders(PairModel):
    """QuickThoughts: f encodes a sentence, g its neighbours; in training mode, both vectors concatenated, `[r, 2 d]`.

    The paper uses the concatenated vectors. Here f alone gives the vector of a text, so that dimension and cost are as
    in the other methods, and g is dropped after training.
    """

    def __init__(self, transformer: PreTrainedModel, *, frozen_layers: int = 0) -> None:
        super().__init__(transformer, NoHead(), frozen_layers=frozen_layers)
        self.second = PairModel(copy.deepcopy(transformer), NoHead(), frozen_layers=frozen_layers)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return float32 vectors of int64 `[r, l]` ids and mask."""
        first = super().encode(input_ids, attention_mask)
        return torch.cat([first, self.second.encode(input_ids, attention_mask)], dim=1) if self.training else first

    def encode_from_lower_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the same vectors, computed from `lower_states`, which f and g share."""
        first = super().encode_from_lower_states(lower_states, attention_mask)
        if not self.training:
            return first
        return torch.cat([first, self.second.encode_from_lower_states(lower_states, attention_mask)], dim=1)


class TokenEncoder(PairModel):
    """IS-BERT: convolutions between hidden states and mean; in training, token states `[r, max_tokens, dimension]`."""

    def __init__(
        self, transformer: PreTrainedModel, convolutions: TokenConvolutions, *, max_tokens: int, frozen_layers: int = 0
    ) -> None:
        super().__init__(transformer, NoHead(), frozen_layers=frozen_layers)
        self.convolutions = convolutions
        self.max_tokens = max_tokens

    @property
    def dimension(self) -> int:
        """The dimension of a vector."""
        return self.convolutions.dimension

    def pooled(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the convolved token states (training mode) or their means (evaluation mode)."""
        convolved = self.convolutions(states, attention_mask)
        if self.training:
            return nn.functional.pad(convolved.float(), (0, 0, 0, self.max_tokens - states.shape[1]))
        return mean_over_tokens(convolved, attention_mask)

    def save(self, folder: Path) -> None:
        """Write the transformer in Hugging Face's format, and the convolutions to the same folder."""
        super().save(folder)
        save_convolutions(self.convolutions, folder)

    def load(self, folder: Path) -> None:
        """Load the weights that `save` wrote to `folder`."""
        super().load(folder)
        saved = load_convolutions(folder)
        if saved is not None:
            self.convolutions.load_state_dict(saved.state_dict())


class ConvolvedSentenceEncoder(SentenceEncoder):
    """A SentenceEncoder with IS-BERT's convolutions, for the ONNX graph."""

    def __init__(self, transformer: PreTrainedModel, convolutions: TokenConvolutions) -> None:
        super().__init__(transformer)
        self.convolutions = convolutions

    @property
    def dimension(self) -> int:
        """The dimension of a vector."""
        return self.convolutions.dimension

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the convolved states `[batch, length, dimension]`."""
        convolved: Tensor = self.convolutions(super().states(input_ids, attention_mask), attention_mask)
        return convolved


def load_sentence_encoder(source: str) -> SentenceEncoder:
    """Return the encoder in `source`, with its convolutions if it has any, in evaluation mode, float32, on the CPU."""
    convolutions, transformer = load_convolutions(Path(source)), load_exportable(source)
    encoder = ConvolvedSentenceEncoder(transformer, convolutions) if convolutions else SentenceEncoder(transformer)
    encoder.eval()
    return encoder
