"""The encoder gives every text its own unit vector, in order, whatever the text and the batch."""

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity import encoder as encoder_module
from similarity.bundle import ModelBundle, seed_folder, write_manifest
from similarity.encoder import TextEncoder, TokenIds, batches, padded
from similarity.errors import InvalidBundle, SimilarityError
from similarity.model import onnxruntime_session
from similarity.model.onnxruntime_session import OnnxRuntimeSession
from similarity.settings import RUNTIMES, Runtime
from tests.tiny_bundle import DIMENSION, TINY_MANIFEST, WORDS, TinyGraph, expected_vector, write_tiny_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> ModelBundle:
    return write_tiny_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture(scope="module")
def encoder(bundle: ModelBundle) -> TextEncoder:
    return TextEncoder(bundle, threads=2)


def test_a_vector_is_the_mean_of_the_words_at_unit_norm(encoder: TextEncoder) -> None:
    vectors = encoder.encode(["Anvils boats", "cars"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [expected_vector("anvils", "boats"), expected_vector("cars")], atol=1e-6)


def test_padding_changes_nothing(encoder: TextEncoder) -> None:
    alone = encoder.encode(["anvils"])[0]
    beside_a_long_one = encoder.encode(["anvils", "boats boats boats boats boats"])[0]
    np.testing.assert_allclose(alone, beside_a_long_one, atol=1e-6)


def test_vectors_come_in_the_order_of_the_texts(encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "BATCH_TOKENS", 12)
    texts = [" ".join(["anvils"] * (index % 5) + ["boats"] * (index % 3) + ["cars"]) for index in range(40)]
    one_by_one = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), one_by_one, atol=1e-6)


def test_texts_beyond_what_is_tokenised_at_once_are_all_encoded(
    encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_module, "TOKENISED_AT_ONCE", 3)
    vectors = encoder.encode(["anvils", "boats", "cars", "anvils"])
    np.testing.assert_allclose(vectors[3], expected_vector("anvils"), atol=1e-6)


def test_no_texts_give_no_rows(encoder: TextEncoder) -> None:
    assert encoder.encode([]).shape == (0, DIMENSION)


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u3000"])
def test_an_empty_text_has_the_vector_of_nothing(encoder: TextEncoder, text: str) -> None:
    np.testing.assert_allclose(encoder.encode([text])[0], expected_vector(), atol=1e-6)


@pytest.mark.parametrize("text", ["\ud800 anvils", "\x00\x01", "🏭" * 50, "\u202eanvils", "e\u0301" * 30, "企業"])
def test_odd_characters_still_give_a_unit_vector(encoder: TextEncoder, text: str) -> None:
    assert np.linalg.norm(encoder.encode([text])[0]) == pytest.approx(1, abs=1e-5)


def test_words_beyond_the_token_limit_are_not_read(encoder: TextEncoder) -> None:
    words = ["anvils"] * 6
    cut, whole = encoder.encode([" ".join([*words, "boats", "cars"]), " ".join(words)])
    np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize(
    "text",
    ["anvils " * 20_000, " " * 120_000 + "anvils", "a" * 120_000, "企" * 120_000, "anvils" + " " * 120_000 + "cars"],
    ids=["words", "spaces first", "one word", "no spaces", "spaces between"],
)
def test_a_huge_text_has_the_vector_of_all_it_says(encoder: TextEncoder, text: str) -> None:
    words = [word if word == "anvils" or word == "cars" else "[UNK]" for word in text.split()][:6]
    vector = encoder.encode([text])[0]
    np.testing.assert_allclose(vector, expected_vector(*words), atol=1e-6)


