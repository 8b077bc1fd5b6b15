"""`torch.nn.utils.memory_format`: converts the weights of convolutions to channels last."""

from __future__ import annotations

from typing import Any, TypeVar

from ... import _C, _missing
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

M = TypeVar("M")

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, memory_format: _C.memory_format, kinds: tuple[type, ...]) -> Any:
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, kinds)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Converts the weights of all Conv2d and ConvTranspose2d in the module to a memory format such as `naru.channels_last`. Returns the module.

    Args:
        memory_format: the memory format.

    >>> conv = naru.nn.Conv2d(2, 3, 2)
    >>> conv.weight.stride()
    (8, 4, 2, 1)
    >>> naru.nn.utils.convert_conv2d_weight_memory_format(conv, naru.channels_last).weight.stride()
    (8, 1, 4, 2)
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Converts the weights of all Conv3d and ConvTranspose3d in the module to a memory format such as `naru.channels_last_3d`. Returns the module.

    Args:
        module: any module.
        memory_format: the memory format.

    >>> conv = naru.nn.Conv3d(2, 3, 2)
    >>> conv.weight.stride()
    (16, 8, 4, 2, 1)
    >>> naru.nn.utils.convert_conv3d_weight_memory_format(conv, naru.channels_last_3d).weight.stride()
    (16, 1, 8, 4, 2)
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


__getattr__ = _missing.module_getattr(__name__)
