"""What the namespaces of the kinds of devices (`torch.cuda`, `torch.mps`, ...) share: thin over the core."""

from __future__ import annotations

from typing import Any

from . import _C

def to_device(kind: str, device: Any = None) -> _C.device:
    """`device` (None: the current one; an index; a name; a device) as a device of that kind; ValueError for another kind."""
    if device is None:
        return _C.device(kind, _C.current_device(kind))
    if isinstance(device, int):
        return _C.device(kind, _C.current_device(kind) if device < 0 else device)
    if isinstance(device, str):
        device = _C.device(device)
    if device.type != kind:
        raise ValueError(f"Expected a {kind} device, but got: {device}")
    return device if device.index is not None else _C.device(kind, _C.current_device(kind))


class DeviceGuard:
    """A context manager that makes a device of its kind the current one; -1 and None leave it as it is."""

    _kind = "cuda"

    def __init__(self, device: Any) -> None:
        if device is None or device == -1:
            self.idx = -1
        else:
            self.idx = to_device(self._kind, device).index

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C.current_device(self._kind)
            _C.set_device(_C.device(self._kind, self.idx))

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            _C.set_device(_C.device(self._kind, self.prev_idx))


class DeviceProperties:
    """Name and memory of a device."""

    def __init__(self, device: _C.device) -> None:
        self.name: str = _C.device_name(device)
        self.total_memory: int = _C.total_memory(device)
        self.major, self.minor = 0, 0
        self.multi_processor_count = 0

    def __repr__(self) -> str:
        return f"_DeviceProperties(name='{self.name}', total_memory={self.total_memory // 2**20}MB)"
