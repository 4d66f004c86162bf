"""Token ids of texts, and their hidden states after the frozen layers, both cached for a whole run."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from similarity.encoder import padded
from training.data.pairs import Integers
from training.model.weights import load_tokenizer, weights_source

TOKENISED_AT_ONCE = 4096


class Texts:
    """Numbered texts and their token ids, special tokens included, truncated to `max_tokens`.

    The texts given to the constructor are numbered in their order; other texts get a number on first use.
    `states` caches the output of the frozen layers by text number, `[length, d]` each.
    """

    def __init__(self, texts: Sequence[str], source: str, *, max_tokens: int) -> None:
        self.tokenizer: PreTrainedTokenizerBase = load_tokenizer(weights_source(source))
        self.max_tokens = max_tokens
        self.tokens: list[NDArray[np.int64]] = []
        self.states: dict[int, Tensor] = {}
        self._numbers: dict[str, int] = {}
        self._add(texts)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> Integers:
        """Number of tokens of each text, `[texts]`."""
        return np.array([len(ids) for ids in self.tokens], dtype=np.int64)

    def numbers(self, texts: Sequence[str]) -> Integers:
        """Return the number of each text; new texts are tokenised."""
        self._add([text for text in dict.fromkeys(texts) if text not in self._numbers])
        return np.array([self._numbers[text] for text in texts], dtype=np.int64)

    def padded(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """Return token ids and 0/1 attention mask of the texts `numbers`, int64 `[numbers, longest]`."""
        input_ids, attention_mask = padded([self.tokens[number] for number in numbers])
        return torch.from_numpy(input_ids), torch.from_numpy(attention_mask)

    def padded_states(self, numbers: Integers) -> Tensor | None:
        """Return cached states `[numbers, longest, d]`, zero for padding; None if a text's states are not cached."""
        if not all(int(number) in self.states for number in numbers):
            return None
        return torch.nn.utils.rnn.pad_sequence([self.states[int(number)] for number in numbers], batch_first=True)

    def _add(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            batch = list(texts[start : start + TOKENISED_AT_ONCE])
            encodings = self.tokenizer(batch, truncation=True, max_length=self.max_tokens, return_attention_mask=False)
            for text, ids in zip(batch, encodings["input_ids"], strict=True):
                self._numbers.setdefault(text, len(self.tokens))
                self.tokens.append(np.array(ids, dtype=np.int64))


def micro_batches_of(numbers: Integers, lengths: Integers, *, tokens: int) -> Iterator[Integers]:
    """Yield the indices of `numbers` as micro-batches of similar length, of at most `tokens` tokens with padding.

    A longer text is a micro-batch of its own. Each index is in exactly one micro-batch.
    """
    order = np.argsort(lengths[numbers], kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[numbers[order[end]]] > tokens:
            yield order[start:end]
            start = end
