"""`torch.backends.cuda`: how products and attention are computed on cuda. The other switches are accepted for compatibility with PyTorch."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import _precision


def _reductions(name: str, dtype: Any) -> property:
    """The switch for one 16-bit type."""

    def tell(self: Any) -> bool:
        return _C._reduced_precision_reduction_allowed(dtype)

    def allow(self: Any, value: Any) -> None:
        given = value if isinstance(value, (tuple, list)) else (value,)
        if not 1 <= len(given) <= 2 or not all(isinstance(v, bool) for v in given):
            raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)!r}")
        if given[0] and given[1:] == (False,):
            raise RuntimeError("allow_splitk=False is not supported when reduced precision reductions are enabled")
        _C._allow_reduced_precision_reduction(dtype, given[0])

    return property(tell, allow, doc="Whether a library may add parts of a product's sums up in 16 bits.")


class _MatmulSwitches:
    """Switches for products on cuda devices with cuBLASLt."""

    __slots__ = ()

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 factors may be rounded to TF32 (10 bits of mantissa), on devices with TF32 units."""
        return _C._tf32_allowed()

    @allow_tf32.setter
    def allow_tf32(self, on: bool) -> None:
        if not isinstance(on, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(on).__name__}")
        _precision.set_matmul("tf32" if on else "ieee")

    @property
    def fp32_precision(self) -> str:
        """The same setting: "tf32", "ieee", or "none" to use `torch.backends.fp32_precision`."""
        return _precision.matmul()

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        _precision.set_matmul(precision)

    allow_fp16_reduced_precision_reduction = _reductions("allow_fp16_reduced_precision_reduction", _C.float16)
    allow_bf16_reduced_precision_reduction = _reductions("allow_bf16_reduced_precision_reduction", _C.bfloat16)

    @property
    def allow_fp16_accumulation(self) -> bool:
        """False: float16 products are accumulated in float32."""
        return False

    @allow_fp16_accumulation.setter
    def allow_fp16_accumulation(self, on: bool) -> None:
        if on:
            raise RuntimeError("allow_fp16_accumulation: wanted False, got True; naru adds float16 products up in float32 only")


matmul = _MatmulSwitches()


def is_built() -> bool:
    """Whether cuda devices can be used if present; the driver is looked up at run time.

    >>> naru.backends.cuda.is_built()
    True
    """
    return True


def is_flash_attention_available() -> bool:
    """False: attention runs in cuDNN, if it supports the case, or as products and a softmax, which the queue fuses.

    >>> naru.backends.cuda.is_flash_attention_available()
    False
    """
    return False


_fused: dict[str, bool] = {}  # for each of PyTorch's fused attention kernels, whether it is allowed


def _switch(names: tuple[str, str], name: str, at_first: bool, fused: bool = False) -> tuple[Any, Any]:
    """Makes the setter and getter of a switch. fused: cuDNN attention is used while any of these is on; naru does not use the other switches."""
    value = [at_first]
    if fused:
        _fused[name] = at_first

    def set_switch(enabled: bool) -> None:
        value[0] = bool(enabled)
        if fused:
            _fused[name] = value[0]
            _C._allow_fused_attention(any(_fused.values()))

    def tell() -> bool:
        return value[0]

    (set_switch.__name__, tell.__name__) = names
    effect = "cuDNN does it on cuda while one of flash, memory-efficient and cuDNN's attention is allowed" if fused else "without effect"
    set_switch.__doc__ = f"Notes in `enabled` whether {name} may be used; {effect}.\n\n>>> naru.backends.cuda.{names[0]}({at_first}); naru.backends.cuda.{names[1]}()\n{at_first}\n"
    tell.__doc__ = f"Whether {name} may be used, as set last.\n\n>>> naru.backends.cuda.{names[1]}()\n{at_first}\n"
    return set_switch, tell


enable_flash_sdp, flash_sdp_enabled = _switch(("enable_flash_sdp", "flash_sdp_enabled"), "flash attention", True, fused=True)
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch(("enable_mem_efficient_sdp", "mem_efficient_sdp_enabled"), "memory-efficient attention", True, fused=True)
enable_math_sdp, math_sdp_enabled = _switch(("enable_math_sdp", "math_sdp_enabled"), "attention made of products", True)
enable_cudnn_sdp, cudnn_sdp_enabled = _switch(("enable_cudnn_sdp", "cudnn_sdp_enabled"), "cuDNN's attention", True, fused=True)
allow_fp16_bf16_reduction_math_sdp, fp16_bf16_reduction_math_sdp_allowed = _switch(("allow_fp16_bf16_reduction_math_sdp", "fp16_bf16_reduction_math_sdp_allowed"), "a sum in 16 bits", False)


class sdp_kernel:
    """A context manager that sets which attention kernels are allowed, as `torch.nn.attention.sdpa_kernel` does, through the switches of this module:
    enable_flash, enable_math, enable_mem_efficient and enable_cudnn are their values until the end of the block.

    >>> with naru.backends.cuda.sdp_kernel(enable_math=False):
    ...     naru.backends.cuda.math_sdp_enabled(), naru.ones(2).sum()
    (False, tensor(2.))
    """

    def __init__(self, enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> None:
        self._wanted = (enable_flash, enable_math, enable_mem_efficient, enable_cudnn)

    @staticmethod
    def _exchange(wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        before = flash_sdp_enabled(), math_sdp_enabled(), mem_efficient_sdp_enabled(), cudnn_sdp_enabled()
        for enable, on in zip((enable_flash_sdp, enable_math_sdp, enable_mem_efficient_sdp, enable_cudnn_sdp), wanted):
            enable(on)
        return before

    def __enter__(self) -> None:
        self._before = self._exchange(self._wanted)

    def __exit__(self, *exc: object) -> None:
        self._exchange(self._before)


def can_use_flash_attention(params: Any = None, debug: bool = False) -> bool:
    """False, whatever `params` and `debug` are: naru has one attention implementation.

    >>> naru.backends.cuda.can_use_flash_attention()
    False
    """
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def preferred_linalg_library(backend: Any = None) -> str:
    """"default": there is only one library, whatever `backend` requests.

    >>> naru.backends.cuda.preferred_linalg_library("cusolver")
    'default'
    """
    return "default"


preferred_blas_library = preferred_linalg_library
