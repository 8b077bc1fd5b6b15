"""`torch.cuda`: NVIDIA devices, and virtual ones of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._device.kind import DeviceGuard, DeviceProperties, to_device
from .._device.namespace import absent as _absent, get_allocator_backend as get_allocator_backend, get_gencode_flags as get_gencode_flags, memory_functions as _memory_functions
from .._documentation import show as _show
from .._device.sync import get_sync_debug_mode as get_sync_debug_mode, set_sync_debug_mode as set_sync_debug_mode
from ..graphs import Graph as _Graph
from ..graphs import graph_pool_handle as graph_pool_handle, make_graphed_callables as make_graphed_callables
from ..graphs import of_kind as _graphs_of_kind
from ..streams import StreamContext as StreamContext, of_kind as _of_kind, set_stream as set_stream, stream as stream

if TYPE_CHECKING:
    from collections.abc import Iterable

_KIND = "cuda"

CUDAGraph = _Graph
if TYPE_CHECKING:
    from .._old_types import *  # FloatTensor, FloatStorage ...
    from ..streams import Event as Event, Stream as Stream

    def current_stream(device: Any = None) -> Stream: ...

    def default_stream(device: Any = None) -> Stream: ...

    default_generators: tuple[_C.Generator, ...]
else:
    Stream, Event, current_stream, default_stream = _of_kind(_KIND)
graph, is_current_stream_capturing = _graphs_of_kind(_KIND)

OutOfMemoryError: type[BaseException] = getattr(_C, "OutOfMemoryError", None) or type(
    "OutOfMemoryError", (RuntimeError,), {"__module__": "torch"}
)


def is_available() -> bool:
    """Whether a working device is available. `naru doctor` shows the reason if there is none."""
    return _C.is_available(_KIND)


def why_unavailable() -> str:
    """The reason why no device is available and how to fix it, as shown by `naru doctor`; "" if one is available."""
    return _C.why_unavailable(_KIND)


def device_count() -> int:
    """The number of devices."""
    return _C.device_count(_KIND)


def current_device() -> int:
    """The index of the current device; RuntimeError with the reason if there is none."""
    _lazy_init()
    return _C.current_device(_KIND)


def set_device(device: Any) -> None:
    """Makes a `device` (an index, a name or a torch.device) the current one; a negative index does nothing."""
    _lazy_init()
    if isinstance(device, int) and device < 0:
        return
    _C.set_device(to_device(_KIND, device))


def init() -> None:
    """Raises RuntimeError with the reason if there is no device."""
    _lazy_init()


def is_initialized() -> bool:
    """Whether there is a device."""
    return is_available()


def is_tf32_supported() -> bool:
    """Whether float32 products are rounded to TF32 (10 bits of mantissa) if `torch.backends.cuda.matmul.allow_tf32` is set: on NVIDIA devices of
    compute capability 8.0 and newer, with cuBLASLt."""
    if not is_available():
        return False
    found = _C._describe_device(_C.device(_KIND, _C.current_device(_KIND)))
    return found["backend"] == "cuda" and found["major"] >= 8 and "own kernels for products" not in found["libraries"]


def _lazy_init() -> None:
    if not _C.is_available(_KIND):
        raise RuntimeError(f"cuda is not available: {_C.why_unavailable(_KIND)}")


def synchronize(device: Any = None) -> None:
    """Waits for all work on a `device` (the current one)."""
    _lazy_init()
    _C.synchronize(to_device(_KIND, device))


def get_device_name(device: Any = None) -> str:
    """The name of a `device` (the current one)."""
    _lazy_init()
    return _C.device_name(to_device(_KIND, device))


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The name, memory and other properties of a `device` (the current one)."""
    _lazy_init()
    return DeviceProperties(to_device(_KIND, device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a `device` (the current one), (major, minor).

    >>> with naru.virtual("cuda"):
    ...     naru.cuda.get_device_capability()
    (0, 0)
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether copies from `device` to `peer_device` can bypass host memory; tested on first use."""
    return _C._can_access_peer(to_device(_KIND, device), to_device(_KIND, peer_device))


def memory_allocated(device: Any = None) -> int:
    """Bytes used by tensors on a `device` (the current one); 0 if there is none."""
    return _C.memory_allocated(to_device(_KIND, device)) if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """Peak bytes used by tensors on a `device` (the current one), since the start or `reset_peak_memory_stats`."""
    return _C.max_memory_allocated(to_device(_KIND, device)) if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes reserved from the `device` (the current one): used by tensors, or cached."""
    return _C.memory_reserved(to_device(_KIND, device)) if is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """Peak bytes reserved from the `device` (the current one)."""
    largest = getattr(_C, "max_memory_reserved", _C.memory_reserved)
    return largest(to_device(_KIND, device)) if is_available() else 0


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets the peak statistics of a `device` (the current one)."""
    if is_available():
        _C.reset_peak_memory_stats(to_device(_KIND, device))


reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = reset_peak_memory_stats


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a `device` (the current one), as reported by its driver."""
    _lazy_init()
    target = to_device(_KIND, device)
    return _C._free_memory(target), _C.total_memory(target)


def empty_cache() -> None:
    """Returns cached free memory to the devices."""
    for i in range(device_count()):
        _C.empty_cache(_C.device(_KIND, i))


def ipc_collect() -> None:
    """Does nothing: naru does not share device memory between processes.

    >>> naru.cuda.ipc_collect()
    """


def manual_seed(seed: int) -> None:
    """Sets the `seed`; one generator serves all devices."""
    from ..random import manual_seed as set_seed

    set_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Sets a random seed from the operating system."""
    from ..random import seed as draw_seed

    draw_seed()


seed_all = seed


def initial_seed() -> int:
    """The current seed."""
    return _C.default_generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> _C.Tensor:
    """The generator's state (uint8); there is one generator, whatever `device` is."""
    return _C.default_generator.get_state()


def set_rng_state(new_state: _C.Tensor, device: Any = "cuda") -> None:
    """Restores `new_state`, as returned by `get_rng_state`; there is one generator, whatever `device` is."""
    _C.default_generator.set_state(new_state)


def get_rng_state_all() -> list[_C.Tensor]:
    """The generator's state, once for each device."""
    return [get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Iterable[_C.Tensor]) -> None:
    """Restores `new_states`, as returned by `get_rng_state_all`."""
    for state in new_states:
        set_rng_state(state)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the devices support bfloat16; naru computes it on all devices, so `including_emulation` has no effect."""
    return is_available()


def get_arch_list() -> list[str]:
    """Empty: kernels are compiled when needed, for the actual device."""
    return []


class device(DeviceGuard):
    """`with torch.cuda.device(1):` makes cuda:1, the `device`, the current one; None and -1 change nothing."""


class device_of(DeviceGuard):
    """`with torch.cuda.device_of(obj):` makes the device of the tensor `obj` the current one, if it is a cuda device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == _KIND else -1)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator statistics of a `device` (the current one), under PyTorch's names."""
    from .._device.memory import stats

    return stats(to_device(_KIND, device))


(
    memory_stats_as_nested_dict, reset_accumulated_memory_stats, get_per_process_memory_fraction, set_per_process_memory_fraction,
    device_memory_used, memory_summary,
) = _memory_functions(lambda device: to_device(_KIND, device))  # fmt: skip


class AcceleratorError(RuntimeError):
    """A device driver's error, for programs that catch it by that name.

    >>> issubclass(naru.cuda.AcceleratorError, RuntimeError)
    True
    """


has_half, has_magma = True, False


_show(globals(), "devices", MODULE="cuda", KIND="cuda")


def __getattr__(name: str) -> Any:
    if name.endswith("Tensor"):
        from .._compat.tensor_types import tensor_types

        if name in (types := tensor_types(_KIND)):
            return types[name]
    if name.endswith("Storage"):
        from .._storage_methods import storage_types

        if name in (storages := storage_types(_KIND)):
            return storages[name]
    if name == "graphs":
        from .. import graphs

        return graphs
    if name in ("amp", "random", "memory", "nvtx", "streams"):
        import importlib

        try:
            return importlib.import_module("." + name, __name__)
        except ModuleNotFoundError:
            pass
    if name == "default_generators":
        return tuple(_C.default_generator for _ in range(device_count()))
    _absent("torch." + _KIND, name)