def test_a_cut_never_leaves_half_a_word(encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    # The cut, at 8 characters, falls into "boats"; half of it would be an unknown word.
    monkeypatch.setattr(encoder_module, "CHARACTERS_PER_TOKEN", 1)
    np.testing.assert_allclose(encoder.encode(["cars boats"])[0], expected_vector("cars", "boats"), atol=1e-6)


def test_progress_is_told_after_each_batch_up_to_the_end(encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "BATCH_TOKENS", 8)
    told: list[tuple[int, int]] = []
    texts = ["anvils boats", "boats anvils", "cars anvils", "anvils cars", "cars boats"]
    encoder.encode(texts, lambda done, total: told.append((done, total)))
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_texts_that_are_the_same_to_the_model_are_encoded_once(
    encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    run = OnnxRuntimeSession.run

    def count(session: OnnxRuntimeSession, ids: TokenIds, mask: TokenIds) -> NDArray[np.float32]:
        runs.append(len(ids))
        return run(session, ids, mask)

    monkeypatch.setattr(OnnxRuntimeSession, "run", count)
    told: list[tuple[int, int]] = []
    vectors = encoder.encode(["anvils", "boats", "Anvils", "anvils"], lambda done, total: told.append((done, total)))
    assert sum(runs) == 2
    assert told[-1] == (4, 4)
    same, other = expected_vector("anvils"), expected_vector("boats")
    np.testing.assert_allclose(vectors, [same, other, same, same], atol=1e-6)


def test_a_failing_progress_callback_stops_the_work(bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "BATCH_TOKENS", 22)
    encoder = TextEncoder(bundle, threads=2)
    texts = [" ".join(words) for words in product(("anvils", "boats", "cars"), repeat=9)]
    runs: list[int] = []
    run = OnnxRuntimeSession.run

    def count(session: OnnxRuntimeSession, ids: TokenIds, mask: TokenIds) -> NDArray[np.float32]:
        runs.append(len(ids))
        return run(session, ids, mask)

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OnnxRuntimeSession, "run", count)
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(texts, stop)
    assert sum(runs) < len(texts)


def test_threads_that_share_an_encoder_get_their_own_vectors(encoder: TextEncoder) -> None:
    words = ["anvils", "boats", "cars"]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda index: encoder.encode([words[index % 3]] * 7), range(60)))
    for index, vectors in enumerate(results):
        np.testing.assert_allclose(vectors, [expected_vector(words[index % 3])] * 7, atol=1e-6)


@pytest.mark.parametrize("texts", [[None], [b"anvils"], ["anvils", 5]])
def test_what_is_no_text_is_refused(encoder: TextEncoder, texts: list[str]) -> None:
    with pytest.raises(TypeError, match="not str"):
        encoder.encode(texts)


def test_a_single_text_in_place_of_a_list_is_refused(encoder: TextEncoder) -> None:
    with pytest.raises(TypeError, match=r"encode\(\[text\]\)"):
        encoder.encode("anvils")


def test_the_encoder_names_its_bundle(encoder: TextEncoder, bundle: ModelBundle) -> None:
    assert encoder.encoder_id == bundle.encoder_id
    assert encoder.text_settings == bundle.manifest.text_settings
    assert encoder.dimension == DIMENSION


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_than_one_thread_is_refused(bundle: ModelBundle, threads: int) -> None:
    with pytest.raises(SimilarityError, match="1 or more"):
        TextEncoder(bundle, threads=threads)


def test_an_unknown_runtime_is_refused_with_those_that_exist(bundle: ModelBundle) -> None:
    with pytest.raises(SimilarityError, match="onnxruntime, openvino, auto, cuda, tensorrt"):
        TextEncoder(bundle, runtime="gpu")  # type: ignore[arg-type]  # as a settings file might


