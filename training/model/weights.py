"""Finds and reads the weights of a model; raises InvalidInput if they cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from similarity.bundle import is_bundle
from similarity.errors import InvalidInput
from training.model.restore import restored

REASON_CHARACTERS = 200


def weights_source(model: str) -> str:
    """Return where transformers finds `model`: a folder, the folder in a Python package, or a Hugging Face id.

    For a bundle, return a folder with its restored weights.

    Raises:
        InvalidBundle: the bundle cannot be restored.
    """
    if is_bundle(model):
        return str(restored(Path(model).resolve()))
    if Path(model).is_dir():
        return model
    package = find_spec(model) if model.isidentifier() else None
    if package is not None and package.origin is not None:
        shipped = Path(package.origin).parent / "model"
        if shipped.is_dir():
            return str(shipped)
    return model


def load_transformer(source: str, **options: Any) -> PreTrainedModel:
    """Return the transformer in a `weights_source`, in float32.

    Raises:
        InvalidInput: it cannot be read.
    """
    with _readable(source):
        return AutoModel.from_pretrained(source, dtype=torch.float32, **options)


def load_tokenizer(source: str) -> PreTrainedTokenizerBase:
    """Return the tokenizer in a `weights_source`.

    Raises:
        InvalidInput: it cannot be read.
    """
    with _readable(source):
        tokenizer = AutoTokenizer.from_pretrained(source)
        # If the tokenizer's files are missing, transformers silently returns one with special tokens only.
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise OSError("its tokenizer has an empty vocabulary; its files may be missing")
        return tokenizer


def require_transformer_alone(folder: str) -> None:
    """Check that a folder contains only weights of a transformer and perhaps of a pair head.

    Raises:
        InvalidInput: it contains other weights, such as the convolutions of IS-BERT, which would be ignored.
    """
    others = [
        path.name
        for path in Path(folder).glob("*.safetensors")
        if not path.name.startswith(("model", "head", "adapter_model"))
    ]
    if others:
        raise InvalidInput(
            f"{folder} contains {others[0]}, layers after the transformer that would be ignored; use the commands of "
            "training.papers for this model"
        )


@contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"the model {source!r} cannot be read ({reason:.{REASON_CHARACTERS}}); pass a folder with config.json, "
            "model.safetensors and tokenizer.json, a Hugging Face id that can be reached from here, or a bundle"
        ) from error
