"""The number format in which the transformer computes; losses are always float32."""

from contextlib import AbstractContextManager, nullcontext

import torch

from training.config import Precision


def chosen_precision(setting: Precision, device: torch.device) -> Precision:
    """Return the setting or, for "auto", bfloat16 if the hardware supports it, which halves time and memory."""
    if setting != "auto":
        return setting
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    capabilities = torch.cpu.get_capabilities()
    return "bfloat16" if capabilities.get("amx_bf16") or capabilities.get("avx512_bf16") else "float32"


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which the transformer computes in `precision`; weights and gradients stay float32."""
    if precision == "bfloat16":
        context: AbstractContextManager[None] = torch.autocast(device.type, dtype=torch.bfloat16)
        return context
    return nullcontext()
