"""`torch.backends.cuda`: accepted for PyTorch's sake."""

from __future__ import annotations

from typing import Any


class _MatmulSwitches:
    allow_tf32: bool = False
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True
    fp32_precision: str = "ieee"


matmul = _MatmulSwitches()


def is_built() -> bool:
    """Whether cuda devices can be used where they are present; the driver is looked for at run time."""
    return True


class sdp_kernel:
    """A context manager that once chose an attention kernel; does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def is_flash_attention_available() -> bool:
    """False: attention is made of products and a softmax, which the queue fuses."""
    return False


def _switch(name: str, at_first: bool) -> tuple[Any, Any]:
    """The functions that set and tell a switch that naru notes and has no other use for."""
    value = [at_first]

    def set_switch(enabled: bool) -> None:
        value[0] = bool(enabled)

    def tell() -> bool:
        return value[0]

    set_switch.__doc__ = f"Notes whether {name} may be used; without effect."
    tell.__doc__ = f"Whether {name} may be used, as set last."
    return set_switch, tell


enable_flash_sdp, flash_sdp_enabled = _switch("flash attention", True)
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("memory-efficient attention", True)
enable_math_sdp, math_sdp_enabled = _switch("attention made of products", True)
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cuDNN's attention", True)
allow_fp16_bf16_reduction_math_sdp, fp16_bf16_reduction_math_sdp_allowed = _switch("a sum in 16 bits", False)


def can_use_flash_attention(params: Any = None, debug: bool = False) -> bool:
    """False: there is one attention."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def preferred_linalg_library(backend: Any = None) -> str:
    """"default": there is one."""
    return "default"


preferred_blas_library = preferred_linalg_library
