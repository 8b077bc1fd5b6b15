"""What `torch.cuda`, `torch.xpu` and `torch.accelerator` share beyond the basics, and why they lack PyTorch's other names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from .. import _C
from .._missing import fail

if TYPE_CHECKING:
    from collections.abc import Callable

_GRAPHS = "it looks into CUDA's own graphs; `naru.Graph` records on every device, and its `debug_dump` tells what"
_ALLOCATOR = "allocators can't be replaced; `set_per_process_memory_fraction` and `empty_cache` are there"
_SENSORS = "it is read from the vendor's management library, which naru does not open; `nvidia-smi` or the like shows it"
_RUNTIME = "it is a handle of CUDA's runtime, which naru does not use (it speaks to the driver)"

_ABSENT = {
    **dict.fromkeys(
        "export_dot export_graph_data".split(), _GRAPHS
    ),
    **dict.fromkeys(
        "CUDAPluggableAllocator XPUPluggableAllocator MemPool use_mem_pool change_current_allocator caching_allocator_alloc "
        "caching_allocator_delete caching_allocator_disabled caching_allocator_enable".split(),
        _ALLOCATOR,
    ),
    **dict.fromkeys("utilization temperature power_draw clock_rate memory_usage list_gpu_processes".split(), _SENSORS),
    **dict.fromkeys(
        "cudart cudaStatus CudaError check_error current_blas_handle current_solver_handle ExternalStream get_stream_from_external "
        "GreenContext nccl gds jiterator tunable comm".split(),
        _RUNTIME,
    ),
    "load_metallib": "binaries of Metal's are not taken; `compile_shader` takes source",
}


def absent(module: str, name: str) -> NoReturn:
    """Raises the AttributeError for a name that a namespace does not have, with the reason if PyTorch has it."""
    text = f"module {module!r} has no attribute {name!r}"
    if name in _ABSENT:
        raise AttributeError(f"{text}: {_ABSENT[name]}")
    fail(module.removeprefix("torch."), name, depth=2)
    raise AttributeError(text)


def memory_functions(need: Callable[[Any], Any]) -> tuple[Callable[..., Any], ...]:
    """The memory functions of a namespace; their `device` is passed through `need`, which may raise.

    >>> from naru._device.namespace import memory_functions
    >>> [f.__name__ for f in memory_functions(lambda device: device)][-2:]
    ['device_memory_used', 'memory_summary']
    """
    from . import memory

    def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
        """`memory_stats` of a `device` (the current one) as nested dicts, its names split at the dots."""
        nested: dict[str, Any] = {}
        for name, value in memory.stats(need(device)).items():
            *path, last = name.split(".")
            inner = nested
            for part in path:
                inner = inner.setdefault(part, {})
            inner[last] = value
        return nested

    def reset_accumulated_memory_stats(device: Any = None) -> None:
        """Resets the counters of allocations and frees of a `device` (the current one)."""
        memory.reset_accumulated(need(device))

    def get_per_process_memory_fraction(device: Any = None) -> float:
        """The fraction of the memory of a `device` (the current one) that this process may use; 1.0 by default."""
        target = need(device)
        limit = memory.stats(target)["limit_bytes"]
        return limit / _C.total_memory(target) if limit else 1.0

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        """Limits this process to `fraction` of the memory of a `device` (the current one); ValueError outside [0, 1]."""
        memory.set_fraction(fraction, need(device))

    def device_memory_used(device: Any = None) -> int:
        """Bytes of a `device` (the current one) used by this process and all others."""
        return memory.stats(need(device))["driver_used_bytes"]

    def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
        """The allocator statistics of a `device` (the current one) as a table, PyTorch's rows first; `abbreviated` leaves out the pools."""
        return memory.summary(need(device), abbreviated)

    return (
        memory_stats_as_nested_dict, reset_accumulated_memory_stats, get_per_process_memory_fraction, set_per_process_memory_fraction,
        device_memory_used, memory_summary,
    )  # fmt: skip


def get_gencode_flags() -> str:
    """Empty: kernels are compiled when needed, for the actual device.

    >>> naru.cuda.get_gencode_flags()
    ''
    """
    return ""


def get_allocator_backend() -> str:
    """"native": naru's own caching allocator.

    >>> naru.cuda.get_allocator_backend()
    'native'
    """
    return "native"
