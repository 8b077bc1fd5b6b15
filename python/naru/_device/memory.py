"""Memory of devices: figures, a table, limits. (history.py: who held it, when.)"""
from __future__ import annotations

from typing import Any

from .. import _C
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
