"""Export gives the same vectors as torch, or nothing at all. Runs on a transformer of random weights."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, BertTokenizerFast

from similarity.bundle import ModelBundle
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from similarity.model.onnxruntime_session import OnnxRuntimeSession
from similarity.text import DEFAULT_SETTINGS
from training.export import bundle_export as exporter
from training.export import gates
from training.export.__main__ import main
from training.export.bundle_export import ExportSettings, export, sample_texts
from training.export.graph import load_encoder, to_onnx
from training.export.quantise import quantise, quantised_columns, smooth

if TYPE_CHECKING:
    import onnx

pytestmark = pytest.mark.training

# Texts of many lengths, so that every batch has padding.
WORDS = "anvils boats cars drills engines ferries glue hammers ink jam kites lamps".split()


def sentence(length: int) -> str:
    return "The company makes " + " ".join(WORDS[index * 7 % len(WORDS)] for index in range(length))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers whose vocabulary is large enough to be quantised as a table."""
    folder = tmp_path_factory.mktemp("models") / "random"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "company", "makes", *WORDS]
    words += [f"word{index}" for index in range(5_000 - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": f"c{n}", "name": f"Firm {n}", "description": sentence(n % 40 + 1)}) for n in range(80)]
    path = tmp_path / "sample.jsonl"
    path.write_text("\n".join(lines))
    return path


def torch_vectors(model: Path, texts: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
    """The reference, written apart from the exporter: one text at a time, no padding."""
    tokenizer, transformer = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model).eval()
    rows = []
    for text in texts:
        inputs = tokenizer(text, truncation=True, max_length=max_tokens, return_tensors="pt")
        with torch.inference_mode():
            mean = transformer(**inputs).last_hidden_state[0].mean(dim=0)
        rows.append((mean / mean.norm()).numpy())
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(("precision", "lowest_cosine"), [("float32", 1 - 1e-6), ("float16", 0.9999), ("int8", 0.99)])
def test_an_exported_bundle_agrees_with_torch(
    model: Path, sample: Path, tmp_path: Path, precision: str, lowest_cosine: float
) -> None:
    settings = ExportSettings(
        model=str(model),
        base_model="random",
        licence="none",
        training_data="none",
        precision=precision,
        max_tokens=32,
    )
    said: list[str] = []
    bundle = export(settings, output=tmp_path / "models", sample=sample, log=said.append)
    texts = ["", "anvils", *(sentence(length) for length in (1, 3, 9, 28, 40, 200))]
    vectors = TextEncoder(bundle).encode(texts)
    expected = torch_vectors(model, texts, max_tokens=32)
    if precision == "float32":
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert np.einsum("nd,nd->n", vectors, expected).min() >= lowest_cosine
    assert bundle.folder == tmp_path / "models" / bundle.encoder_id
    assert "random" in (bundle.folder / "README.md").read_text()
    assert bundle.manifest.metrics["difference_to_torch"] <= 1e-5
    assert "float32 graph" in said[0]
    # The sample has 80 companies.
    checked = "int8 is checked on the texts that calibrated it; pass at least 512 companies as --sample"
    assert (checked in said) == (precision == "int8")


def test_an_int8_vector_does_not_depend_on_its_batch_mates(model: Path, sample: Path, tmp_path: Path) -> None:
    settings = ExportSettings(model=str(model), base_model="random", licence="none", training_data="none")
    encoder = TextEncoder(export(settings, output=tmp_path, sample=sample, log=lambda line: None), threads=1)
    texts = [sentence(length) for length in range(1, 40)]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    # Sums in another order may fall on the other side of a rounding step, no more.
    assert np.einsum("nd,nd->n", together, alone).min() >= 0.999


def test_a_model_with_too_few_positions_is_not_exported(model: Path, sample: Path, tmp_path: Path) -> None:
    settings = exporter.ExportSettings(
        model=str(model), base_model="random", licence="none", training_data="none", max_tokens=5_000
    )
    with pytest.raises(InvalidInput, match=r"reads at most \d+ tokens, not 5000; give a lower --max-tokens"):
        exporter.export(settings, output=tmp_path / "models", sample=sample, log=lambda line: None)
    assert not (tmp_path / "models").exists()


def test_a_graph_that_differs_from_torch_is_not_written(
    model: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "largest_difference", lambda encoder, graph: float("nan"))
    settings = exporter.ExportSettings(model=str(model), base_model="random", licence="none", training_data="none")
    with pytest.raises(gates.ExportRefused, match="differ from torch"):
        exporter.export(settings, output=tmp_path / "models", sample=sample, log=lambda line: None)
    assert not (tmp_path / "models").exists()


def test_an_int8_model_that_moves_vectors_too_far_is_not_written(
    model: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "LOWEST_MEAN_COSINE", 1.1)
    settings = exporter.ExportSettings(model=str(model), base_model="random", licence="none", training_data="none")
    with pytest.raises(gates.ExportRefused, match="mean cosine"):
        exporter.export(settings, output=tmp_path / "models", sample=sample, log=lambda line: None)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(("kept", "refused"), [(0.5, False), (1.5, True)])
def test_judged_pairs_gate_the_export_and_fill_the_card(
    model: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: float, refused: bool
) -> None:
    (tmp_path / "dev.tsv").write_text("anchor\tcandidate\tgrade\nc1\tc2\t2\nc1\tc30\t0\n")
    monkeypatch.setattr(gates, "KEPT_QUALITY", kept)
    settings = exporter.ExportSettings(model=str(model), base_model="random", licence="none", training_data="none")
    judged = gates.JudgedData(folder=tmp_path, companies=sample)
    output = tmp_path / "models"
    if refused:
        with pytest.raises(gates.ExportRefused, match=r"nDCG@10 on dev"):
            exporter.export(settings, output=output, sample=sample, judged=judged, log=lambda line: None)
        assert not output.exists()
        return
    bundle = exporter.export(settings, output=output, sample=sample, judged=judged, log=lambda line: None)
    assert {"dev_ndcg10_plain", "dev_ndcg10_prepared", "dev_auc_prepared"} <= set(bundle.manifest.metrics)
    assert "| prepared |" in (bundle.folder / "README.md").read_text()


def test_a_run_fills_manifest_and_card(model: Path, sample: Path, tmp_path: Path) -> None:
    best = tmp_path / "best"
    shutil.copytree(model, best)
    stored = {
        "settings": {"model": "minilm-l6", "method": "listwise", "seed": 7, "label_share": 0.1, "max_tokens": 24},
        "classes": ["competitor", "other"],
        "step": 40,
        "scores": {"ndcg10": 0.8125, "auc": 0.9},
        "selection_anchors": 6,
    }
    (best / "training.json").write_text(json.dumps(stored))
    for split, anchors in (("train", range(1, 10)), ("dev", range(70, 74))):
        rows = [f"c{anchor}\tc{other}\t{2 * (other % 2)}" for anchor in anchors for other in range(10, 70)]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["anchor\tcandidate\tgrade", *rows]) + "\n")
    options = ["--model", str(best), "--output", str(tmp_path / "models"), "--precision", "float32"]
    options += ["--judged", str(tmp_path), "--companies", str(sample), "--training-data", "sixty pairs"]
    main([*options, "--judged-by", "by how long they are"])
    (folder,) = (tmp_path / "models").glob("[!.]*")
    manifest, card = ModelBundle.load(folder).manifest, (folder / "README.md").read_text()
    assert (manifest.base_model, manifest.max_tokens) == ("sentence-transformers/all-MiniLM-L6-v2", 24)
    assert manifest.training_data.startswith("sixty pairs; listwise on 10% of the labels, 2 epochs of batches of 128")
    assert (manifest.metrics["selection_step"], manifest.metrics["selection_ndcg10"]) == (40, 0.8125)
    assert "step 40 by its scores on selection anchors, which were not trained on: ndcg10 0.812, auc 0.900" in card
    assert "- Who judged the pairs: by how long they are" in card
    assert "| prepared |" in card
    # Training has seen every candidate, so that there are no figures without them.
    assert "unseen candidates |" not in card


