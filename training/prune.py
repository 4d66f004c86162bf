"""Makes a smaller model from a multilingual one: some of its layers, and the tokens of some scripts.

    python -m training.prune --model intfloat/multilingual-e5-small --layers 0 2 4 6 8 11 \
        --scripts LATIN CJK HIRAGANA KATAKANA HANGUL CYRILLIC --tokens 100000 --output models/pruned

The vocabulary keeps every token of one character of the scripts, so that no word of them becomes unknown, and then the
most probable other tokens. A word whose token is left out is split into shorter tokens. Because layers are missing, the
smaller model must be trained: `python -m training.distil --model models/pruned --translations ...`.

A script is the first word of the Unicode names of its letters (https://www.unicode.org/charts/).
"""

import argparse
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from similarity.errors import InvalidInput
from training.console import refusing, say
from training.model.weights import load_tokenizer, load_transformer, weights_source
from training.options import SEVERAL

TOKENIZER_FILE = "tokenizer.json"
WORD_START = "▁"
"""The first character of a SentencePiece token at the beginning of a word."""


def scripts_of(token: str) -> set[str]:
    """Return the scripts of the letters of a token; none for digits and punctuation.

    >>> sorted(scripts_of("お店a1"))
    ['CJK', 'HIRAGANA', 'LATIN']
    """
    letters = [each for each in token if unicodedata.category(each)[0] in "LM"]
    return {unicodedata.name(each, "UNKNOWN").split()[0].partition("-")[0] for each in letters}


def chosen_tokens(vocabulary: Sequence[tuple[str, float]], *, special: int, scripts: set[str], count: int) -> list[int]:
    """Return the numbers of the tokens to keep, ascending: the first `special`, then the tokens of `scripts` only.

    Among them, single characters come first, then the most probable tokens. `vocabulary`: each token and the logarithm
    of its probability (a unigram model).

    Raises:
        InvalidInput: special tokens and single characters alone are more than `count`.
    """
    numbers = range(len(vocabulary))
    allowed = [each for each in numbers if each < special or scripts_of(vocabulary[each][0]) <= scripts]
    needed = [each for each in allowed if each < special or len(vocabulary[each][0].removeprefix(WORD_START)) <= 1]
    if len(needed) > count:
        raise InvalidInput(f"special tokens and single characters are {len(needed):,}; give at least as many --tokens")
    others = sorted(set(allowed) - set(needed), key=lambda each: -vocabulary[each][1])
    return sorted([*needed, *others[: count - len(needed)]])


def prune_tokenizer(content: dict[str, Any], *, scripts: set[str], count: int) -> tuple[dict[str, Any], list[int]]:
    """Return a tokenizer of `count` tokens at most, and the numbers that its tokens had in `content`.

    Raises:
        InvalidInput: it is not a unigram model, or as `chosen_tokens`.
    """
    model = content["model"]
    if model.get("type") != "Unigram":
        raise InvalidInput(f"the tokenizer is of type {model.get('type')}; only unigram models can be pruned")
    vocabulary = [(token, score) for token, score in model["vocab"]]
    added = [each for each in content["added_tokens"] if each["content"] != "<mask>"]
    special = 1 + max((each["id"] for each in added), default=-1)
    kept = chosen_tokens(vocabulary, special=special, scripts=scripts, count=count)
    pruned = {**model, "vocab": [model["vocab"][number] for number in kept]}
    return {**content, "model": pruned, "added_tokens": added}, kept


def prune_transformer(transformer: PreTrainedModel, *, layers: Sequence[int], tokens: Sequence[int]) -> PreTrainedModel:
    """Reduce the transformer to these layers and the embeddings of these tokens, and return it.

    Raises:
        InvalidInput: it is not built like BERT, or a layer does not exist.
    """
    stack = getattr(getattr(transformer, "encoder", None), "layer", None)
    if stack is None or not all(0 <= each < len(stack) for each in layers):
        raise InvalidInput("give layers of a model that is built like BERT, from 0")
    transformer.encoder.layer = nn.ModuleList([stack[each] for each in layers])
    old = transformer.embeddings.word_embeddings
    new = nn.Embedding(len(tokens), old.embedding_dim, padding_idx=old.padding_idx)
    with torch.no_grad():
        new.weight.copy_(old.weight[torch.tensor(list(tokens))])
    transformer.embeddings.word_embeddings = new
    transformer.config.num_hidden_layers = len(layers)
    transformer.config.vocab_size = len(tokens)
    return transformer


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and write the smaller model."""
    parser = argparse.ArgumentParser(description="Make a smaller model of a multilingual one.")
    add = parser.add_argument
    add("--model", required=True, help="a folder or a Hugging Face id, with a unigram tokenizer")
    add("--layers", type=int, **SEVERAL, required=True, help="layers to keep, from 0")
    add("--scripts", **SEVERAL, required=True, help="scripts to keep, such as LATIN CJK HIRAGANA")
    add("--tokens", type=int, required=True, help="how many tokens to keep")
    add("--output", type=Path, required=True, help="folder of the smaller model")
    options = parser.parse_args(arguments)
    with refusing():
        source = weights_source(options.model)
        options.output.mkdir(parents=True, exist_ok=True)
        load_tokenizer(source).save_pretrained(options.output)
        file = options.output / TOKENIZER_FILE
        content = json.loads(file.read_text(encoding="utf-8"))
        content, kept = prune_tokenizer(content, scripts=set(options.scripts), count=options.tokens)
        file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        model = prune_transformer(load_transformer(source), layers=options.layers, tokens=kept)
        model.save_pretrained(options.output)
        parameters = sum(each.numel() for each in model.parameters())
        say(f"{len(options.layers)} layers, {len(kept):,} tokens, {parameters:,} parameters in {options.output}")


if __name__ == "__main__":
    main()
