"""Runs a bundle with OpenVINO, an optional second runtime for the same `encoder_id`.

Install it with `pip install 'company-similarity[openvino]'`. Its vectors are not bit-identical to onnxruntime's;
`benchmarks/encoder.py` measures the cosine between them.
"""

from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from similarity.errors import SimilarityError
from similarity.model.manifest import INPUT_NAMES, OUTPUT_NAME


class OpenVinoSession:
    """An ONNX model compiled by OpenVINO for this machine's CPU.

    Raises:
        SimilarityError: OpenVINO is not installed.
    """

    runtime = "openvino"

    def __init__(self, model: bytes, *, threads: int) -> None:
        try:
            import openvino
        except ImportError:
            raise SimilarityError(
                "the OpenVINO runtime is not installed; run pip install 'company-similarity[openvino]', or use the "
                "runtime 'onnxruntime'"
            ) from None
        core = openvino.Core()
        # A stream is a thread that runs whole requests, as each thread of the encoder runs whole batches.
        options = {"PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads}
        compiled = core.compile_model(core.read_model(model), "CPU", options)
        # A request has one set of buffers, so only one caller at a time may use it.
        self._idle: SimpleQueue[Any] = SimpleQueue()
        for _ in range(threads):
            self._idle.put(compiled.create_infer_request())

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return float32 `[batch, dimension]` for two int64 `[batch, length]`."""
        request = self._idle.get()
        try:
            outputs = request.infer(dict(zip(INPUT_NAMES, (input_ids, attention_mask), strict=True)))
            vectors: NDArray[np.float32] = np.array(outputs[OUTPUT_NAME], dtype=np.float32)
        finally:
            self._idle.put(request)
        return vectors