@pytest.fixture(scope="module")
def graph(model: Path) -> "onnx.ModelProto":
    return to_onnx(load_encoder(str(model)))


def test_smoothing_changes_no_vector(graph: "onnx.ModelProto") -> None:
    ids = np.arange(5, 25, dtype=np.int64).reshape(2, 10)
    smoothed = smooth(graph, [{"input_ids": ids, "attention_mask": np.ones_like(ids)}])
    assert len(smoothed.graph.node) > len(graph.graph.node)
    before, after = (
        OnnxRuntimeSession(each.SerializeToString()).run(ids, np.ones_like(ids)) for each in (graph, smoothed)
    )
    np.testing.assert_allclose(before, after, atol=1e-5)


def test_each_column_of_a_weight_has_its_own_scale() -> None:
    values, scale = quantised_columns(np.array([[127.0, 0.0], [-63.5, 0.001]], dtype=np.float32))
    assert values.tolist() == [[127, 0], [-64, 127]]
    assert scale == pytest.approx([1.0, 0.001 / 127])


def test_a_graph_without_weights_cannot_be_quantised() -> None:
    with pytest.raises(InvalidInput, match="no matrix product"):
        quantise(onnx.ModelProto(), [{}])


def test_calibration_needs_texts(graph: "onnx.ModelProto") -> None:
    with pytest.raises(InvalidInput, match="no calibration texts"):
        quantise(graph, [])


def test_a_long_file_is_sampled_and_a_short_one_is_used_in_order(tmp_path: Path) -> None:
    def written(count: int) -> Path:
        path = tmp_path / f"{count}.jsonl"
        rows = [{"id": f"c{n}", "name": "Firm", "description": f"Makes number {n}."} for n in range(count)]
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return path

    short = sample_texts(written(600), DEFAULT_SETTINGS)
    assert short == [f"Makes number {n}." for n in range(600)]
    long = sample_texts(written(2_000), DEFAULT_SETTINGS)
    assert len(set(long)) == 512
    assert long == sample_texts(tmp_path / "2000.jsonl", DEFAULT_SETTINGS)
    # From all over the file: its halves are equally likely.
    assert 200 < sum(int(text.removesuffix(".").split()[-1]) < 1_000 for text in long) < 312


def test_half_of_the_judged_options_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--model", "x", "--output", "y", "--judged", "z"])
    assert "--judged and --companies" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--model", "x", "--output", "y", "--reference", "z"])
    assert "--reference needs --judged" in capsys.readouterr().err
