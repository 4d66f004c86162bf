"""Encodes texts as unit vectors with a model bundle. Needs only onnxruntime and tokenizers, not torch.

    encoder = TextEncoder(ModelBundle.load(seed_folder()))
    vectors = encoder.encode(["The company makes anvils."])  # float32 [1, 384]

Texts are tokenised, token ids are grouped into batches of similar length, and the batches are run by threads; the rows
are returned in the order of the texts. The size of a batch is limited in padded tokens, so that its activations fit
into the cache of one core. Each thread runs whole batches: for a model of 22 million parameters that is faster than
several threads for one batch (decision 6 in docs/decisions/README.md).
"""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from similarity.bundle import MODEL_FILE, TOKENIZER_FILE, ModelBundle
from similarity.errors import InvalidBundle, SimilarityError
from similarity.model.onnxruntime_session import GPU_PROVIDERS, OnnxRuntimeSession
from similarity.model.openvino_session import OpenVinoSession
from similarity.settings import RUNTIMES, Runtime
from similarity.text import TextSettings

log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int], None]
TokenIds: TypeAlias = NDArray[np.int64]

# Padded tokens of a batch. Texts per second of one thread (python -m benchmarks.encoder) at 256 ... 4,096 tokens:
# onnxruntime 213, 215, 192, 173, 155; OpenVINO 222, 233, 246, 240, 220.
BATCH_TOKENS = 512
# On a GPU a batch of 512 tokens takes less time than its start. Not measured: there was no GPU to measure on.
GPU_BATCH_TOKENS = 8_192
# The most texts of a batch. A text has at least two special tokens, so this limits only the batches of a GPU: TensorRT
# must know their largest size.
BATCH_ROWS = 256
# Texts tokenised in one call; limits the memory of the tokenizer's results.
TOKENISED_AT_ONCE = 1_024
# At first, only max_tokens * CHARACTERS_PER_TOKEN characters of a text are tokenised (a token has about 5). If these
# give fewer than max_tokens tokens, the whole text is tokenised.
CHARACTERS_PER_TOKEN = 32
_UNIT_TOLERANCE = 1e-3
# A GPU computes int8 graphs in float. On a CPU, this had a cosine of .9995 or more to the int8 kernels (400 texts).
_LOWEST_GPU_COSINE = 0.99
# Plain words, and a character that no vocabulary contains.
_PROBE = "The company makes anvils. \ue000"


class Session(Protocol):
    """One loaded model, safe to call from several threads. `runtime` is the setting that selects its session class."""

    runtime: str

    def run(self, input_ids: TokenIds, attention_mask: TokenIds) -> NDArray[np.float32]:
        """Return float32 `[batch, dimension]` for two int64 `[batch, length]`."""


