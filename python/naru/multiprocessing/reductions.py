"""Pickling of tensors, parameters and storages for another process: as shared memory, by open file."""

from __future__ import annotations

import os
import weakref
from multiprocessing import context, reduction
from typing import Any

from .. import _C
from .._sparse_tensors import reduce_sparse
from ..nn.parameter import Parameter

Tensor = _C.Tensor

# Storages received from or sent to other processes, by the file's device and inode: a storage that arrives twice is one storage here.
_known: weakref.WeakValueDictionary[tuple[int, int], Tensor] = weakref.WeakValueDictionary()


def _identity(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def _received(handle: Any, size: int) -> Tensor:
    """The bytes of a file received from another process."""
    file = handle.detach()
    key = _identity(file)
    known = _known.get(key)
    if known is not None:
        os.close(file)
        return known
    found = _C._tensor_of_shared_file(file, size)
    _known[key] = found
    return found


def rebuild_tensor(
    kind: type, storage: Tensor, dtype: Any, shape: tuple[int, ...], stride: tuple[int, ...], offset: int, requires_grad: bool
) -> Tensor:
    """A tensor of `dtype`, `shape`, `stride` and `offset` over the bytes of `storage`, received from another process; of type `kind`, such as
    Parameter. `requires_grad` as in the sender.

    >>> storage = naru.arange(3).view(naru.uint8)
    >>> naru.multiprocessing.reductions.rebuild_tensor(naru.Tensor, storage, naru.int64, (2,), (1,), 1, False)
    tensor([1, 2])
    """
    flat = storage[: storage.numel() // dtype.itemsize * dtype.itemsize].view(dtype) if storage.numel() else storage.new_empty(0).to(dtype)
    tensor = flat.as_strided(shape, stride, offset).detach()
    if kind is Parameter:
        return Parameter(tensor, requires_grad)
    tensor.requires_grad_(requires_grad)
    return tensor if kind is Tensor else Tensor._make_subclass(kind, tensor, requires_grad)


def rebuild_bytes(handle: Any, size: int) -> Tensor:
    """The bytes of shared memory: `size` bytes of the file of `handle`, or no bytes if that is None.

    >>> naru.multiprocessing.reductions.rebuild_bytes(None, 0)
    tensor([], dtype=torch.uint8)
    """
    return _received(handle, size) if handle is not None else _C.empty(0, dtype=_C.uint8)


def rebuild_on_device(kind: type, host: Tensor, device: str, requires_grad: bool) -> Tensor:
    """A tensor on `device` from its copy on the host, `host`; of type `kind`. `requires_grad` as in the sender.

    >>> naru.multiprocessing.reductions.rebuild_on_device(naru.nn.Parameter, naru.ones(2), "cpu", True)
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """
    tensor = host.to(device)
    return Parameter(tensor, requires_grad) if kind is Parameter else tensor.requires_grad_(requires_grad)


class _Bytes:
    """A storage to be pickled as (rebuild_bytes, its file)."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __reduce__(self) -> Any:
        size = self.tensor.untyped_storage().nbytes()
        if size == 0:
            return rebuild_bytes, (None, 0)
        file = _C._shared_file(self.tensor)
        if file < 0:
            raise RuntimeError("this system has no files without a name in memory (memfd_create), by which memory is shared with other processes")
        return rebuild_bytes, (reduction.DupFd(file), size)


def _bytes_of(tensor: Tensor) -> _Bytes:
    """The storage of `tensor`, for pickling. For a process that is being started, all tensors on one storage share one object, kept as long as the
    process object: the files are passed after the last tensor, by number, and each number may occur only once."""
    popen, file = context.get_spawning_popen(), _C._shared_file(tensor)
    if popen is None or file < 0:
        return _Bytes(tensor)
    kept: dict[int, _Bytes] = popen.__dict__.setdefault("_storages", {})
    return kept.setdefault(file, _Bytes(tensor))


def reduce_tensor(tensor: Tensor) -> tuple[Any, tuple]:
    """The pickled form of `tensor`: a function and its arguments. RuntimeError if it requires grad and is not a leaf.

    >>> make, parts = naru.multiprocessing.reductions.reduce_tensor(naru.arange(3))
    >>> make.__name__, parts[2:5]
    ('rebuild_tensor', (torch.int64, (3,), (1,)))
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor.layout != _C.strided:
        return reduce_sparse(tensor)  # each of its parts is shared
    kind, plain = type(tensor), tensor.detach()
    if tensor.device.type != "cpu":
        return rebuild_on_device, (kind, plain.cpu(), str(tensor.device), tensor.requires_grad)
    if not plain.is_shared() or _C._shared_file(plain) < 0:
        plain.share_memory_()
    geometry = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()
    return rebuild_tensor, (kind, _bytes_of(plain), tensor.dtype, *geometry, tensor.requires_grad)


def init_reductions() -> None:
    """Makes Python's multiprocessing pickle tensors with `reduce_tensor`; called when `naru.multiprocessing` is imported.

    >>> naru.multiprocessing.init_reductions()
    """
    for kind in (Tensor, Parameter):
        reduction.ForkingPickler.register(kind, reduce_tensor)
