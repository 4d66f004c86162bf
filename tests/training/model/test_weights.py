"""A model that cannot be read is named in one line."""

import shutil
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from training.model.weights import load_tokenizer, load_transformer, weights_source

pytestmark = pytest.mark.training


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b""),
        ("config.json", b"anchor,candidate,label\n"),
        ("config.json", b'{"model_type": "no such model"}'),
        ("config.json", None),
        ("model.safetensors", b"weights"),
        ("model.safetensors", None),
    ],
)
def test_a_damaged_model_is_named(model: Path, tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = shutil.copytree(model, tmp_path / "damaged")
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(InvalidInput) as raised:
        load_transformer(str(folder))
    assert str(raised.value).startswith(f"the model {str(folder)!r} cannot be read (")
    assert str(raised.value).endswith("a Hugging Face id that can be reached from here, or a bundle")
    assert "\n" not in str(raised.value)


def test_a_model_without_a_tokenizer_is_named(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "wordless")
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()
    with pytest.raises(InvalidInput, match="its tokenizer has an empty vocabulary"):
        load_tokenizer(str(folder))


def test_an_impossible_model_name_is_named() -> None:
    with pytest.raises(InvalidInput, match="the model 'no such model!' cannot be read"):
        load_transformer(weights_source("no such model!"))
