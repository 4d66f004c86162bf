"""A bundle restored in torch gives the bundle's vectors, and can be trained on."""

import json
import shutil
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from similarity.bundle import CARD_FILE, MODEL_FILE, ModelBundle, seed_folder, trained_on_path, write_manifest
from similarity.encoder import TextEncoder
from similarity.errors import InvalidBundle, InvalidInput
from similarity.model.calibration import Calibration
from similarity.text import DEFAULT_SETTINGS, TextSettings
from tests.training.tiny_model import WORDS, topic_pairs, write_tiny_model
from training.config import TrainSettings
from training.data.pairs import read_pairs
from training.data.splits import split_by_anchor
from training.data.texts import Texts
from training.export.bundle_export import ExportSettings, export
from training.export.graph import load_encoder
from training.model.pair_model import load_pair_model
from training.model.restore import restored
from training.options import settings_of
from training.papers.sentence_models import load_sentence_encoder, new_convolutions, save_convolutions
from training.run.journal import read_journal

pytestmark = pytest.mark.training

TEXTS = ["", "boats", "the company makes jam", " ".join(WORDS), "the company makes saws glue and boats"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With biases as training leaves them: an exporter keeps only one of several that are all zero."""
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


def exported(
    model: Path,
    sample: Path,
    output: Path,
    precision: str = "int8",
    text_settings: TextSettings = DEFAULT_SETTINGS,
    load: Any = None,
) -> ModelBundle:
    settings = ExportSettings(
        model=str(model),
        base_model="our/base",
        licence="none",
        training_data="none",
        precision=precision,
        max_tokens=32,
        text_settings=text_settings,
    )
    return export(settings, output=output, sample=sample, load=load or load_encoder, log=lambda line: None)


@pytest.fixture(scope="module")
def bundle(weights: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelBundle:
    return exported(weights, sample, tmp_path_factory.mktemp("bundles"))


def torch_vectors(source: str, texts: list[str]) -> NDArray[np.float32]:
    model = load_pair_model(TrainSettings(model=source)).eval()
    numbered = Texts(texts, source, max_tokens=32)
    with torch.no_grad():
        vectors = model.encode(*numbered.padded(np.arange(len(texts))))
        found: NDArray[np.float32] = torch.nn.functional.normalize(vectors, dim=1).numpy()
    return found


def test_float32_weights_come_back_as_they_were(weights: Path, sample: Path, tmp_path: Path) -> None:
    before = AutoModel.from_pretrained(weights)
    after = AutoModel.from_pretrained(restored(exported(weights, sample, tmp_path, "float32").folder))
    for name, values in before.state_dict().items():
        if not name.startswith("pooler."):
            np.testing.assert_array_equal(after.state_dict()[name], values, err_msg=name)
    sizes = ("num_attention_heads", "layer_norm_eps", "hidden_act", "intermediate_size", "max_position_embeddings")
    for size in sizes:
        assert getattr(after.config, size) == pytest.approx(getattr(before.config, size))


def test_int8_weights_come_back_within_a_rounding_step(weights: Path, bundle: ModelBundle) -> None:
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


def copied(bundle: ModelBundle, folder: Path, *, listed: str) -> ModelBundle:
    """The bundle with a list of companies of its own beside it."""
    copy = ModelBundle.load(shutil.copytree(bundle.folder, folder / "begun" / bundle.folder.name))
    trained_on_path(copy.folder).write_text("\n".join(listed.split()))
    return copy


def export_by_command(given: str, output: Path) -> Path:
    """The folder of the bundle that the command makes."""
    from training.export.__main__ import main

    main([*given.split(), "--output", str(output)])
    (folder,) = (path for path in output.iterdir() if path.is_dir())
    return folder


def train(begin_with: ModelBundle | Path, pairs: Path, output: Path, rate: float, *more: str) -> None:
    from training.train import main

    source = begin_with.folder if isinstance(begin_with, ModelBundle) else begin_with
    options = "--method cross-entropy --selection 4 --steps 4 --evaluate-every 2 --batch-pairs 16 --precision float32"
    given = f"--model {source} --pairs {pairs} --output {output} --learning-rate {rate}"
    main([*given.split(), *options.split(), *more])


def test_a_run_begins_with_a_bundle_and_its_export_says_so(
    bundle: ModelBundle, pairs: Path, sample: Path, tmp_path: Path
) -> None:
    begun = copied(bundle, tmp_path, listed="c1 c2")
    (tmp_path / "own.txt").write_text("c2\nc3\n")
    train(begun, pairs, tmp_path / "run", 1e-2)
    shutil.rmtree(begun.folder.parent)  # the run has written down what it began with
    run, own = tmp_path / "run/best", tmp_path / "own.txt"
    folder = export_by_command(f"--model {run} --sample {sample} --companies-trained-on {own}", tmp_path / "models")
    found = ModelBundle.load(folder)
    assert found.encoder_id != bundle.encoder_id
    assert found.manifest.base_model == "our/base"
    assert found.manifest.max_tokens == bundle.manifest.max_tokens == 32
    assert f"began with bundle {bundle.encoder_id}" in found.manifest.training_data
    assert bundle.encoder_id in (folder / CARD_FILE).read_text()
    assert trained_on_path(folder).read_text().split() == ["c1", "c2", "c3"]


def test_a_bundle_of_a_bundle_keeps_the_base_model_and_both_lists(
    bundle: ModelBundle, pairs: Path, sample: Path, tmp_path: Path
) -> None:
    found = copied(bundle, tmp_path, listed="c1")
    for own in ("c2", "c3"):
        (tmp_path / "own.txt").write_text(own)
        train(found, pairs, tmp_path / own, 1e-2)
        given = f"--model {tmp_path / own / 'best'} --sample {sample} --companies-trained-on {tmp_path / 'own.txt'}"
        found = ModelBundle.load(export_by_command(given, tmp_path / f"models-{own}"))
    assert found.manifest.base_model == "our/base"
    assert trained_on_path(found.folder).read_text().split() == ["c1", "c2", "c3"]


def test_the_companies_of_its_labelled_pairs_are_listed_with_the_bundle(
    weights: Path, sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = topic_pairs()
    labels = [f"c{a},c{b},{int(same)}" for a, b, same in zip(found.left, found.right, found.targets[:, 0], strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["company_a,company_b,label", *labels, "c0,c1,"]))
    train(weights, tmp_path / "pairs.csv", tmp_path / "run", 1e-2, "--companies", str(sample))
    held_out = split_by_anchor(
        read_pairs(tmp_path / "pairs.csv", companies=sample), selection=4, seed=TrainSettings().seed
    )[1]
    folder = export_by_command(f"--model {tmp_path / 'run/best'} --sample {sample}", tmp_path / "models")
    listed = trained_on_path(folder).read_text().split()
    assert len(listed) > 4
    assert set(listed).isdisjoint(held_out.anchors)
    assert f"{len(listed)} training companies" in capsys.readouterr().out


def test_a_bundle_exported_again_keeps_its_facts(
    weights: Path, sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = exported(weights, sample, tmp_path, text_settings=TextSettings(drop_places=True))
    calibrated = replace(first.manifest, calibration=Calibration(slope=9.0, intercept=-4.0))
    bundle = write_manifest(first.folder, calibrated)
    trained_on_path(bundle.folder).write_text("c1\nc2\n")
    folder = export_by_command(f"--model {bundle.folder} --sample {sample} --precision float32", tmp_path / "again")
    again = ModelBundle.load(folder).manifest
    for fact in ("base_model", "training_data", "max_tokens", "dimension", "text_settings"):
        assert getattr(again, fact) == getattr(bundle.manifest, fact)
    assert trained_on_path(folder).read_text().split() == ["c1", "c2"]
    assert "our/base, licence none |" in (folder / CARD_FILE).read_text()
    assert "the calibration of the bundle is not copied" in capsys.readouterr().out


def test_a_bundle_is_not_replaced_by_its_own_export(bundle: ModelBundle, sample: Path, tmp_path: Path) -> None:
    begun = copied(bundle, tmp_path, listed="c1")
    with pytest.raises(SystemExit, match=r"contains the bundle to export; choose another folder"):
        export_by_command(f"--model {begun.folder} --sample {sample}", begun.folder.parent)


def test_a_killed_run_does_not_continue_from_another_start(
    bundle: ModelBundle, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = copied(bundle, tmp_path, listed="c1")
    train(begun, pairs, tmp_path / "run", 1e-2, "--checkpoint-every", "2")
    capsys.readouterr()
    train(begun, pairs, tmp_path / "run", 1e-2, "--checkpoint-every", "2")
    assert "continuing after step 4" in capsys.readouterr().out
    assert sum(line["step"] == 0 for line in read_journal(tmp_path / "run/metrics.jsonl")) == 1
    trained_on_path(begun.folder).write_text("c9")
    with pytest.raises(SystemExit, match=r"began with another model than the one at .* now"):
        train(begun, pairs, tmp_path / "run", 1e-2, "--checkpoint-every", "2")


def test_a_bundle_is_not_judged_by_companies_that_its_start_was_trained_on(
    bundle: ModelBundle, sample: Path, tmp_path: Path
) -> None:
    begun = copied(bundle, tmp_path, listed="c1")
    (tmp_path / "dev.tsv").write_text("anchor\tcandidate\tgrade\nc1\tc2\t2\nc1\tc3\t0\n")
    with pytest.raises(SystemExit, match=r"training has seen 1 of the 1 anchors of dev, such as c1"):
        export_by_command(
            f"--model {begun.folder} --sample {sample} --judged {tmp_path} --companies {sample}", tmp_path / "models"
        )


def test_max_tokens_defaults_to_that_of_the_bundle(bundle: ModelBundle) -> None:
    assert settings_of(Namespace(model=str(bundle.folder)), TrainSettings).max_tokens == 32
    assert settings_of(Namespace(model=str(bundle.folder), max_tokens=20), TrainSettings).max_tokens == 20
    assert settings_of(Namespace(model=str(bundle.folder)), TrainSettings, {"max_tokens": 64}).max_tokens == 64
    assert settings_of(Namespace(model="minilm-l6"), TrainSettings).max_tokens == 128


def test_a_bundle_with_another_text_preparation_is_refused(
    weights: Path, pairs: Path, sample: Path, tmp_path: Path
) -> None:
    other = exported(weights, sample, tmp_path, text_settings=TextSettings(drop_places=True))
    with pytest.raises(SystemExit, match=r"refused: the text settings of .* differ from those of training"):
        train(other, pairs, tmp_path / "run", 1e-2)


def test_a_run_is_made_again_in_its_folder_but_no_other(
    weights: Path, bundle: ModelBundle, pairs: Path, tmp_path: Path
) -> None:
    def starts() -> int:
        return sum(line["step"] == 0 for line in read_journal(tmp_path / "run/metrics.jsonl"))

    for times in (1, 2):
        train(bundle, pairs, tmp_path / "run", 1e-12)
        assert starts() == 1, times
    with pytest.raises(SystemExit, match="other settings or pairs"):
        train(weights, pairs, tmp_path / "run", 1e-12)


def test_a_run_logs_the_scores_of_its_bundle_and_whether_they_were_beaten(
    bundle: ModelBundle, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(bundle, pairs, tmp_path / "still", 1e-12)
    assert [line["step"] for line in read_journal(tmp_path / "still/metrics.jsonl") if "auc" in line] == [0, 2, 4]
    assert "no step beats the bundle from which the run started" in capsys.readouterr().out
    train(bundle, pairs, tmp_path / "learnt", 1e-2)
    assert "no step beats" not in capsys.readouterr().out


def test_the_shipped_bundle_has_a_name_of_its_own() -> None:
    assert TrainSettings(model="shipped").source == str(seed_folder())


def test_another_architecture_is_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    """Its names are BERT's, and its vectors are not: here positions are subtracted."""
    graph = onnx.load(bundle.folder / MODEL_FILE)
    (positions,) = (node.output[0] for node in graph.graph.node if any("position_emb" in name for name in node.input))
    (addition,) = (node for node in graph.graph.node if positions in node.input)
    addition.op_type = "Sub"
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / MODEL_FILE).write_bytes(graph.SerializeToString())
    (folder / "tokenizer.json").write_bytes(bundle.read("tokenizer.json"))
    other = write_manifest(folder, bundle.manifest)
    with pytest.raises(InvalidBundle, match=r"training cannot start from .* pass the weights it was exported from"):
        restored(other.folder)


