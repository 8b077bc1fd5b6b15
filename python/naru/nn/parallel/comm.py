"""Transfers of tensors between devices. All functions are differentiable, as they consist of copies, slices and sums."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ... import _C

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def device_of(device: Any, kind: str = "cuda") -> _C.device:
    """A device from an index (of `kind`), a name or a device; -1 and "cpu" are the CPU.

    >>> from naru.nn.parallel.comm import device_of
    >>> device_of(1), device_of(-1), device_of("xpu:0")
    (device(type='cuda', index=1), device(type='cpu'), device(type='xpu', index=0))
    """
    if isinstance(device, int):
        return _C.device("cpu") if device == -1 else _C.device(kind, device)
    device = _C.device(device)
    if device.type != "cpu" and device.index is None:
        return _C.device(device.type, _C.current_device(device.type))
    return device


def broadcast(tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The tensor on each device (the tensor itself where it is already). out: the output tensors.

    Args:
        devices: devices, or indices of cuda devices (-1: the CPU). Either `devices` or `out` must be given, not both (RuntimeError).

    >>> with naru.virtual("cuda", count=2):
    ...     copies = naru.nn.parallel.comm.broadcast(naru.ones(2, device="cuda:0"), [0, 1])
    ...     [str(c.device) for c in copies]
    ['cuda:0', 'cuda:1']
    """
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}")
    if out is not None:
        for target in out:
            target.copy_(tensor)
        return tuple(out)
    return tuple(tensor.to(device_of(d), non_blocking=True) for d in devices)


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760) -> list[tuple[Tensor, ...]]:
    """Copies of all tensors, for each device.

    Args:
        tensors: of any shapes and dtypes.
        devices: devices, or indices of cuda devices.
        buffer_size: ignored.

    >>> with naru.virtual("cuda", count=2):
    ...     per_device = naru.nn.parallel.comm.broadcast_coalesced([naru.ones(2, device="cuda"), naru.zeros(1, device="cuda")], [0, 1])
    ...     [[str(t.device) for t in tensors] for tensors in per_device]
    [['cuda:0', 'cuda:0'], ['cuda:1', 'cuda:1']]
    """
    return [tuple(t.to(device_of(d), non_blocking=True) for t in tensors) for d in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of different devices, in their order, on `destination` (by default the current device).

    Args:
        inputs: tensors of one shape.
        destination: a device, or the index of one.

    >>> with naru.virtual("cuda", count=2):
    ...     naru.nn.parallel.comm.reduce_add([naru.ones(2, device="cuda:0"), naru.ones(2, device="cuda:1")], 0).tolist()
    [2.0, 2.0]
    """
    inputs = list(inputs)
    if not inputs:
        raise RuntimeError("reduce_add expects at least one tensor to add up")
    shape = inputs[0].shape
    for i, t in enumerate(inputs):
        if t.device.type == "cpu":
            raise RuntimeError(f"reduce_add expects all inputs to be on devices, but input {i} is on the CPU")
        if t.shape != shape:
            raise ValueError(f"input {i} has invalid size: got {tuple(t.shape)}, but expected {tuple(shape)}")
    kind = inputs[0].device.type
    target = _C.device(kind, _C.current_device(kind)) if destination is None else device_of(destination, kind)
    total = inputs[0].to(target)
    for t in inputs[1:]:
        total = total + t.to(target)
    return total


def scatter(tensor: Tensor, devices: Sequence[Any], chunk_sizes: Sequence[int] | None = None, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits the tensor along `dim` into one piece per device: of the given sizes, else of equal sizes except the last. If there are fewer elements
    along `dim` than devices, there are fewer pieces.

    Args:
        devices: devices, or indices of cuda devices.
        chunk_sizes: the size of each piece along `dim`.

    >>> with naru.virtual("cuda", count=2):
    ...     [(p.tolist(), str(p.device)) for p in naru.nn.parallel.comm.scatter(naru.arange(4), [0, 1])]
    [([0, 1], 'cuda:0'), ([2, 3], 'cuda:1')]
    """
    if chunk_sizes is None:
        pieces = tensor.chunk(len(devices), dim)
    else:
        if len(chunk_sizes) != len(devices) or sum(chunk_sizes) != tensor.size(dim):
            raise RuntimeError(
                f"scatter: wanted one chunk size a device, adding up to size {tensor.size(dim)} of dim {dim}; got {list(chunk_sizes)} for "
                f"{len(devices)} devices"
            )
        pieces = tensor.split(list(chunk_sizes), dim)
    return tuple(piece.to(device_of(d), non_blocking=True) for piece, d in zip(pieces, devices))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None) -> Tensor:
    """Concatenates tensors of several devices along `dim`, on `destination` (by default the current device; -1: the CPU).

    Args:
        tensors: tensors of equal sizes except along dim.

    >>> with naru.virtual("cuda", count=2):
    ...     naru.nn.parallel.comm.gather([naru.zeros(1, device="cuda:0"), naru.ones(1, device="cuda:1")], destination=-1)
    tensor([0., 1.])
    """
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("gather expects at least one tensor")
    kind = next((t.device.type for t in tensors if t.device.type != "cpu"), "cuda")
    target = _C.device(kind, _C.current_device(kind)) if destination is None else device_of(destination, kind)
    if all(t.dim() == 0 for t in tensors) and dim == 0:
        warnings.warn("Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and return a vector.", stacklevel=2)
        tensors = [t.view(1) for t in tensors]
    return _C.cat([t.to(target, non_blocking=True) for t in tensors], dim)
