"""Device memory: statistics, a summary table, limits. (history.py: memory over time.)"""
from __future__ import annotations

from typing import Any

from .. import _C
from .kind import current_kind


def as_device(device: Any = None) -> Any:
    """`device` (None: the current one of the best kind) as a device."""
    if device is None:
        kind = current_kind()
        return _C.device("cpu") if kind is None else _C.device(kind, _C.current_device(kind))
    return device if isinstance(device, _C.device) else _C.device(device)


def reset_accumulated(device: Any = None) -> None:
    """Resets a device's counters of allocations, frees, retries and failures."""
    _C._reset_accumulated_memory_stats(as_device(device))


def stats(device: Any = None) -> dict[str, int]:
    """The allocator's statistics under PyTorch's names ('allocated_bytes.all.current', 'num_ooms', ...), in bytes and counts, and some of naru's own.

    'driver_used_bytes' is what the driver reports as used: allocated + cached ('cached_bytes') + 'other_bytes', which the driver itself and
    other programs hold. 'limit_bytes' is 0 if there is no limit.
    """
    return _C._memory_stats(as_device(device))


def summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as PyTorch's table, plus lines for the memory of the device's other users and for the limit. abbreviated: without the pools."""
    return _C._memory_summary(as_device(device), abbreviated)


def set_fraction(fraction: float, device: Any = None) -> None:
    """Limits this process to that fraction of a device's memory; ValueError outside [0, 1]."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    target = as_device(device)
    _C.set_memory_limit(target, max(1, int(fraction * _C.total_memory(target))))