def test_layers_behind_the_transformer_are_refused(weights: Path, sample: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(weights, tmp_path / "is-bert"))
    save_convolutions(new_convolutions(16, windows=(1, 3, 5), seed=1), folder)
    with pytest.raises(InvalidInput, match=r"contains cnn.safetensors, layers after the transformer"):
        exported(folder, sample, tmp_path / "bundles")
    bundle = exported(folder, sample, tmp_path / "bundles", load=load_sentence_encoder)
    with pytest.raises(InvalidBundle, match=r"\(it has layers after the transformer\)"):
        restored(bundle.folder)


def test_a_model_that_was_never_trained_is_refused(sample: Path, tmp_path: Path) -> None:
    bundle = exported(write_tiny_model(tmp_path / "fresh"), sample, tmp_path)
    with pytest.raises(InvalidBundle, match=r"its graph has no .*query.bias.* pass the weights"):
        restored(bundle.folder)


def test_a_bundle_without_berts_names_is_refused(bundle: ModelBundle, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / MODEL_FILE).write_bytes(bundle.read(MODEL_FILE).replace(b"embeddings.LayerNorm", b"embeddings.LayerMorn"))
    (folder / "tokenizer.json").write_bytes(bundle.read("tokenizer.json"))
    with pytest.raises(InvalidBundle, match=r"its graph has no embeddings.LayerNorm.bias"):
        restored(write_manifest(folder, bundle.manifest).folder)
