"""The encoders of methods on sentences: QuickThoughts' two encoders, and IS-BERT's convolutions.

In training mode `encode` and `pool` return the inputs of the loss; in evaluation mode, a text's vector.
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
    """QuickThoughts: f encodes a sentence, g its neighbours; in training mode both vectors side by side, `[r, 2 d]`.

    The paper joins both vectors for use. Here f's alone is a text's vector, as long and as cheap as every other
    method's, and g is dropped after training.
    """

    def __init__(self, transformer: PreTrainedModel, *, frozen_layers: int = 0) -> None:
        super().__init__(transformer, NoHead(), frozen_layers=frozen_layers)
        self.second = PairModel(copy.deepcopy(transformer), NoHead(), frozen_layers=frozen_layers)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors float32 of int64 `[r, l]` ids and mask."""
        own = super().encode(input_ids, attention_mask)
        return torch.cat([own, self.second.encode(input_ids, attention_mask)], dim=1) if self.training else own

    def pool(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """The same from `lower_states`, which f and g share."""
        own = super().pool(lower_states, attention_mask)
        return torch.cat([own, self.second.pool(lower_states, attention_mask)], dim=1) if self.training else own


class TokenEncoder(PairModel):
    """IS-BERT: convolutions between states and mean; in training mode the tokens' states, `[r, max_tokens, d]`."""

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
        """`states` from `lower_states`."""
        convolved: Tensor = self.convolutions(super().upper_states(lower_states, attention_mask), attention_mask)
        return convolved

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Tokens' states or vectors, by mode, for int64 `[r, l]` ids and mask."""
        return self._of_states(self.states(input_ids, attention_mask), attention_mask)

    def pool(self, lower_states: Tensor, attention_mask: Tensor) -> Tensor:
        """The same from `lower_states`."""
        return self._of_states(self.upper_states(lower_states, attention_mask), attention_mask)

    def _of_states(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        if self.training:
            return nn.functional.pad(states.float(), (0, 0, 0, self.max_tokens - states.shape[1]))
        return mean_over_tokens(states, attention_mask)

    def save(self, folder: Path) -> None:
        """Write the transformer as Hugging Face does, and the convolutions beside it."""
        super().save(folder)
        save_convolutions(self.convolutions, folder)

    def load(self, folder: Path) -> None:
        """Take over the weights that `save` wrote into `folder`."""
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
    """The encoder in `source`, with its convolutions if it has them, ready for inference on the CPU in float32."""
    convolutions, transformer = load_convolutions(Path(source)), load_exportable(source)
    encoder = ConvolvedSentenceEncoder(transformer, convolutions) if convolutions else SentenceEncoder(transformer)
    encoder.eval()
    return encoder
