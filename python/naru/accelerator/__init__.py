"""`torch.accelerator`: the devices of this machine beside the CPU, whatever their kind."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._kind import DeviceGuard, to_device

# The order in which kinds are looked for.
KINDS = ("cuda", "rocm", "xpu", "mps")


def _kind() -> str | None:
    for kind in KINDS:
        if _C.is_available(kind):
            return kind
    return None


def _need() -> str:
    kind = _kind()
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.\n" + why_unavailable())
    return kind


def is_available() -> bool:
    """Whether there is a device beside the CPU."""
    return _kind() is not None


def why_unavailable() -> str:
    """For each kind of device why there is none that works, and what to do about it, a line each; "" where there is one of any kind."""
    return "" if is_available() else "\n".join(f"{kind}: {_C.why_unavailable(kind)}" for kind in KINDS)


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """The kind of device that is there, as a device without index; None if there is none.

    >>> import naru
    >>> device = naru.accelerator.current_accelerator() if naru.accelerator.is_available() else "cpu"
    """
    kind = _kind()
    return None if kind is None else _C.device(kind)


def device_count() -> int:
    """The number of devices of the current kind; 0 if there is none."""
    kind = _kind()
    return 0 if kind is None else _C.device_count(kind)


def current_device_index() -> int:
    """The index of the current device."""
    return _C.current_device(_need())


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """Makes a device the current one."""
    kind = _need()
    if isinstance(device, int) and device < 0:
        return
    _C.set_device(to_device(kind, device))


set_device_idx = set_device_index


def synchronize(device: Any = None) -> None:
    """Waits for all work on a device (the current one)."""
    _C.synchronize(to_device(_need(), device))


def current_stream(device: Any = None) -> Any:
    """Where the thread's work for a device (the current one) goes."""
    from ..streams import current_stream

    return current_stream(None, to_device(_need(), device))


def set_stream(stream: Any) -> None:
    """Makes a stream the current one of its device, and its device the current one."""
    from ..streams import set_stream

    set_stream(stream)


def empty_cache() -> None:
    """Gives memory that is kept for new tensors back to the devices."""
    for i in range(device_count()):
        _C.empty_cache(_C.device(_need(), i))


def memory_allocated(device: Any = None) -> int:
    """Bytes in tensors on a device."""
    return _C.memory_allocated(to_device(_need(), device))


def memory_reserved(device: Any = None) -> int:
    """Bytes held from the device, in tensors or kept for new ones."""
    return _C.memory_reserved(to_device(_need(), device))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in tensors so far."""
    return _C.max_memory_allocated(to_device(_need(), device))


class device_index(DeviceGuard):
    """`with torch.accelerator.device_index(1):` makes device 1 the current one."""

    def __init__(self, device: int | None) -> None:
        self._kind = _need()
        super().__init__(device)