class TextEncoder:
    """Encodes texts with one bundle. Safe to share between threads.

    `threads` is the number of batches that run concurrently (default: the number of CPUs of this process); a single
    text uses one thread. `runtime` is "onnxruntime", "openvino" (an extra), "cuda", "tensorrt" or "auto" (the faster of
    the first two, measured once by the constructor). If "cuda" or "tensorrt" cannot be used, a warning is logged and
    onnxruntime runs on the CPU; the property `runtime` says what runs.

    Raises:
        InvalidBundle: tokenizer or graph cannot be run, do not belong together, or make vectors without unit norm.
        SimilarityError: the runtime is unknown, or "openvino" and not installed; or threads is below 1.
    """

    def __init__(self, bundle: ModelBundle, threads: int | None = None, runtime: Runtime = "onnxruntime") -> None:
        if threads is not None and threads < 1:
            raise SimilarityError(f"threads is {threads}; it must be 1 or more; omit it to use all CPUs")
        if runtime not in RUNTIMES:
            raise SimilarityError(f"unknown runtime {runtime!r:.40}; use {', '.join(RUNTIMES)}")
        self.bundle = bundle
        self.encoder_id = bundle.encoder_id
        self._threads = threads or available_threads()
        self._max_tokens = bundle.manifest.max_tokens
        self._tokenizer = _load_tokenizer(bundle)
        probes = list(self.tokenise(["", _PROBE]))
        self._session = _open_session(bundle, self._threads, runtime, probes)
        self._check_fit()

    @property
    def text_settings(self) -> TextSettings:
        """The settings of `similarity.text.embedding_text` for this encoder."""
        return self.bundle.manifest.text_settings

    @property
    def runtime(self) -> str:
        """What runs the bundle: "onnxruntime" (on the CPU), "openvino", "cuda" or "tensorrt"."""
        return self._session.runtime

    @property
    def dimension(self) -> int:
        """The dimension of a vector."""
        return self.bundle.manifest.dimension

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Return the unit vectors of `texts`, float32 `[len(texts), dimension]`, in their order.

        Texts are truncated to the bundle's token limit. An empty text is encoded as the special tokens only; it is not
        an error, so that one bad record does not stop a stream. Reject empty texts before calling. Unpaired surrogates
        are replaced by "?". `progress(done, total)` is called after each batch.

        Raises:
            TypeError: `texts` is a single string, or contains an object that is not a string.
            InvalidBundle: the tokenizer fails on one of the texts, or onnxruntime exceeds its time limit for a batch.
        """
        if isinstance(texts, str):
            raise TypeError("texts is a single text; pass a list, encode([text])")
        distinct, row_of = _distinct(self.tokenise(texts))
        copies = np.bincount(row_of, minlength=len(distinct))
        vectors = np.empty((len(distinct), self.dimension), dtype=np.float32)
        done = 0
        # If `progress` raises, close the generator at once, so that the remaining batches are cancelled.
        with closing(_run_all(self._session, distinct, self._threads)) as finished:
            for rows, batch_vectors in finished:
                vectors[rows] = batch_vectors
                done += int(copies[rows].sum())
                if progress is not None:
                    progress(done, len(row_of))
        return vectors if len(distinct) == len(row_of) else vectors[row_of]

    def tokenise(self, texts: Sequence[str]) -> Iterator[TokenIds]:
        """Yield the token ids of each text, int64 `[tokens]`, truncated to the bundle's limit."""
        limit = self._max_tokens * CHARACTERS_PER_TOKEN
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            cleaned = [_clean(text) for text in texts[start : start + TOKENISED_AT_ONCE]]
            prefixes = [_prefix(text, limit) for text in cleaned]
            for text, prefix, encoding in zip(cleaned, prefixes, self._encodings(prefixes), strict=True):
                is_complete = len(prefix) == len(text) or len(encoding.ids) >= self._max_tokens
                ids = encoding.ids if is_complete else self._encodings([text])[0].ids
                yield np.array(ids, dtype=np.int64)

    def _encodings(self, texts: list[str]) -> list[Encoding]:
        with _tokenizer_errors(self.bundle, "fails on a text"):
            return self._tokenizer.encode_batch_fast(texts)

    def _check_fit(self) -> None:
        """Check that tokenizer and graph belong together: encode two texts and the highest token id.

        The tokenizer of another model may have ids outside the graph's embedding table.
        """
        highest = np.array([[0, max(self._tokenizer.get_vocab().values(), default=0)]], dtype=np.int64)
        try:
            vectors = np.concatenate([self.encode(["", _PROBE]), self._session.run(highest, np.ones_like(highest))])
        except InvalidBundle:
            raise
        except Exception as error:
            raise InvalidBundle(
                f"{self.bundle.folder}: {TOKENIZER_FILE} and {MODEL_FILE} do not belong together ({error!s:.200}); "
                "export the bundle again"
            ) from error
        norms = np.linalg.norm(vectors, axis=1)
        if not np.allclose(norms, 1, atol=_UNIT_TOLERANCE):
            raise InvalidBundle(f"{self.bundle.folder}: its vectors do not have unit norm; export the bundle again")


