"""`torch.accelerator`: the machine's devices other than the CPU, whatever their kind.

Functions with a device argument accept any kind; without one, or with only an index, they use the current kind (`current_accelerator`).
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._device.kind import KINDS, DeviceGuard, DeviceProperties, current_kind, to_device
from .._device.namespace import absent as _absent, memory_functions as _memory_functions
from .._documentation import show as _show
from ..graphs import Graph as Graph


def _need() -> str:
    kind = current_kind()
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.\n" + why_unavailable())
    return kind


def _target(device: Any = None) -> _C.device:
    """Resolves a device argument of this module: a device of any kind except cpu."""
    if isinstance(device, str) and not device.isdigit():
        device = _C.device(device)
    if isinstance(device, _C.device) and device.type in KINDS:
        if not _C.is_available(device.type):
            raise RuntimeError(f"{device.type} is not available: {_C.why_unavailable(device.type)}")
        return to_device(device.type, device)
    return to_device(_need(), device)


def kinds() -> list[str]:
    """The available kinds of device, the current one first.

    >>> import naru
    >>> with naru.virtual("cuda", count=2), naru.virtual("mps"):
    ...     naru.accelerator.kinds(), naru.accelerator.devices("mps")
    (['cuda', 'mps'], [device(type='mps', index=0)])
    """
    return [kind for kind in KINDS if _C.is_available(kind)]


def devices(kind: str | None = None) -> list[_C.device]:
    """All devices of a `kind`, or of every kind.

    >>> with naru.virtual("cuda", count=2):
    ...     naru.accelerator.devices("cuda")
    [device(type='cuda', index=0), device(type='cuda', index=1)]
    """
    return [_C.device(k, i) for k in (kinds() if kind is None else [kind]) for i in range(_C.device_count(k))]


def is_available() -> bool:
    """Whether there is a device other than the CPU."""
    return current_kind() is not None


def why_unavailable() -> str:
    """For each kind of device, the reason why none is available and how to fix it, one line each; "" if a device of any kind is available."""
    return "" if is_available() else "\n".join(f"{kind}: {_C.why_unavailable(kind)}" for kind in KINDS)


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """The available kind of device, as a device without index; None if there is none. `check_available` is ignored: a kind counts only if
    one of its devices works.

    >>> with naru.virtual("cuda"):
    ...     naru.accelerator.current_accelerator()
    device(type='cuda')
    """
    kind = current_kind()
    return None if kind is None else _C.device(kind)


def device_count() -> int:
    """The number of devices of the current kind; 0 if there is none."""
    kind = current_kind()
    return 0 if kind is None else _C.device_count(kind)


def current_device_index() -> int:
    """The index of the current device; RuntimeError if there is none.

    >>> with naru.virtual("cuda", count=2), naru.cuda.device(1):
    ...     naru.accelerator.current_device_index()
    1
    """
    return _C.current_device(_need())


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """Makes a `device` (an index, a name or a torch.device) the current one of its kind; a negative index does nothing.

    >>> with naru.virtual("cuda", count=2), naru.cuda.device(0):
    ...     naru.accelerator.set_device_index(1)
    ...     naru.ones(1, device="cuda").device
    device(type='cuda', index=1)
    """
    if not (isinstance(device, int) and device < 0):
        _C.set_device(_target(device))


set_device_idx = set_device_index


def synchronize(device: Any = None) -> None:
    """Waits for all work on a `device` (the current one)."""
    _C.synchronize(_target(device))


def current_stream(device: Any = None) -> Any:
    """The stream that receives the thread's work for a `device` (the current one)."""
    from ..streams import current_stream

    return current_stream(None, _target(device))


def set_stream(stream: Any) -> None:
    """Makes a `stream` the current one of its device, and its device the current one.

    >>> with naru.virtual("cuda"):
    ...     before, s = naru.accelerator.current_stream(), naru.Stream("cuda")
    ...     naru.accelerator.set_stream(s)
    ...     naru.accelerator.current_stream() == s
    ...     naru.accelerator.set_stream(before)
    True
    """
    from ..streams import set_stream

    set_stream(stream)


def empty_cache() -> None:
    """Returns cached free memory to the devices."""
    for device in devices():
        _C.empty_cache(device)


def memory_allocated(device: Any = None) -> int:
    """Bytes used by tensors on a `device` (the current one)."""
    return _C.memory_allocated(_target(device))


def memory_reserved(device: Any = None) -> int:
    """Bytes reserved from the `device` (the current one): used by tensors, or cached."""
    return _C.memory_reserved(_target(device))


def max_memory_allocated(device: Any = None) -> int:
    """Peak bytes used by tensors on a `device` (the current one), since the start or `reset_peak_memory_stats`."""
    return _C.max_memory_allocated(_target(device))


def max_memory_reserved(device: Any = None) -> int:
    """Peak bytes reserved from the `device` (the current one)."""
    return _C.max_memory_reserved(_target(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets the peak statistics of a `device` (the current one)."""
    _C.reset_peak_memory_stats(_target(device))


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator statistics of a `device` (the current one), under PyTorch's names."""
    from .._device.memory import stats

    return stats(_target(device))


def get_memory_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a `device` (the current one).

    >>> with naru.virtual("cuda", memory="64MiB"):
    ...     naru.accelerator.get_memory_info()
    (67108864, 67108864)
    """
    target = _target(device)
    return _C._free_memory(target), _C.total_memory(target)


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """{"supported_dtypes": the dtypes that the `device` (the current one) computes in}.

    >>> with naru.virtual("cuda"):
    ...     naru.float16 in naru.accelerator.get_device_capability()["supported_dtypes"]
    True
    """
    d = DeviceProperties(_target(device))
    types = [_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32, _C.int64, _C.bfloat16, _C.float32]
    return {"supported_dtypes": {*types, *([_C.float16] if d.has_fp16 else []), *([_C.float64] if d.has_fp64 else [])}}


def empty_host_cache() -> None:
    """Returns cached pinned host memory to the system.

    >>> naru.accelerator.empty_host_cache()
    """
    _C.empty_cache(_C.device("cpu"))


_, reset_accumulated_memory_stats, _, set_per_process_memory_fraction, _, memory_summary = _memory_functions(_target)


class device_index(DeviceGuard):
    """`with torch.accelerator.device_index(1):` makes `device` 1 the current one.

    >>> with naru.virtual("cuda", count=2), naru.accelerator.device_index(1):
    ...     naru.ones(1, device="cuda").device
    device(type='cuda', index=1)
    """

    def __init__(self, device: Any) -> None:
        target = None if device is None or device == -1 else _target(device)
        self._kind = target.type if target is not None else ""
        super().__init__(target)


_show(globals(), "devices", MODULE="accelerator", KIND="cuda")


def __getattr__(name: str) -> Any:
    _absent("torch.accelerator", name)
