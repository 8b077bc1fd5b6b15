"""Functions that rebuild pickled tensors, and exceptions passed between processes, under PyTorch's names."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

from . import _C
from .utils._exceptions import ExceptionWrapper as ExceptionWrapper

Tensor = _C.Tensor


def _element_size(dtype: Any) -> int:
    """Bytes per element."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device; for a device without an index, the current one of its kind, if `optional`."""
    if isinstance(device, int):
        return device
    wanted = None if device is None else _C.device(device)
    if wanted is not None and wanted.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return -1 if wanted.index is None else wanted.index
    if wanted is not None and wanted.index is not None:
        return wanted.index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    from ._compat.checks import get_device_module

    return get_device_module(wanted).current_device()


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor with the given geometry over a storage; ValueError if it would reach outside the storage."""
    size, stride = list(size), list(stride)
    if len(size) != len(stride) or storage_offset < 0 or any(n < 0 for n in size) or any(s < 0 for s in stride):
        raise ValueError(f"a stored tensor has size {size}, stride {stride}, offset {storage_offset}, which no tensor can have")
    if math.prod(size) > sys.maxsize:
        raise ValueError(f"a stored tensor of size {size} has more elements than can be counted")
    base = storage.tensor
    last = storage_offset + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size and last >= base.numel():
        raise ValueError(
            f"a stored tensor of size {size}, stride {stride} and offset {storage_offset} reaches beyond its storage of "
            f"{base.numel()} elements"
        )
    return base.as_strided(size, stride, storage_offset).detach()


class _Unread(threading.local):
    """Set while a legacy pickle is read, whose storages follow it in the file: rebuilding that needs elements waits until they are read."""

    begun = False
    waiting = False


unread = _Unread()


def _needs_elements() -> bool:
    """Notes that what is rebuilt is made of elements, not only of their places. Whether these are not read yet."""
    unread.waiting |= unread.begun
    return unread.begun


def _rebuild_tensor_v2(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, metadata: Any = None
) -> Tensor:
    """A tensor as PyTorch's files describe it.

    metadata: {"conj": True, "neg": True} of a tensor whose elements are stored as they were before it was conjugated, negated.
    """
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if isinstance(metadata, dict) and metadata:
        _needs_elements()
        if metadata.get("conj"):
            tensor = tensor.conj().resolve_conj()
        if metadata.get("neg"):
            tensor = -tensor
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over an untyped storage."""
    return _rebuild_tensor_v2(storage.as_dtype(dtype), storage_offset, size, stride, requires_grad, backward_hooks, metadata)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor of the meta device, which has no elements."""
    tensor = _C.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return tensor.requires_grad_(True) if requires_grad else tensor


def _rebuild_sparse_tensor(layout: Any, data: tuple) -> Tensor:
    """A sparse tensor from its parts: (indices, values, size, whether coalesced), or (compressed indices, plain indices, values, size).
    Both forms are validated."""
    from ._sparse_tensors import sparse_compressed_tensor, sparse_coo_tensor

    if _needs_elements():
        return _C.zeros(0)
    if layout in (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc):
        return sparse_compressed_tensor(*data, layout=layout)
    if layout is not _C.sparse_coo:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    indices, values, size, *coalesced = data
    if math.prod(size) > sys.maxsize:
        raise ValueError(f"a stored sparse tensor of size {tuple(size)} has more elements than can be counted")
    return sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter over `data`."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter over `data` with attributes of its own."""
    return _with_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor) -> Any:
    """A nested tensor of layout torch.strided from a file."""
    from .nested._internal.nested_tensor import rebuild_strided

    _needs_elements()
    return rebuild_strided(buffer, sizes, strides, storage_offsets)


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> Any:
    """A nested tensor of layout torch.jagged from a file."""
    from .nested._internal.nested_tensor import rebuild_jagged

    _needs_elements()
    return rebuild_jagged(constructor_kwargs)


_rebuild_njt.__module__ = "naru.nested._internal.nested_tensor"  # PyTorch's location, which files refer to


def _with_state(obj: Any, state: Any) -> Any:
    """Adds the attributes of `state` to `obj`. They go to its `__dict__`: no setter is called, and its class does not change."""
    state = dict(state or {})
    if not all(type(name) is str for name in state):
        raise TypeError(f"the state of a {type(obj).__name__} has a name that is no text")
    if state:
        obj.__dict__.update(state)
    return obj


def _strides_to_keep(tensor: Tensor) -> tuple[int, ...] | None:
    """The strides to store for a pickled tensor that is transposed, expanded, or channels_last. None: row-major; windows and tensors with
    gaps become row-major."""
    if tensor.is_contiguous() or tensor.numel() == 0:
        return None
    once = tensor.detach().as_strided([n if s else 1 for n, s in zip(tensor.shape, tensor.stride())], [s or 1 for s in tensor.stride()], tensor.storage_offset())
    step = 1
    for stride, n in sorted((s, n) for s, n in zip(once.stride(), once.shape) if n > 1):
        if stride != step:
            return None
        step *= n
    return tensor.stride()


def _with_strides(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The same elements with other strides; a dimension with stride 0 is stored once."""
    once = tensor[tuple(slice(None) if s else slice(1) for s in strides)]
    return _C.empty_strided(once.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(once).as_strided(tensor.shape, strides)


def _tensor_from_bytes(
    data: bytes, dtype: str, size: tuple[int, ...], device: str, requires_grad: bool, strides: tuple[int, ...] | None = None
) -> Tensor:
    """Rebuilds a tensor pickled with `pickle` itself; on the CPU if its device is absent."""
    from ._serialization.storages import bytes_to_tensor, device_if_present

    tensor = bytes_to_tensor(data, getattr(_C, dtype)).reshape(size)
    target = device_if_present(device)
    if target is not None:
        tensor = tensor.to(target)
    if strides is not None:
        tensor = _with_strides(tensor, strides).detach()
    return tensor.requires_grad_(True) if requires_grad else tensor


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """The elements of all tensors, concatenated; for a single contiguous tensor, a view."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else _C.cat(flat)


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Views of `flat` with the sizes of `tensors`, the tensors that it was made from."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors))


def _get_available_device_type() -> str | None:
    """The kind of device that programs get beside the CPU; None if there is none."""
    return next((kind for kind in _C._ACCELERATORS if _C.device_count(kind)), None)


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.cuda`."""
    from ._compat.checks import get_device_module

    return get_device_module(device_type)
