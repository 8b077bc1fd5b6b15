"""`torch.nn.attention`: selection of attention kernels (fused, or products and a softmax), and masks given by formulas."""

from __future__ import annotations

import contextlib
from enum import IntEnum
from typing import TYPE_CHECKING

from ... import _missing
from ...backends import cuda as _switches

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """PyTorch's kernels for attention.

    >>> naru.nn.attention.SDPBackend.MATH, naru.nn.attention.SDPBackend(1).name
    (<SDPBackend.MATH: 0>, 'FLASH_ATTENTION')
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


# The name of each in `torch.backends.cuda`.
_SWITCHES = {
    SDPBackend.MATH: ("enable_math_sdp", "math_sdp_enabled"),
    SDPBackend.FLASH_ATTENTION: ("enable_flash_sdp", "flash_sdp_enabled"),
    SDPBackend.EFFICIENT_ATTENTION: ("enable_mem_efficient_sdp", "mem_efficient_sdp_enabled"),
    SDPBackend.CUDNN_ATTENTION: ("enable_cudnn_sdp", "cudnn_sdp_enabled"),
}


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    return [backend for backend, (_, told) in _SWITCHES.items() if getattr(_switches, told)()]


def _note(backends: list[SDPBackend]) -> None:
    for backend, (switch, _) in _SWITCHES.items():
        getattr(_switches, switch)(backend in backends)


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """A context manager that selects the kernels attention may use. With only MATH, attention is computed from products and a softmax on every device; with
    any other, cuDNN computes fused attention on cuda, if it supports the case. (See `torch.backends.cuda` for the selected kernels.)

    AssertionError for anything but an SDPBackend or a list of them.

    Args:
        set_priority: ignored.

    >>> import naru
    >>> from naru.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     naru.backends.cuda.flash_sdp_enabled()
    False
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    before = _cur_sdpa_kernel_backends()
    _note([backends] if isinstance(backends, SDPBackend) else backends)
    try:
        yield {}
    finally:
        _note(before)


from . import bias as bias, flex_attention as flex_attention  # noqa: E402

__getattr__ = _missing.module_getattr(__name__)
