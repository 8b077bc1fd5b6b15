"""Memory of devices: figures, a table, limits, and a history that becomes a page."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import _C
from .._serialization.atomic_file import atomic_file
from .kind import current_kind


def as_device(device: Any = None) -> Any:
    """`device` (None: the best kind's current one) as a device."""
    if device is None:
        kind = current_kind()
        return _C.device("cpu") if kind is None else _C.device(kind, _C.current_device(kind))
    return device if isinstance(device, _C.device) else _C.device(device)


def reset_accumulated(device: Any = None) -> None:
    """Counts what is allocated and freed on a device, its retries and failures anew from here."""
    _C._reset_accumulated_memory_stats(as_device(device))


def stats(device: Any = None) -> dict[str, int]:
    """The allocator's figures under PyTorch's names ('allocated_bytes.all.current', 'num_ooms', ...), in bytes and counts, and some beside them.

    'driver_used_bytes' is what the driver says is in use; it is allocated + cached ('cached_bytes') + 'other_bytes', which are held by
    the driver itself and by other programs. 'limit_bytes' is 0 where there is no limit.
    """
    return _C._memory_stats(as_device(device))


def summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as PyTorch's table, with lines for what the device's other users hold and for the limit. abbreviated: without the pools."""
    return _C._memory_summary(as_device(device), abbreviated)


def set_fraction(fraction: float, device: Any = None) -> None:
    """Lets this process take no more than that part of a device's memory; ValueError outside [0, 1]."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    target = as_device(device)
    _C.set_memory_limit(target, max(1, int(fraction * _C.total_memory(target))))


class memory_history:
    """Records a device's allocations for a block; `page(path)` writes them as one self-contained HTML page.

    >>> import naru
    >>> with naru.memory_history("cpu") as h:
    ...     x = naru.ones(1 << 20); x = x + 1; _ = x.sum().item()
    >>> max(e["bytes"] for e in h.events) >= 4 << 20
    True
    """

    def __init__(self, device: Any = None) -> None:
        self.device = as_device(device)
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> memory_history:
        _C.synchronize(self.device)
        _C._record_memory_history(self.device, True)
        return self

    def __exit__(self, *exception: object) -> None:
        _C.synchronize(self.device)
        names = ("seconds", "bytes", "number", "allocated", "reserved", "operator", "line")
        self.events = [dict(zip(names, event)) for event in _C._memory_history(self.device)]
        _C._record_memory_history(self.device, False)

    def holders(self) -> list[tuple[str, int, int]]:
        """(line and operator, most bytes held at one time, allocations), the greatest first."""
        return _C._memory_holders([tuple(event.values()) for event in self.events])

    def page(self, path: str | Path) -> Path:
        """Writes the page: a timeline of bytes in tensors and bytes taken, and the largest holders by the line that made them."""
        path = Path(path)
        with atomic_file(path, "w", encoding="utf-8") as file:
            file.write(_C._memory_page(self.device, [tuple(event.values()) for event in self.events]))
        return path
