"""A bundle turned back into torch gives the vectors that the bundle gives, and can be trained on."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.bundle import CARD_FILE, MODEL_FILE, ModelBundle, seed_folder, write_manifest
from similarity.encoder import TextEncoder
from similarity.errors import InvalidBundle
from similarity.generations.gate import trained_on_path
from tests.training.tiny_model import WORDS, topic_pairs, write_tiny_model

pytestmark = pytest.mark.training

TEXTS = ["", "boats", "the company makes jam", " ".join(WORDS), "the company makes saws glue and boats"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With biases as training leaves them: an exporter keeps only one of several that are all zero."""
    import torch
    from transformers import AutoModel

    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")
    model = AutoModel.from_pretrained(folder)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=random))
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "sample.jsonl"
    lines = [{"id": f"c{n}", "name": f"Firm {n}", "description": text} for n, text in enumerate(topic_pairs().texts)]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def exported(model: Path, sample: Path, output: Path, precision: str = "int8") -> ModelBundle:
    from training.bundle_export import ExportSettings, export

    settings = ExportSettings(
        model=str(model),
        base_model="our/base",
        licence="none",
        training_data="none",
        precision=precision,
        max_tokens=32,
    )
    return export(settings, output=output, sample=sample, log=lambda line: None)


@pytest.fixture(scope="module")
def bundle(weights: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelBundle:
    return exported(weights, sample, tmp_path_factory.mktemp("bundles"))


def torch_vectors(source: str, texts: list[str]) -> NDArray[np.float32]:
    import torch

    from training.model import load_pair_model
    from training.texts import Texts

    model = load_pair_model(source, classes=0, features="u,v,|u-v|", symmetric=True).eval()
    numbered = Texts(texts, source, max_tokens=32)
    with torch.no_grad():
        vectors = model.encode(*numbered.padded(np.arange(len(texts))))
        found: NDArray[np.float32] = torch.nn.functional.normalize(vectors, dim=1).numpy()
    return found


def test_float32_weights_come_back_as_they_were(weights: Path, sample: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    from training.restore import restored

    before = AutoModel.from_pretrained(weights)
    after = AutoModel.from_pretrained(restored(exported(weights, sample, tmp_path, "float32").folder))
    for name, values in before.state_dict().items():
        if not name.startswith("pooler."):
            np.testing.assert_array_equal(after.state_dict()[name], values, err_msg=name)
    sizes = ("num_attention_heads", "layer_norm_eps", "hidden_act", "intermediate_size", "max_position_embeddings")
    for size in sizes:
        assert getattr(after.config, size) == pytest.approx(getattr(before.config, size))


def test_int8_weights_come_back_as_near_as_int8_goes(weights: Path, bundle: ModelBundle) -> None:
    from transformers import AutoModel

    from training.restore import restored

    before = AutoModel.from_pretrained(weights).state_dict()
    after = AutoModel.from_pretrained(restored(bundle.folder)).state_dict()
    for name, values in before.items():
        if not name.startswith("pooler."):
            # Half a step of 127 in the largest column, and as much again for what smoothing did to its rows.
            np.testing.assert_allclose(after[name], values, atol=float(values.abs().max()) / 100, err_msg=name)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_restored_vectors_and_tokens_are_the_bundles(
    weights: Path, sample: Path, tmp_path: Path, precision: str
) -> None:
    again = exported(weights, sample, tmp_path, precision)
    cosines = np.einsum("nd,nd->n", torch_vectors(str(again.folder), TEXTS), TextEncoder(again).encode(TEXTS))
    assert cosines.min() >= (1 - 1e-5 if precision == "float32" else 0.99)


def test_the_shipped_bundle_is_restored() -> None:
    texts = ["The company brews beer.", "A bank for small firms in Kenya.", "Short.", "Électricité et gaz " * 9]
    shipped = TextEncoder(ModelBundle.load(seed_folder()))
    cosines = np.einsum("nd,nd->n", torch_vectors(str(seed_folder()), texts), shipped.encode(texts))
    assert cosines.min() >= 0.995


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = topic_pairs()
    rows = ["text_a\ttext_b\tlabel"]
    rows += [
        f"{found.texts[a]}\t{found.texts[b]}\t{'positive' if same else 'negative'}"
        for a, b, same in zip(found.left, found.right, found.targets[:, 0], strict=True)
    ]
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("\n".join(rows))
    return path


def train(bundle: ModelBundle, pairs: Path, output: Path, rate: float) -> None:
    from training.train import main

    options = "--method cross-entropy --selection 4 --steps 4 --evaluate-every 2 --batch-pairs 16 --precision float32"
    given = f"--model {bundle.folder} --pairs {pairs} --output {output} --learning-rate {rate}"
    main([*given.split(), *options.split()])


def test_a_run_begins_with_a_bundle_and_its_export_says_so(
    bundle: ModelBundle, pairs: Path, sample: Path, tmp_path: Path
) -> None:
    from training.export import main

    trained_on_path(bundle.folder).write_text("c1\nc2\n")
    (tmp_path / "own.txt").write_text("c2\nc3\n")
    train(bundle, pairs, tmp_path / "run", 1e-2)
    run, models, own = (tmp_path / name for name in ("run/best", "models", "own.txt"))
    main(f"--model {run} --output {models} --sample {sample} --companies-trained-on {own}".split())
    (folder,) = (path for path in models.iterdir() if path.is_dir())
    found = ModelBundle.load(folder)
    assert found.encoder_id != bundle.encoder_id
    assert found.manifest.base_model == "our/base"
    assert f"began with bundle {bundle.encoder_id}" in found.manifest.training_data
    assert bundle.encoder_id in (folder / CARD_FILE).read_text()
    assert trained_on_path(folder).read_text().split() == ["c1", "c2", "c3"]


def test_a_bundle_exported_again_keeps_its_facts(bundle: ModelBundle, sample: Path, tmp_path: Path) -> None:
    from training.export import main

    main(f"--model {bundle.folder} --output {tmp_path} --sample {sample} --precision float32".split())
    (folder,) = tmp_path.iterdir()
    again = ModelBundle.load(folder).manifest
    for fact in ("base_model", "training_data", "max_tokens", "dimension"):
        assert getattr(again, fact) == getattr(bundle.manifest, fact)


def test_a_run_tells_how_good_the_bundle_was_and_whether_it_was_beaten(
    bundle: ModelBundle, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from training.journal import read_journal

    train(bundle, pairs, tmp_path / "still", 1e-12)
    assert [line["step"] for line in read_journal(tmp_path / "still/metrics.jsonl") if "auc" in line] == [0, 2, 4]
    assert "no step beats the bundle that the run began with" in capsys.readouterr().out
    train(bundle, pairs, tmp_path / "learnt", 1e-2)
    assert "no step beats" not in capsys.readouterr().out


def test_the_shipped_bundle_has_a_name_of_its_own() -> None:
    from training.config import TrainSettings

    assert TrainSettings(model="shipped").source == str(seed_folder())


def test_another_architecture_is_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    """Its names are BERT's, and its vectors are not: here positions are subtracted."""
    import onnx

    from training.restore import restored

    graph = onnx.load(bundle.folder / MODEL_FILE)
    (positions,) = (node.output[0] for node in graph.graph.node if any("position_emb" in name for name in node.input))
    (addition,) = (node for node in graph.graph.node if positions in node.input)
    addition.op_type = "Sub"
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / MODEL_FILE).write_bytes(graph.SerializeToString())
    (folder / "tokenizer.json").write_bytes(bundle.read("tokenizer.json"))
    other = write_manifest(folder, bundle.manifest)
    with pytest.raises(InvalidBundle, match=r"cannot be trained on .* name the weights it was exported from"):
        restored(other.folder)


def test_a_model_that_was_never_trained_is_refused(sample: Path, tmp_path: Path) -> None:
    from training.restore import restored

    bundle = exported(write_tiny_model(tmp_path / "fresh"), sample, tmp_path)
    with pytest.raises(InvalidBundle, match=r"its graph has no .*query.bias.* name the weights"):
        restored(bundle.folder)


def test_a_bundle_without_berts_names_is_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    from training.restore import restored

    folder = tmp_path / "other"
    folder.mkdir()
    (folder / MODEL_FILE).write_bytes(bundle.read(MODEL_FILE).replace(b"embeddings.LayerNorm", b"embeddings.LayerMorn"))
    (folder / "tokenizer.json").write_bytes(bundle.read("tokenizer.json"))
    with pytest.raises(InvalidBundle, match=r"its graph has no embeddings.LayerNorm.bias"):
        restored(write_manifest(folder, bundle.manifest).folder)
