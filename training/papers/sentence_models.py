"""The encoders of methods on sentences: QuickThoughts' two encoders, and IS-BERT's convolutions.

`encode` and `encode_from_lower_states` return the inputs of the loss in training mode, and the vectors of the texts in
evaluation mode.
"""

import copy
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from training.export.graph import SentenceEncoder, load_exportable
from training.model.pair_model import NoHead, PairModel, mean_over_tokens
from training.papers.convolutions import TokenConvolutions, load_convolutions, save_convolutions


class TwoEncoders(PairModel):
    """QuickThoughts: f encodes a sentence, g its neighbours; in training mode, both vectors concatenated, `[r, 2 d]`.

    The paper uses the concatenated vectors. Here the vector of a text is that of f, with the dimension and cost of
    every other method, and g is dropped after training.
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
    """IS-BERT: convolutions between hidden states and mean; in training mode, token states `[r, max_tokens, d]`."""

    def __init__(
        self, transformer: PreTrainedModel, convolutions: TokenConvolutions, *, max_tokens: int, frozen_layers: int = 0
    ) -> None:
        super().__init__(transformer, NoHead(), frozen_layers=frozen_layers)
        self.convolutions = convolutions
        self.max_tokens = max_tokens

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.convolutions.dimension

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The convolved states `[r, l, dimension]`."""
        if self.frozen_layers:
            return self.upper_states(self.lower_states(input_ids, attention_mask), attention_mask)
        convolved: Tensor = self.convolutions(super().states(input_ids, attention_mask), attention_mask)
        return convolved

    def upper_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the convolved states, computed from `lower_states`."""
        convolved: Tensor = self.convolutions(super().upper_states(lower_states, attention_mask), attention_mask)
        return convolved

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return token states (training mode) or vectors (evaluation mode) of int64 `[r, l]` ids and mask."""
        return self._outputs(self.states(input_ids, attention_mask), attention_mask)

    def encode_from_lower_states(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the same outputs, computed from `lower_states`."""
        return self._outputs(self.upper_states(lower_states, attention_mask), attention_mask)

    def _outputs(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        if self.training:
            return nn.functional.pad(states.float(), (0, 0, 0, self.max_tokens - states.shape[1]))
        return mean_over_tokens(states, attention_mask)

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
        """The length of a vector."""
        return self.convolutions.dimension

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The convolved states `[batch, length, dimension]`."""
        convolved: Tensor = self.convolutions(super().states(input_ids, attention_mask), attention_mask)
        return convolved


def load_sentence_encoder(source: str) -> SentenceEncoder:
    """Return the encoder in `source`, with its convolutions if it has any, in evaluation mode, float32, on the CPU."""
    convolutions, transformer = load_convolutions(Path(source)), load_exportable(source)
    encoder = ConvolvedSentenceEncoder(transformer, convolutions) if convolutions else SentenceEncoder(transformer)
    encoder.eval()
    return encoder
