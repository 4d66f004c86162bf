"""The convolutions of IS-BERT (Zhang et al. 2020) between a transformer and the mean over tokens."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

CONVOLUTIONS_FILE = "cnn.safetensors"
FILTERS = 256


class TokenConvolutions(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """New states of tokens from the windows around them: `filters` numbers for each of the (odd) `windows`, ReLU.

    The length stays. Padding counts as zeros, as what lies beyond the ends of a text does, so that it
    changes nothing.
    """

    def __init__(self, dimension: int, *, windows: Sequence[int], filters: int = FILTERS) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(dimension, filters, window, padding=window // 2) for window in windows)

    @property
    def dimension(self) -> int:
        """The length of a token's new state."""
        return sum(int(layer.out_channels) for layer in self.layers)

    def forward(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """New states `[r, l, dimension]` of states `[r, l, d]`; those of padding mean nothing."""
        channels = (states * attention_mask.unsqueeze(-1).to(states.dtype)).transpose(1, 2)
        return torch.cat([torch.relu(layer(channels)) for layer in self.layers], dim=1).transpose(1, 2)


def new_convolutions(dimension: int, *, windows: Sequence[int], seed: int) -> TokenConvolutions:
    """Convolutions of random weights, drawn from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TokenConvolutions(dimension, windows=windows)


def save_convolutions(convolutions: TokenConvolutions, folder: Path) -> None:
    """Writes them beside the weights of the transformer in `folder`."""
    weights = {name: value.contiguous() for name, value in convolutions.state_dict().items()}
    save_file(weights, folder / CONVOLUTIONS_FILE)


def load_convolutions(folder: Path) -> TokenConvolutions | None:
    """The convolutions that `save_convolutions` wrote into `folder`; None without any."""
    path = folder / CONVOLUTIONS_FILE
    if not path.exists():
        return None
    weights = load_file(path)
    kernels = [weights[f"layers.{number}.weight"] for number in range(len(weights) // 2)]
    filters, dimension, _ = kernels[0].shape
    convolutions = TokenConvolutions(dimension, windows=[kernel.shape[2] for kernel in kernels], filters=filters)
    convolutions.load_state_dict(weights)
    return convolutions
