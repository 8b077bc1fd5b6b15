"""DLPack: exchanges tensors with arrays of other libraries, without copying."""

from __future__ import annotations

import enum
from typing import Any

from .. import _C

Tensor = _C.Tensor


class DLDeviceType(enum.IntEnum):
    """The device types of DLPack.

    >>> naru.utils.dlpack.DLDeviceType(1).name
    'kDLCPU'
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLROCM = 10
    kDLExtDev = 12
    kDLOneAPI = 14


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """(device type, index) of the device, in DLPack's numbering: the host, or an NVIDIA device. Others are of an unknown type (kDLExtDev), as their
    memory has no address that other libraries could use: virtual devices, and OpenCL's.

    Args:
        self: the tensor.

    >>> kind, index = naru.ones(1).__dlpack_device__()
    >>> kind.name, index
    ('kDLCPU', 0)
    """
    kind, number = _C._dlpack_device(self)
    return DLDeviceType(kind), number


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over the tensor's memory (copy: over a copy), which it keeps alive.

    max_version: the newest DLPack version that the consumer supports; from (1, 0) on, the capsule is versioned. dl_device: (1, 0) requests host memory,
    which is a copy for a tensor on a device whose memory the host can't use. stream: the consumer's stream; the data is ready when this returns, as it waits for all work of the device, and
    the memory is not reused before the work that the stream was given until the capsule's release is done. Errors:
    BufferError for a tensor that requires grad, on a device whose memory others cannot use unless host memory was requested, or if copy=False forbids
    the copy.

    Args:
        self: the tensor.

    >>> import numpy as np
    >>> x = naru.tensor([1, 2])
    >>> shared = np.from_dlpack(x)
    >>> shared[0] = 5
    >>> x
    tensor([5, 2])
    """
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    own = dlpack_device(self)
    wanted = own if dl_device is None else tuple(dl_device)
    if wanted[0] == DLDeviceType.kDLExtDev or wanted not in (own, (DLDeviceType.kDLCPU, 0)):
        raise BufferError(
            f"__dlpack__: the memory of {self.device} can't be handed over as that of device {wanted}: other libraries have no use for its addresses; "
            "use tensor.cpu() first, or ask for dl_device=(1, 0)"
        )
    if wanted != own:
        if not copy and not self.requires_grad and (shared := _C._seen_by_host(self)) is not None:
            return _C._to_dlpack(shared, versioned, False)
        if copy is False:
            raise BufferError(f"__dlpack__: a tensor on {self.device} as memory of the host is a copy, which copy=False forbids")
        return _C._to_dlpack(self.cpu(), versioned, False)
    # The protocol's default is the default stream.
    return _C._to_dlpack(self, versioned, bool(copy), 1 if stream is None else stream)


_TYPE_CODES = {"float": "f", "int": "i", "uint": "u", "complex": "c"}


def cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """The location of the elements in an NVIDIA device's memory, for libraries that read `__cuda_array_interface__` (Numba, CuPy): address, shape,
    strides in bytes, dtype, and the stream after which they may be used, in version 3 of the protocol. AttributeError for a tensor elsewhere (virtual
    devices have no such memory) and for bfloat16, RuntimeError for one that requires grad.

    Args:
        self: the tensor.

    >>> hasattr(naru.ones(2), "__cuda_array_interface__")
    False
    """
    if dlpack_device(self)[0] != DLDeviceType.kDLCUDA:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} on {self.device}, whose memory is none of an NVIDIA device's; "
            "use tensor.cpu() and NumPy's protocols"
        )
    if self.layout is not _C.strided:
        raise AttributeError(f"Can't get __cuda_array_interface__ on sparse tensor of layout {self.layout}; use tensor.to_dense()")
    if self.requires_grad:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use var.detach().")
    kind = str(self.dtype).removeprefix("torch.").rstrip("0123456789")
    if kind not in _TYPE_CODES and self.dtype is not _C.bool:
        raise AttributeError(f"__cuda_array_interface__: the protocol has no type for {self.dtype}; use DLPack, or tensor.float()")
    size = self.element_size()
    code = "|b1" if self.dtype is _C.bool else f"{'<' if size > 1 else '|'}{_TYPE_CODES[kind]}{size}"
    strides = None if self.is_contiguous() else tuple(s * size for s in self.stride())
    data = (self.data_ptr() if self.numel() else 0, False)
    stream = _C._stream_handle(str(self.device))
    return {"typestr": code, "shape": tuple(self.shape), "strides": strides, "data": data, "stream": stream or None, "version": 3}


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory.

    Args:
        tensor: a tensor that does not require grad (BufferError). The capsule can be used once.

    >>> x = naru.tensor([1, 2])
    >>> y = naru.from_dlpack(naru.utils.dlpack.to_dlpack(x))
    >>> y.data_ptr() == x.data_ptr()
    True
    """
    return dlpack(tensor)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array (anything with `__dlpack__`), or of a capsule. Arrays on NVIDIA devices
    stay there (tested in naru with a substitute for NVIDIA's driver, never on a GPU).

    device: the device of the result (a copy, if the array is elsewhere). copy: True forces a copy, False raises an error if a copy would
    be needed.

    Args:
        ext_tensor: the other library's array, or a capsule.

    >>> import naru, numpy
    >>> a = numpy.arange(3.0)
    >>> t = naru.from_dlpack(a)
    >>> t[0] = 7
    >>> a
    array([7., 1., 2.])
    """
    if isinstance(ext_tensor, Tensor) and ext_tensor.device.type != "cpu":  # naru's own memory needs no address exchange
        tensor = ext_tensor.detach().clone() if copy else ext_tensor.detach()
    elif not hasattr(ext_tensor, "__dlpack__"):
        tensor = _C._from_dlpack(ext_tensor)
    else:
        kind, number = map(int, ext_tensor.__dlpack_device__())
        options: dict[str, Any] = {} if copy is None else {"copy": copy}
        if not _C._shares_dlpack_device(kind, number):
            if device is None:
                raise BufferError(
                    f"from_dlpack: wanted memory of the host (device type 1) or of a device that is here, got device type {kind}; name a device "
                    "(device='cpu') to have it copied"
                )
            options["dl_device"] = (DLDeviceType.kDLCPU, 0)
        elif kind == DLDeviceType.kDLCUDA:
            options["stream"] = 1  # the default stream; the core waits for it and all others
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # a library from before version 1
            capsule = ext_tensor.__dlpack__(stream=1) if "stream" in options else ext_tensor.__dlpack__()
            tensor = _C._from_dlpack(capsule)
            return tensor.clone() if copy else _moved(tensor, device, copy)
        tensor = _C._from_dlpack(capsule)
    return _moved(tensor, device, copy)


def _moved(tensor: Tensor, device: Any, copy: bool | None) -> Tensor:
    moved = tensor if device is None else tensor.to(device)
    if copy is False and moved is not tensor:
        raise ValueError(f"from_dlpack: the array is on {tensor.device}, and a tensor on {device} needs a copy, which copy=False forbids")
    return moved