def test_a_missing_openvino_says_how_to_install_it(bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(SimilarityError, match=r"pip install 'company-similarity\[openvino\]'"):
        TextEncoder(bundle, runtime="openvino")


def test_the_automatic_runtime_does_without_openvino(bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    vectors = TextEncoder(bundle, runtime="auto").encode(["cars"])
    np.testing.assert_allclose(vectors, [expected_vector("cars")], atol=1e-6)


@pytest.mark.parametrize("runtime", ["cuda", "tensorrt"])
def test_without_a_gpu_the_cpu_gives_the_same_vectors_after_one_warning(
    runtime: Runtime, bundle: ModelBundle, encoder: TextEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    other = TextEncoder(bundle, threads=2, runtime=runtime)
    [record] = caplog.records
    assert f"the runtime {runtime} cannot be used, so onnxruntime encodes on the CPU: " in record.getMessage()
    assert "onnxruntime-gpu" in record.getMessage()
    assert other.runtime == "onnxruntime"
    np.testing.assert_array_equal(other.encode(["anvils boats"]), encoder.encode(["anvils boats"]))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU stand in for a GPU."""
    monkeypatch.setattr(onnxruntime_session, "GPU_PROVIDERS", {"cuda": "CPUExecutionProvider"})
    monkeypatch.setattr("onnxruntime.preload_dlls", lambda: print("a library is missing"))


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_a_gpu_that_works_is_used(
    bundle: ModelBundle,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encoder = TextEncoder(bundle, threads=1, runtime="cuda")
    assert encoder.runtime == "cuda"
    assert capsys.readouterr() == ("", "a library is missing\n")
    monkeypatch.setattr(encoder_module, "BATCH_ROWS", 4)
    told: list[int] = []
    encoder.encode([f"anvils {'boats ' * count}" for count in range(6)], lambda done, total: told.append(done))
    assert told == [4, 6]


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:Duplicate provider")
@pytest.mark.parametrize("problem", ["vectors", "device"])
def test_a_gpu_that_fails_or_gives_other_vectors_is_not_used(
    problem: str, bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = OnnxRuntimeSession.run

    def fail(session: OnnxRuntimeSession, ids: TokenIds, mask: TokenIds) -> NDArray[np.float32]:
        if session.runtime == "cuda" and problem == "device":
            raise RuntimeError("no kernel image is available")
        return run(session, ids, mask) * (0.5 if session.runtime == "cuda" else 1)

    monkeypatch.setattr(OnnxRuntimeSession, "run", fail)
    encoder = TextEncoder(bundle, runtime="cuda")
    assert encoder.runtime == "onnxruntime"
    [record] = caplog.records
    expected = {"vectors": "a cosine of 0.500 to those of the CPU", "device": "no kernel image is available"}
    assert expected[problem] in record.getMessage()


def bundle_with_tokenizer(folder: Path, **members: object) -> ModelBundle:
    """A tiny bundle whose tokenizer.json has these members in place of its own; None removes one."""
    write_tiny_bundle(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text()) | members
    present = {name: value for name, value in tokenizer.items() if value is not None}
    (folder / "tokenizer.json").write_text(json.dumps(present))
    return write_manifest(folder, TINY_MANIFEST)


def word_level(vocab: Mapping[str, int], unknown: str = "[UNK]") -> object:
    return {"type": "WordLevel", "vocab": vocab, "unk_token": unknown}


def precompiled(charsmap: str) -> object:
    return {"type": "Precompiled", "precompiled_charsmap": charsmap}


NO_SUCH_TOKEN = {"single": [{"SpecialToken": {"id": "[NO]", "type_id": 0}}], "pair": [], "special_tokens": {}}
BACKTRACKING = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
VOCABULARY = {word: row for row, word in enumerate(WORDS)}


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"model": None}, "is not a tokenizer"),
        ({"model": []}, "is not a tokenizer"),
        ({"added_tokens": [{"id": "x"}]}, "is not a tokenizer"),
        ({"model": word_level({"anvils": -1})}, "is not a tokenizer"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}}, "is not a tokenizer"),
        ({"normalizer": precompiled("//8AAP//////////")}, "is not a tokenizer"),
        ({"normalizer": precompiled("AAAAAAAAAAAAAAAA")}, "fails on a text"),
        ({"post_processor": {"type": "TemplateProcessing", **NO_SUCH_TOKEN}}, "fails on a text"),
        ({"model": word_level({})}, "fails on a text"),
        ({"model": word_level(VOCABULARY, unknown="[NO]")}, "fails on a text"),
        ({"model": word_level(VOCABULARY | {"drills": 7})}, "do not belong together"),
        ({"model": word_level(VOCABULARY | {"cars": 2**32 - 1})}, "do not belong together"),
    ],
)
def test_a_tokenizer_that_cannot_be_used_is_refused(tmp_path: Path, members: dict[str, object], problem: str) -> None:
    bundle = bundle_with_tokenizer(tmp_path / "bundle", **members)
    with pytest.raises(InvalidBundle, match=f"{problem}.*; export the bundle again"):
        TextEncoder(bundle)


def test_a_tokenizer_that_fails_on_one_text_encodes_the_others(tmp_path: Path) -> None:
    encoder = TextEncoder(bundle_with_tokenizer(tmp_path / "bundle", pre_tokenizer=BACKTRACKING))
    with pytest.raises(InvalidBundle, match=r"fails on a text.*; export the bundle again"):
        encoder.encode(["a" * 200 + "!"])
    assert encoder.encode(["cars"]).shape == (1, DIMENSION)


def test_a_graph_that_does_not_normalise_is_refused(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "bundle", TinyGraph(unit_norm=False))
    with pytest.raises(InvalidBundle, match="do not have unit norm"):
        TextEncoder(bundle)


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        (TinyGraph(output="last_hidden_state"), "last_hidden_state"),
        (TinyGraph(inputs=("ids", "attention_mask")), "'ids'"),
        (TinyGraph(inputs=("input_ids", "token_type_ids", "attention_mask")), "token_type_ids"),
    ],
)
def test_a_graph_with_other_inputs_or_outputs_is_refused(tmp_path: Path, graph: TinyGraph, found: str) -> None:
    with pytest.raises(InvalidBundle, match=f"inputs and outputs .*{found}.* instead of"):
        TextEncoder(write_tiny_bundle(tmp_path / "bundle", graph))


@pytest.mark.parametrize(
    "graph",
    [
        TinyGraph(output_shape=("batch", 5)),
        TinyGraph(output_shape=(1, DIMENSION)),
        TinyGraph(output_shape=("batch", "length", DIMENSION)),
        TinyGraph(input_element=1),
        TinyGraph(table_extra=((14, 1),)),  # a tensor in another file, without a name of one
    ],
)
def test_a_graph_that_contradicts_itself_or_the_manifest_is_refused(tmp_path: Path, graph: TinyGraph) -> None:
    with pytest.raises(InvalidBundle, match="export"):
        TextEncoder(write_tiny_bundle(tmp_path / "bundle", graph))


@pytest.mark.parametrize("content", [b"", b"not onnx", b"\x3a\xff\xff\xff\xff\x0f", b"\x08" + b"\xff" * 20])
def test_bytes_that_are_no_model_are_refused_even_with_the_right_hash(tmp_path: Path, content: bytes) -> None:
    folder = write_tiny_bundle(tmp_path / "bundle").folder
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(InvalidBundle, match="cannot be run"):
        TextEncoder(write_manifest(folder, TINY_MANIFEST))


def test_a_bundle_of_another_dimension_than_its_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidBundle, match="inputs and outputs"):
        TextEncoder(write_tiny_bundle(tmp_path / "bundle", dimension=5))


def test_a_graph_that_cannot_run_is_refused(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "bundle", TinyGraph(opset=9), opset=9)
    with pytest.raises(InvalidBundle, match="cannot be run"):
        TextEncoder(bundle)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_graph_that_does_not_end_is_given_up(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime_session, "RUN_SECONDS", 0.5)
    bundle = write_tiny_bundle(tmp_path / "endless", TinyGraph(endless=True))
    with pytest.raises(InvalidBundle, match=r"endless/model.onnx did not finish a batch within 0.5 seconds.*export"):
        TextEncoder(bundle, runtime=runtime)


def test_a_model_swapped_after_loading_is_not_run(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "bundle")
    (bundle.folder / "model.onnx").write_bytes(TinyGraph(unit_norm=False).to_bytes())
    with pytest.raises(InvalidBundle, match="does not match"):
        TextEncoder(bundle)


@pytest.mark.parametrize("budget", [1, 7, 64, 10_000])
def test_batches_hold_every_text_once_within_the_budget(budget: int) -> None:
    lengths = [3, 128, 5, 5, 64, 1, 2, 100, 7, 7]
    plan = list(batches(lengths, budget))
    assert sorted(row for rows in plan for row in rows) == list(range(len(lengths)))
    assert all(len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= budget for rows in plan)


def test_batches_start_with_the_longest_and_keep_ties_in_order() -> None:
    assert [list(rows) for rows in batches([2, 5, 2, 5], 10)] == [[1, 3], [0, 2]]


def test_padded_ids_are_masked() -> None:
    ids, mask = padded([np.array([4, 5, 6]), np.array([7])])
    assert ids.tolist() == [[4, 5, 6], [7, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_the_shipped_encoder_puts_competitors_before_others() -> None:
    encoder = TextEncoder(ModelBundle.load(seed_folder()))
    anchor, competitor, other = encoder.encode(
        [
            "The company brews beer and sells it to pubs and supermarkets.",
            "Brewery of lagers and ales for bars and retail.",
            "The company leases passenger aircraft to airlines.",
        ]
    )
    assert anchor @ competitor > anchor @ other + 0.2
