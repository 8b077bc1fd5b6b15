"""`torch.cuda.memory`: the memory functions of `torch.cuda`, and snapshots of its history for PyTorch's viewer."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any

from .. import _C, _missing, cuda
from .._serialization.atomic_file import atomic_file as _atomic_file

if TYPE_CHECKING:
    from .._device.history import memory_history
    from . import (
        empty_cache as empty_cache, get_allocator_backend as get_allocator_backend, get_per_process_memory_fraction as get_per_process_memory_fraction,
        max_memory_allocated as max_memory_allocated, max_memory_reserved as max_memory_reserved, mem_get_info as mem_get_info,
        memory_allocated as memory_allocated, memory_reserved as memory_reserved, memory_stats as memory_stats,
        memory_stats_as_nested_dict as memory_stats_as_nested_dict, memory_summary as memory_summary,
        reset_accumulated_memory_stats as reset_accumulated_memory_stats, reset_peak_memory_stats as reset_peak_memory_stats,
        set_per_process_memory_fraction as set_per_process_memory_fraction,
    )  # fmt: skip

_NAMES = (
    "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
)  # fmt: skip
_lacking = _missing.module_getattr(__name__)
_history: memory_history | None = None


def __getattr__(name: str) -> Any:
    return getattr(cuda, name) if name in _NAMES else _lacking(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])


def _record_memory_history(enabled: str | None = "all", *args: Any, device: Any = None, **options: Any) -> None:
    """Starts a history of allocations (on all devices of the kind, or one), or ends it with enabled=None. PyTorch's other arguments are ignored:
    everything is recorded, including Python call stacks."""
    global _history
    if enabled not in (None, "state", "all"):
        raise RuntimeError(f"expected state to be 'state', 'all', or None; got {enabled!r}")
    if _history is not None:
        _history.__exit__()
        _history = None
    if enabled is not None:
        from .._device.history import memory_history

        devices = [_C.device("cuda", i) for i in range(cuda.device_count())] if device is None else [device]
        _history = memory_history(devices).__enter__()


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """The history so far, in the format of PyTorch's viewer; RuntimeError if none is being recorded."""
    if _history is None:
        raise RuntimeError("torch.cuda.memory._snapshot: nothing is recorded; call torch.cuda.memory._record_memory_history() first")
    return _history.snapshot()


def _dump_snapshot(filename: str | os.PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Writes `_snapshot()` to a file for pytorch.org/memory_viz."""
    found = _snapshot()
    with _atomic_file(filename) as file:
        pickle.dump(found, file, protocol=4)
