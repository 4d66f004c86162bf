"""Finds and reads the weights of a model; a model that cannot be read is an InvalidInput."""

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
    """Where transformers finds `model`: a folder, a Python package that ships one, or a Hugging Face id.

    For a bundle, a folder with its restored weights.

    Raises:
        InvalidBundle: a bundle that cannot be trained on.
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
    """The transformer in a `weights_source`, in float32.

    Raises:
        InvalidInput: there is none that can be read.
    """
    with _readable(source):
        return AutoModel.from_pretrained(source, dtype=torch.float32, **options)


def load_tokenizer(source: str) -> PreTrainedTokenizerBase:
    """The tokenizer in a `weights_source`.

    Raises:
        InvalidInput: there is none that can be read.
    """
    with _readable(source):
        tokenizer = AutoTokenizer.from_pretrained(source)
        # Without its files, transformers silently makes a tokenizer that knows no word.
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise OSError("its tokenizer knows no words; are its files there?")
        return tokenizer


def require_transformer_alone(folder: str) -> None:
    """Check that a folder holds a transformer, perhaps a pair head, and no layers that would be left out.

    Raises:
        InvalidInput: it holds other weights too, such as the convolutions of IS-BERT.
    """
    others = [
        path.name
        for path in Path(folder).glob("*.safetensors")
        if not path.name.startswith(("model", "head", "adapter_model"))
    ]
    if others:
        raise InvalidInput(
            f"{folder} holds {others[0]}, layers behind the transformer that would be left out; use the commands of "
            "training.papers with it"
        )


@contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"the model {source!r} cannot be read ({reason:.{REASON_CHARACTERS}}); name a folder with config.json, "
            "model.safetensors and tokenizer.json, a Hugging Face id that can be reached from here, or a bundle"
        ) from error
