"""The records of a profiler: single calls, and sums over all calls with the same name."""

from __future__ import annotations

import enum
import threading
from typing import Any, NamedTuple

DEVICE_KINDS = ("kernel", "gpu_memcpy")


class DeviceType(enum.Enum):
    """Kinds of device.

    >>> naru.profiler.DeviceType.CUDA.name
    'CUDA'
    """

    CPU = 0
    CUDA = 1


class Interval(NamedTuple):
    """A start and end time, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """The duration."""
        return self.end - self.start


def time_text(us: float) -> str:
    """A time with a suitable unit."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class _Figures:
    """Base of single calls and sums: figures under PyTorch's older names, and as text."""

    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    device_time_str = property(lambda self: time_text(self.device_time))
    device_time_total_str = property(lambda self: time_text(self.device_time_total))
    self_device_time_total_str = property(lambda self: time_text(self.self_device_time_total))
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)
    is_async = is_remote = is_legacy = False
    node_id = -1
    scope = 0


class FunctionEvent(_Figures):
    """One call: times in microseconds, memory in bytes.

    Memory is that of results: the storages of a call's results, unless they were allocated by a nested call.
    """

    fwd_thread = None
    sequence_nr = -1
    device_index = 0
    overload_name = ""

    def __init__(self, name: str, kind: str, start: float, shapes: Any, depth: int, number: int = 0, stack: list[str] | None = None) -> None:
        self.name = self.key = name
        self.kind, self.start, self.input_shapes, self.depth = kind, start, shapes, depth
        self.id, self.stack = number, stack or []
        self.end = start
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[FunctionEvent] = []
        self.count, self.flops = 1, 0
        self.thread = threading.get_native_id()
        self.device_time_total = self.self_device_time_total = 0.0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.on_device, self.stream = False, 0
        self.device, self.line, self.given = "", "", start  # for device work: the device, the source line, and the submission time

    # Device work takes no host time.
    cpu_time_total = property(lambda self: 0.0 if self.kind in DEVICE_KINDS else self.end - self.start)
    cpu_time = cpu_time_total
    self_cpu_time_total = property(lambda self: self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children))
    device_time = property(lambda self: self.device_time_total)
    cpu_memory_usage = property(lambda self: self.self_cpu_memory_usage + sum(c.cpu_memory_usage for c in self.cpu_children))
    device_memory_usage = property(lambda self: self.self_device_memory_usage + sum(c.device_memory_usage for c in self.cpu_children))
    time_range = property(lambda self: Interval(self.start, self.end))
    is_user_annotation = property(lambda self: self.kind == "user_annotation")
    use_device = property(lambda self: self.device.partition(":")[0] or None)

    @property
    def device_type(self) -> DeviceType:
        """A `DeviceType`: CUDA for work of a device other than the cpu."""
        return DeviceType.CUDA if self.on_device and self.device != "cpu" else DeviceType.CPU

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} cpu_time={self.cpu_time_str} start_us={self.start:.3f} "
            f"end_us={self.end:.3f} cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


_SUMS = (
    "count", "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
    "device_memory_usage", "self_device_memory_usage", "flops",
)  # fmt: skip


class FunctionEventAvg(_Figures):
    """All calls with one name."""

    cpu_time_total = self_cpu_time_total = device_time_total = self_device_time_total = 0.0
    count = cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = flops = 0

    def __init__(self, key: str, shapes: Any = None, on_device: bool = False, stack: list[str] | None = None) -> None:
        self.key, self.input_shapes, self.on_device, self.stack = key, shapes, on_device, stack or []
        self.is_user_annotation = False

    cpu_time = property(lambda self: self.cpu_time_total / max(self.count, 1))
    device_time = property(lambda self: self.device_time_total / max(self.count, 1))

    def add(self, event: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds a call, or the sum of other calls."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(event, name))
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"self_device_time={self.self_device_time_total_str} device_time={self.device_time_str} input_shapes={self.input_shapes or ''} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )
