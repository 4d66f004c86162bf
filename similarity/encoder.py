"""Turns texts into unit vectors with a bundle; onnxruntime and tokenizers are all it takes.

    encoder = TextEncoder(ModelBundle.load(seed_folder()))
    vectors = encoder.encode(["The company makes anvils."])  # float32 [1, 384]

Three phases: texts become token ids, ids become batches of similar length, batches become rows in
the order asked for. A batch is limited by its padded tokens, so that it stays in a core's own cache,
and every thread runs a whole batch: for models of this size that beats sharing one batch's work.
"""

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from time import perf_counter
from typing import Protocol, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from similarity.bundle import INPUT_NAMES, MODEL_FILE, OUTPUT_NAME, TOKENIZER_FILE, ModelBundle
from similarity.errors import InvalidBundle, SimilarityError
from similarity.model.openvino_session import OpenVinoSession
from similarity.settings import RUNTIMES, Runtime
from similarity.text import TextSettings

Progress: TypeAlias = Callable[[int, int], None]
TokenIds: TypeAlias = NDArray[np.int64]

# Padded tokens of a batch. One thread, texts per second at 256, 512, 1,024, 2,048, 4,096 tokens:
# onnxruntime 213, 215, 192, 173, 155; OpenVINO 222, 233, 246, 240, 220.
BATCH_TOKENS = 512
# Texts tokenised at once: bounds the memory that the tokenizer's own records take.
TOKENISED_AT_ONCE = 1_024
# A token has about five characters. Where this many per token do not fill the limit, all are read.
CHARACTERS_PER_TOKEN = 32
# A batch takes well under a second. A graph whose loop never ends is stopped after this long.
RUN_SECONDS = 30.0
_UNIT_TOLERANCE = 1e-3


class Session(Protocol):
    """One loaded model, safe to call from several threads."""

    def run(self, input_ids: TokenIds, attention_mask: TokenIds) -> NDArray[np.float32]:
        """float32 `[batch, dimension]` for two int64 `[batch, length]`."""


