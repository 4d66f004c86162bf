"""Runs a bundle with onnxruntime: on the CPU, or on an NVIDIA GPU through the package onnxruntime-gpu.

docs/installing.md says how to install that package, which replaces onnxruntime.
"""

import sys
import threading
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from similarity.errors import InvalidBundle, SimilarityError
from similarity.model.manifest import INPUT_NAMES, OUTPUT_NAME

# A batch takes well under a second. A run that takes longer than this, such as an endless loop, is terminated.
RUN_SECONDS = 30.0
GPU_PROVIDERS: Mapping[str, str] = {"cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}
"""The runtimes that need a GPU, and onnxruntime's names for them."""


class OnnxRuntimeSession:
    """An ONNX model run by onnxruntime on the CPU, one thread for each call, or by a runtime of GPU_PROVIDERS.

    `largest` is the largest batch (rows, tokens); TensorRT compiles the model for it. A run that takes longer than
    RUN_SECONDS is terminated: onnxruntime checks between nodes, also in a Loop, whether it must stop.

    Raises:
        SimilarityError: the runtime needs a GPU or libraries that are not there.
    """

    def __init__(
        self,
        model: bytes,
        *,
        name: str = "model.onnx",
        runtime: str = "onnxruntime",
        largest: tuple[int, int] = (256, 128),
    ) -> None:
        self._name = name
        self.runtime = runtime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.load_model_format", "ONNX")  # refuses onnxruntime's own format
        providers: list[Any] = ["CPUExecutionProvider"]
        gpu = GPU_PROVIDERS.get(runtime)
        if gpu:
            _require(gpu)
            # TensorRT uses CUDA for the operators that it lacks, and both use the CPU.
            providers = [(gpu, _shapes(*largest)), "CUDAExecutionProvider"] if runtime == "tensorrt" else [gpu]
            providers.append("CPUExecutionProvider")
        # onnxruntime's own fallback would print to standard output.
        self._session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=False)
        if gpu and gpu not in self._session.get_providers():
            raise SimilarityError(f"{gpu} did not start; onnxruntime's messages above name what is missing")

    def check_interface(self, dimension: int) -> None:
        """Raise InvalidBundle unless the model maps token ids and masks `[batch, length]` to `[batch, dimension]`."""
        expected = dict.fromkeys(INPUT_NAMES, ("tensor(int64)", "any", "any"))
        expected[OUTPUT_NAME] = ("tensor(float)", "any", str(dimension))
        found = {
            value.name: (value.type, *(str(size) if isinstance(size, int) else "any" for size in value.shape))
            for value in (*self._session.get_inputs(), *self._session.get_outputs())
        }
        if found != expected:
            raise InvalidBundle(
                f"{self._name} has the inputs and outputs {found} instead of {expected}; export the bundle again"
            )

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return float32 `[batch, dimension]` for two int64 `[batch, length]`.

        Raises:
            InvalidBundle: the run was terminated after RUN_SECONDS.
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
                "may contain an endless loop: export the bundle again"
            ) from error
        finally:
            timer.cancel()
        return vectors


def _require(provider: str) -> None:
    """Load the CUDA libraries of the packages nvidia-*, if they are installed.

    Raises:
        SimilarityError: this onnxruntime was built without `provider`.
    """
    if provider not in onnxruntime.get_available_providers():
        raise SimilarityError(
            f"the installed onnxruntime has no {provider}; run pip uninstall onnxruntime, then pip install "
            "'onnxruntime-gpu[cuda,cudnn]'"
        )
    with redirect_stdout(sys.stderr):
        onnxruntime.preload_dlls()


def _shapes(rows: int, tokens: int) -> dict[str, str]:
    """Return the options that make TensorRT compile once, when the model is loaded, and not for each larger batch."""
    shapes = {"min": (1, 1), "opt": (rows // 2, tokens // 2), "max": (rows, tokens)}
    return {
        f"trt_profile_{name}_shapes": ",".join(f"{tensor}:{shape[0]}x{shape[1]}" for tensor in INPUT_NAMES)
        for name, shape in shapes.items()
    }
