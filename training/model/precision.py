"""In which numbers the transformer computes; losses are always float32."""

from contextlib import AbstractContextManager, nullcontext

import torch

from training.config import Precision


def chosen_precision(wanted: Precision, device: torch.device) -> Precision:
    """`wanted`, or for "auto" bfloat16 where the hardware multiplies it, which halves time and memory."""
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    capabilities = torch.cpu.get_capabilities()
    return "bfloat16" if capabilities.get("amx_bf16") or capabilities.get("avx512_bf16") else "float32"


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """Within it the transformer computes in `precision`; weights and gradients stay float32."""
    if precision == "bfloat16":
        context: AbstractContextManager[None] = torch.autocast(device.type, dtype=torch.bfloat16)
        return context
    return nullcontext()