class TextEncoder:
    """Encodes texts with one bundle. Safe to share between threads.

    `threads` run that many batches at once, by default as many as this process has processors; a
    single text uses one. `runtime` is "onnxruntime", "openvino" (an extra), or "auto": the faster
    of those installed, measured once, here.

    Raises:
        InvalidBundle: tokenizer or graph cannot be loaded, or do not fit each other.
        SimilarityError: an unknown or missing runtime, or threads below one.
    """

    def __init__(self, bundle: ModelBundle, threads: int | None = None, runtime: Runtime = "onnxruntime") -> None:
        if threads is not None and threads < 1:
            raise SimilarityError(f"threads is {threads}; give 1 or more, or leave it out to use what is there")
        if runtime not in RUNTIMES:
            raise SimilarityError(f"unknown runtime {runtime!r:.40}; use {', '.join(RUNTIMES)}")
        self.bundle = bundle
        self.encoder_id = bundle.encoder_id
        self._threads = threads or available_threads()
        self._max_tokens = bundle.manifest.max_tokens
        self._tokenizer = _load_tokenizer(bundle)
        self._session = _open_session(bundle, self._threads, runtime)
        self._check_fit()

    @property
    def text_settings(self) -> TextSettings:
        """How `similarity.text.embedding_text` prepares a company for this encoder."""
        return self.bundle.manifest.text_settings

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.bundle.manifest.dimension

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Unit vectors of `texts`, float32 `[len(texts), dimension]`, in their order.

        Texts beyond the bundle's token limit are cut. An empty text is encoded as what the
        tokenizer makes of nothing, so that one bad record never stops a stream; refuse it earlier.
        Broken Unicode becomes "?". `progress(done, total)` is called after each batch.

        Raises:
            TypeError: `texts` is one text, or holds something that is no text.
        """
        if isinstance(texts, str):
            raise TypeError("texts is a single text; pass a list, encode([text])")
        distinct, places = _distinct(self.tokenise(texts))
        copies = np.bincount(places, minlength=len(distinct))
        vectors = np.empty((len(distinct), self.dimension), dtype=np.float32)
        done = 0
        # Closed at once when a callback raises, so that no thread goes on with the rest.
        with closing(_run_all(self._session, distinct, self._threads)) as finished:
            for rows, batch_vectors in finished:
                vectors[rows] = batch_vectors
                done += int(copies[rows].sum())
                if progress is not None:
                    progress(done, len(places))
        return vectors if len(distinct) == len(places) else vectors[places]

    def tokenise(self, texts: Sequence[str]) -> Iterator[TokenIds]:
        """The token ids of each text, int64 `[tokens]`, cut to the bundle's limit."""
        limit = self._max_tokens * CHARACTERS_PER_TOKEN
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            cleaned = [_clean(text) for text in texts[start : start + TOKENISED_AT_ONCE]]
            heads = [_head(text, limit) for text in cleaned]
            for text, head, encoding in zip(cleaned, heads, self._encodings(heads), strict=True):
                fits = len(head) == len(text) or len(encoding.ids) >= self._max_tokens
                ids = encoding.ids if fits else self._encodings([text])[0].ids
                yield np.array(ids, dtype=np.int64)

    def _encodings(self, texts: list[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch_fast(texts)

    def _check_fit(self) -> None:
        """Runs the shortest text and the highest token id, which a foreign tokenizer would break."""
        highest = np.array([[0, self._tokenizer.get_vocab_size() - 1]], dtype=np.int64)
        try:
            vectors = np.concatenate([self.encode([""]), self._session.run(highest, np.ones_like(highest))])
        except InvalidBundle:
            raise
        except Exception as error:
            raise InvalidBundle(
                f"{self.bundle.folder}: {TOKENIZER_FILE} and {MODEL_FILE} do not fit each other ({error!s:.200}); "
                "export the bundle again"
            ) from error
        norms = np.linalg.norm(vectors, axis=1)
        if not np.allclose(norms, 1, atol=_UNIT_TOLERANCE):
            raise InvalidBundle(f"{self.bundle.folder}: its vectors are not of unit norm; export the bundle again")


def available_threads() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def batches(lengths: Sequence[int], budget: int) -> Iterator[NDArray[np.intp]]:
    """Positions of `lengths`, longest first, in batches of at most `budget` padded tokens.

    A single text longer than the budget is a batch of its own. The same lengths always give the
    same batches.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, budget // max(1, lengths[order[start]]))
        yield order[start:end]
        start = end


def padded(token_ids: Sequence[TokenIds]) -> tuple[TokenIds, TokenIds]:
    """Ids and mask, int64 `[batch, longest]`; padding has id 0 and mask 0."""
    shape = (len(token_ids), max(map(len, token_ids)))
    input_ids, attention_mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, ids in enumerate(token_ids):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
    return input_ids, attention_mask


def _distinct(token_ids: Iterable[TokenIds]) -> tuple[list[TokenIds], NDArray[np.intp]]:
    """The different ones among texts' token ids, and which of them each text has.

    Texts that differ only beyond the token limit are the same to the model: so are a third of the texts
    that explain a match, which lack one phrase each.
    """
    known: dict[bytes, int] = {}
    distinct: list[TokenIds] = []
    places: list[int] = []
    for ids in token_ids:
        place = known.setdefault(ids.tobytes(), len(distinct))
        if place == len(distinct):
            distinct.append(ids)
        places.append(place)
    return distinct, np.array(places, dtype=np.intp)


def _clean(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}, not str; convert it before encoding")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _head(text: str, limit: int) -> str:
    """The first `limit` characters, without a word that the cut would split."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    if text[limit].isspace():
        return head
    words = head.rsplit(maxsplit=1)
    return words[0] if words else head


def _load_tokenizer(bundle: ModelBundle) -> Tokenizer:
    content = bundle.read(TOKENIZER_FILE)
    try:
        tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_padding()
        tokenizer.enable_truncation(bundle.manifest.max_tokens)
    except Exception as error:  # tokenizers raises plain Exception
        raise InvalidBundle(
            f"{bundle.folder / TOKENIZER_FILE} is not a tokenizer ({error!s:.200}); export the bundle again"
        ) from error
    return tokenizer


def _open_session(bundle: ModelBundle, threads: int, runtime: Runtime) -> Session:
    model = bundle.read(MODEL_FILE)
    try:
        session = OnnxRuntimeSession(model, name=str(bundle.folder / MODEL_FILE))
        if runtime == "onnxruntime":
            return session
        # OpenVINO's cancel() does not end a loop (2026.4), so a graph that does not end must not get that far.
        session.run(*padded([np.zeros(1, dtype=np.int64)]))
        if runtime == "openvino":
            return OpenVinoSession(model, threads=threads)
        return _faster(session, model, threads)
    except SimilarityError:
        raise
    except Exception as error:  # each runtime has exceptions of its own
        raise InvalidBundle(f"{bundle.folder / MODEL_FILE} cannot be run ({error!s:.200}); export it again") from error


def _run_all(
    session: Session, token_ids: Sequence[TokenIds], threads: int
) -> Generator[tuple[NDArray[np.intp], NDArray[np.float32]], None, None]:
    """Rows and their vectors, batch by batch."""
    lengths = [len(ids) for ids in token_ids]
    # Few texts are spread over the threads instead of filling one batch.
    plan = list(batches(lengths, min(BATCH_TOKENS, -(-sum(lengths) // threads))))

    def run(rows: NDArray[np.intp]) -> NDArray[np.float32]:
        return session.run(*padded([token_ids[row] for row in rows]))

    if len(plan) <= 1 or threads == 1:
        yield from ((rows, run(rows)) for rows in plan)
        return
    # A pool per call: one that outlives it would not survive a fork.
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
    """The best of three runs over two full batches for each thread."""
    texts = [np.ones(64, dtype=np.int64)] * (2 * threads * BATCH_TOKENS // 64)
    seconds = []
    for _ in range(3):
        start = perf_counter()
        list(_run_all(session, texts, threads))
        seconds.append(perf_counter() - start)
    return min(seconds)


class OnnxRuntimeSession:
    """An ONNX model run by onnxruntime on the CPU, one thread for each call.

    A run that takes longer than RUN_SECONDS is stopped: onnxruntime looks between two nodes, also inside a loop.
    """

    def __init__(self, model: bytes, *, name: str = MODEL_FILE) -> None:
        self._name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(self, input_ids: TokenIds, attention_mask: TokenIds) -> NDArray[np.float32]:
        """float32 `[batch, dimension]` for two int64 `[batch, length]`.

        Raises:
            InvalidBundle: the graph did not end in time.
        """
        inputs = dict(zip(INPUT_NAMES, (input_ids, attention_mask), strict=True))
        options = onnxruntime.RunOptions()
        timer = threading.Timer(RUN_SECONDS, setattr, (options, "terminate", True))
        timer.daemon = True
        timer.start()
        try:
            vectors: NDArray[np.float32] = self._session.run([OUTPUT_NAME], inputs, options)[0]
        except Exception as error:
            if not options.terminate:
                raise
            raise InvalidBundle(
                f"{self._name} did not finish a batch within {RUN_SECONDS:g} seconds, so it was stopped; its graph "
                "may hold a loop that never ends: export the bundle again"
            ) from error
        finally:
            timer.cancel()
        return vectors
