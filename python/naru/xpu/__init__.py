"""`torch.xpu`: Intel's and other OpenCL devices, and virtual ones of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._device.kind import DeviceGuard, DeviceProperties, to_device
from .._device.namespace import absent, get_gencode_flags, memory_functions
from .._documentation import show as _show
from ..cuda import initial_seed, manual_seed, manual_seed_all, seed, seed_all
from ..graphs import Graph as XPUGraph
from ..graphs import graph_pool_handle, make_graphed_callables
from ..graphs import of_kind as graphs_of_kind
from ..streams import StreamContext, of_kind, set_stream, stream

__all__ = [
    "StreamContext", "XPUGraph", "graph", "graph_pool_handle", "make_graphed_callables", "can_device_access_peer", "device_memory_used", "get_arch_list", "get_gencode_flags",
    "get_per_process_memory_fraction", "is_current_stream_capturing", "is_tf32_supported", "memory_stats_as_nested_dict", "memory_summary",
    "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
    "Event", "Stream", "current_device", "current_stream", "device", "device_count", "device_of", "empty_cache",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "init", "initial_seed",
    "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize", "why_unavailable",
]  # fmt: skip

_KIND = "xpu"

if TYPE_CHECKING:
    from ..streams import Event as Event, Stream as Stream

    def current_stream(device: Any = None) -> Stream: ...

    default_generators: tuple[_C.Generator, ...]
else:
    Stream, Event, current_stream, _ = of_kind(_KIND)
graph, is_current_stream_capturing = graphs_of_kind(_KIND)


def is_available() -> bool:
    """Whether a working device is available."""
    return _C.is_available(_KIND)


def why_unavailable() -> str:
    """The reason why no device is available and how to fix it, as shown by `naru doctor`; "" if one is available."""
    return _C.why_unavailable(_KIND)


def device_count() -> int:
    """The number of devices."""
    return _C.device_count(_KIND)


def init() -> None:
    """Raises RuntimeError with the reason if there is no device."""
    if not is_available():
        raise RuntimeError(f"xpu is not available: {why_unavailable()}")


def is_initialized() -> bool:
    """Whether there is a device."""
    return is_available()


def _need(device: Any = None) -> _C.device:
    init()
    return to_device(_KIND, device)


def current_device() -> int:
    """The index of the current device; RuntimeError with the reason if there is none."""
    init()
    return _C.current_device(_KIND)


def set_device(device: Any) -> None:
    """Makes a `device` (an index, a name or a torch.device) the current one; a negative index does nothing."""
    init()
    if not (isinstance(device, int) and device < 0):
        _C.set_device(to_device(_KIND, device))


def synchronize(device: Any = None) -> None:
    """Waits for all work on a `device` (the current one)."""
    _C.synchronize(_need(device))


def get_device_name(device: Any = None) -> str:
    """The name of a `device` (the current one)."""
    return _C.device_name(_need(device))


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The name, memory and other properties of a `device` (the current one)."""
    return DeviceProperties(_need(device))


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """The capabilities of a `device` (the current one): a dict, as in PyTorch for this kind.

    >>> with naru.virtual("xpu"):
    ...     naru.xpu.get_device_capability()["has_fp64"]
    True
    """
    return {name: value for name, value in vars(get_device_properties(device)).items() if not name.startswith("_")}


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the devices support bfloat16; naru computes it on all devices, so `including_emulation` has no effect."""
    return is_available()


def is_tf32_supported() -> bool:
    """Returns False: naru's own products compute float32 as float32."""
    return False


def memory_allocated(device: Any = None) -> int:
    """Bytes used by tensors on a `device` (the current one)."""
    return _C.memory_allocated(_need(device))


def max_memory_allocated(device: Any = None) -> int:
    """Peak bytes used by tensors on a `device` (the current one), since the start or `reset_peak_memory_stats`."""
    return _C.max_memory_allocated(_need(device))


def memory_reserved(device: Any = None) -> int:
    """Bytes reserved from the `device` (the current one): used by tensors, or cached."""
    return _C.memory_reserved(_need(device))


def max_memory_reserved(device: Any = None) -> int:
    """Peak bytes reserved from the `device` (the current one)."""
    return _C.max_memory_reserved(_need(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets the peak statistics of a `device` (the current one)."""
    _C.reset_peak_memory_stats(_need(device))


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator statistics of a `device` (the current one), under PyTorch's names."""
    from .._device.memory import stats

    return stats(_need(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a `device` (the current one), as reported by its driver."""
    target = _need(device)
    return _C._free_memory(target), _C.total_memory(target)


def empty_cache() -> None:
    """Returns cached free memory to the devices."""
    for i in range(device_count()):
        _C.empty_cache(_C.device(_KIND, i))


def get_rng_state(device: Any = "xpu") -> _C.Tensor:
    """The generator's state (uint8); there is one generator, whatever `device` is."""
    return _C.default_generator.get_state()


def set_rng_state(new_state: _C.Tensor, device: Any = "xpu") -> None:
    """Restores `new_state`, as returned by `get_rng_state`; there is one generator, whatever `device` is."""
    _C.default_generator.set_state(new_state)


def get_rng_state_all() -> list[_C.Tensor]:
    """The generator's state, once for each device."""
    return [get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: list[_C.Tensor]) -> None:
    """Restores `new_states`, as returned by `get_rng_state_all`."""
    for state in new_states:
        set_rng_state(state)


class device(DeviceGuard):
    """`with torch.xpu.device(1):` makes xpu:1, the `device`, the current one; None and -1 change nothing."""

    _kind = _KIND


class device_of(DeviceGuard):
    """`with torch.xpu.device_of(obj):` makes the device of the tensor `obj` the current one, if it is an xpu device."""

    _kind = _KIND

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == _KIND else -1)


(
    memory_stats_as_nested_dict, reset_accumulated_memory_stats, get_per_process_memory_fraction, set_per_process_memory_fraction,
    device_memory_used, memory_summary,
) = memory_functions(_need)  # fmt: skip


def can_device_access_peer(device: Any, peer: Any) -> bool:
    """Whether copies from `device` to `peer` can bypass host memory; tested on first use."""
    return _C._can_access_peer(_need(device), _need(peer))


def get_arch_list() -> list[str]:
    """Empty: kernels are compiled when needed, for the actual device."""
    return []


_show(globals(), "devices", MODULE="xpu", KIND="xpu")


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(_C.default_generator for _ in range(device_count()))
    absent("torch." + _KIND, name)