def available_threads() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def batches(lengths: Sequence[int], budget: int) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of `lengths`, longest first, in batches of at most `budget` padded tokens and BATCH_ROWS texts.

    A text longer than the budget is a batch of its own. Equal lengths always give equal batches.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        end = start + min(BATCH_ROWS, max(1, budget // max(1, lengths[order[start]])))
        yield order[start:end]
        start = end


def padded(token_ids: Sequence[TokenIds]) -> tuple[TokenIds, TokenIds]:
    """Return token ids and attention mask, int64 `[batch, longest]`; padding has id 0 and mask 0."""
    shape = (len(token_ids), max(map(len, token_ids)))
    input_ids, attention_mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, ids in enumerate(token_ids):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
    return input_ids, attention_mask


def _distinct(token_ids: Iterable[TokenIds]) -> tuple[list[TokenIds], NDArray[np.intp]]:
    """Return the distinct token id sequences, and for each text the index of its sequence.

    Texts that are equal up to the token limit have the same vector. This saves about a third of the work when a match
    is explained by texts that leave out one phrase each.
    """
    number_of: dict[bytes, int] = {}
    distinct: list[TokenIds] = []
    numbers: list[int] = []
    for ids in token_ids:
        number = number_of.setdefault(ids.tobytes(), len(distinct))
        if number == len(distinct):
            distinct.append(ids)
        numbers.append(number)
    return distinct, np.array(numbers, dtype=np.intp)


def _clean(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}, not str; convert it before encoding")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _prefix(text: str, limit: int) -> str:
    """Return the first `limit` characters, without a last word that is cut off, unless it is the only word."""
    if len(text) <= limit:
        return text
    prefix = text[:limit]
    if text[limit].isspace():
        return prefix
    words = prefix.rsplit(maxsplit=1)
    return words[0] if words else prefix


def _load_tokenizer(bundle: ModelBundle) -> Tokenizer:
    content = bundle.read(TOKENIZER_FILE)
    with _tokenizer_errors(bundle, "is not a tokenizer"):
        tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_padding()
        tokenizer.enable_truncation(bundle.manifest.max_tokens)
    return tokenizer


@contextmanager
def _tokenizer_errors(bundle: ModelBundle, problem: str) -> Iterator[None]:
    """Turn errors and panics of the library `tokenizers` into InvalidBundle."""
    try:
        yield
    except BaseException as error:
        # The library raises plain Exception. A panic of its Rust code is a BaseException whose class no module exports.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            path = bundle.folder / TOKENIZER_FILE
            raise InvalidBundle(f"{path} {problem} ({error!s:.200}); export the bundle again") from error
        raise


def _open_session(bundle: ModelBundle, threads: int, runtime: Runtime, probes: Sequence[TokenIds]) -> Session:
    model = bundle.read(MODEL_FILE)
    try:
        session = OnnxRuntimeSession(model, name=str(bundle.folder / MODEL_FILE))
        session.check_interface(bundle.manifest.dimension)
        if runtime == "onnxruntime":
            return session
        # OpenVINO 2026.4 cannot interrupt an endless loop in a graph. So run the graph in onnxruntime first, with its
        # time limit.
        expected = session.run(*padded(probes))
        if runtime in GPU_PROVIDERS:
            largest = (BATCH_ROWS, bundle.manifest.max_tokens)
            return _on_gpu(model, runtime, largest, probes, expected) or session
        if runtime == "openvino":
            return OpenVinoSession(model, threads=threads)
        return _faster(session, model, threads)
    except SimilarityError:
        raise
    except Exception as error:  # each runtime has exceptions of its own
        raise InvalidBundle(f"{bundle.folder / MODEL_FILE} cannot be run ({error!s:.200}); export it again") from error


def _on_gpu(
    model: bytes,
    runtime: Runtime,
    largest: tuple[int, int],
    probes: Sequence[TokenIds],
    expected: NDArray[np.float32],
) -> Session | None:
    """Return a session on the GPU; None, after a warning, if it cannot be used or its vectors are not as expected."""
    try:
        session = OnnxRuntimeSession(model, runtime=runtime, largest=largest)
        cosine = float(np.einsum("nd,nd->n", session.run(*padded(probes)), expected).min())
        if cosine >= _LOWEST_GPU_COSINE:
            return session
        reason = f"its vectors have a cosine of {cosine:.3f} to those of the CPU"
    except Exception as error:  # onnxruntime and the driver have exceptions of their own
        reason = f"{error!s:.300}"
    log.warning("the runtime %s cannot be used, so onnxruntime encodes on the CPU: %s", runtime, reason)
    return None


def _run_all(
    session: Session, token_ids: Sequence[TokenIds], threads: int
) -> Generator[tuple[NDArray[np.intp], NDArray[np.float32]], None, None]:
    """Yield the rows and the vectors of each batch."""
    lengths = [len(ids) for ids in token_ids]
    # A few texts are distributed over the threads instead of filling one batch.
    budget = GPU_BATCH_TOKENS if session.runtime in GPU_PROVIDERS else BATCH_TOKENS
    plan = list(batches(lengths, min(budget, -(-sum(lengths) // threads))))

    def run(rows: NDArray[np.intp]) -> NDArray[np.float32]:
        return session.run(*padded([token_ids[row] for row in rows]))

    if len(plan) <= 1 or threads == 1:
        yield from ((rows, run(rows)) for rows in plan)
        return
    # One pool per call, because the threads of a longer-lived pool would be missing after a fork.
    pool = ThreadPoolExecutor(min(threads, len(plan)), thread_name_prefix="encoder")
    try:
        yield from zip(plan, pool.map(run, plan), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _faster(onnxruntime_session: Session, model: bytes, threads: int) -> Session:
    try:
        openvino_session = OpenVinoSession(model, threads=threads)
    except SimilarityError:
        return onnxruntime_session
    return min((onnxruntime_session, openvino_session), key=lambda session: _seconds(session, threads))


def _seconds(session: Session, threads: int) -> float:
    """Return the time of the fastest of three runs, in seconds; each run encodes two full batches per thread."""
    texts = [np.ones(64, dtype=np.int64)] * (2 * threads * BATCH_TOKENS // 64)
    seconds = []
    for _ in range(3):
        start = perf_counter()
        list(_run_all(session, texts, threads))
        seconds.append(perf_counter() - start)
    return min(seconds)
