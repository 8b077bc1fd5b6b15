"""DLPack: arrays of other libraries as tensors and the other way round, without a copy."""

from __future__ import annotations

import enum
from typing import Any

from .. import _C

Tensor = _C.Tensor


class DLDeviceType(enum.IntEnum):
    """The kinds of device that DLPack knows."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLROCM = 10
    kDLOneAPI = 14


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """(kind, index) of the device, as DLPack numbers them. BufferError for a device whose memory other libraries can't use."""
    if self.device.type != "cpu":
        raise BufferError(f"__dlpack_device__: the memory of {self.device} has no address that other libraries can use; use tensor.cpu() first")
    return DLDeviceType.kDLCPU, 0


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over the tensor's memory (copy: over a copy), which it keeps alive.

    max_version: the newest version of DLPack that the consumer reads, from (1, 0) on with a versioned capsule. stream is of no concern, as the
    values are there when this returns. Errors: BufferError for a tensor that requires grad, or on a device.
    """
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if dl_device is not None and tuple(dl_device) != dlpack_device(self):
        raise BufferError(f"__dlpack__: a tensor on {self.device} can't be handed over on device {tuple(dl_device)}; move it there first")
    return _C._to_dlpack(self, max_version is not None and tuple(max_version) >= (1, 0), bool(copy))


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory."""
    return dlpack(tensor)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an array of another library (anything with `__dlpack__`), or of a capsule; the memory is shared.

    device: where the tensor is to be (a copy, if it is not there already). copy: True for memory of its own, False for an error where a copy
    would be needed.

    >>> import naru, numpy
    >>> a = numpy.arange(3.0)
    >>> t = naru.from_dlpack(a)
    >>> t[0] = 7
    >>> a
    array([7., 1., 2.])
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        tensor = _C._from_dlpack(ext_tensor)
    else:
        kind = int(ext_tensor.__dlpack_device__()[0])
        if kind not in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost):
            raise BufferError(f"from_dlpack: wanted memory of the host (device type 1), got device type {kind}; copy the array to the host first")
        options = {} if copy is None else {"copy": copy}
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # a library from before version 1
            capsule = ext_tensor.__dlpack__()
            tensor = _C._from_dlpack(capsule)
            return tensor.clone() if copy else _moved(tensor, device, copy)
        tensor = _C._from_dlpack(capsule)
    return _moved(tensor, device, copy)


def _moved(tensor: Tensor, device: Any, copy: bool | None) -> Tensor:
    if device is None or _C.device(device).type == "cpu":
        return tensor
    if copy is False:
        raise ValueError(f"from_dlpack: the array is on cpu, and a tensor on {device} needs a copy, which copy=False forbids")
    return tensor.to(device)
