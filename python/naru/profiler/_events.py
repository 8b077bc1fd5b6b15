"""What a profiler records, and tables and traces of it."""

from __future__ import annotations

import threading
from typing import Any

from .. import _C
from ..overrides import TorchFunctionMode

Tensor = _C.Tensor


class _Local(threading.local):
    def __init__(self) -> None:
        self.recorders: list[Recorder] = []


_here = _Local()


def active() -> Recorder | None:
    """What records on this thread."""
    return _here.recorders[-1] if _here.recorders else None


DEVICE_KINDS = ("kernel", "gpu_memcpy")


class FunctionEvent:
    """One call: times in microseconds."""

    def __init__(self, name: str, kind: str, start: float, shapes: Any, depth: int) -> None:
        self.name = self.key = name
        self.kind, self.start, self.input_shapes, self.depth = kind, start, shapes, depth
        self.end = start
        self.children_time = 0.0
        self.count = 1
        self.thread = threading.get_native_id()
        self.device_time_total = self.self_device_time_total = 0.0
        self.on_device, self.stream = False, 0
        self.device, self.line, self.given = "", "", start  # of what a device did: where, for which line, and when it was handed over

    # A device's work takes no time of the host.
    cpu_time_total = property(lambda self: 0.0 if self.kind in DEVICE_KINDS else self.end - self.start)
    cpu_time = cpu_time_total
    self_cpu_time_total = property(lambda self: self.cpu_time_total - self.children_time)
    device_time = cuda_time = cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)

    def __repr__(self) -> str:
        return f"<FunctionEvent name={self.name} cpu_time={self.cpu_time_total:.3f}us>"


class FunctionEventAvg:
    """All calls of one name."""

    def __init__(self, key: str, shapes: Any, on_device: bool = False) -> None:
        self.key, self.input_shapes, self.on_device = key, shapes, on_device
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = self.device_time_total = self.self_device_time_total = 0.0

    cpu_time = property(lambda self: self.cpu_time_total / max(self.count, 1))
    device_time = cuda_time = property(lambda self: self.device_time_total / max(self.count, 1))
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cpu_memory_usage = self_cpu_memory_usage = cuda_memory_usage = self_cuda_memory_usage = device_memory_usage = self_device_memory_usage = 0
    flops = 0

    def add(self, event: FunctionEvent) -> None:
        """Counts a call."""
        self.count += 1
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.device_time_total += event.device_time_total
        self.self_device_time_total += event.self_device_time_total

    def __repr__(self) -> str:
        return f"<FunctionEventAvg key={self.key} self_cpu_time={_time(self.self_cpu_time_total)} cpu_time={_time(self.cpu_time)}>"


def _device_cells(event: Any, total: float) -> tuple[str, ...]:
    return _time(event.self_device_time_total), f"{event.self_device_time_total / total * 100:.2f}%", _time(event.device_time_total)


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class _DeviceLog:
    """The process's log of what devices do, for all who record: a profiler may begin and end within another, or on another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recorders: list[Recorder] = []

    def join(self, recorder: Recorder) -> None:
        with self._lock:
            self._take()
            self._recorders.append(recorder)
            _C._begin_instruction_log()

    def leave(self, recorder: Recorder) -> None:
        with self._lock:
            self._take()
            self._recorders.remove(recorder)
            if self._recorders:
                _C._begin_instruction_log()

    def _take(self) -> None:
        """Ends the log and gives what is in it to all."""
        for device, stream, name, line, given, begun, ended in _C._end_instruction_log() if self._recorders else ():
            kernel = FunctionEvent(name, "gpu_memcpy" if name.startswith("copy ") else "kernel", begun, None, 0)
            kernel.end, kernel.given, kernel.device, kernel.line, kernel.on_device = ended, given, device, line, True
            kernel.stream = stream
            kernel.device_time_total = kernel.self_device_time_total = ended - begun
            for recorder in self._recorders:
                recorder.kernels.append(kernel)


_log = _DeviceLog()


class Recorder(TorchFunctionMode):
    """Records each call on a thread."""

    def __init__(self, shapes: bool) -> None:
        self.shapes = shapes
        self.events: list[FunctionEvent] = []
        self.kernels: list[FunctionEvent] = []  # what devices did, the cpu's queue among them
        self._open: list[FunctionEvent] = []

    def start(self) -> None:
        """Begins."""
        _log.join(self)
        self.__enter__()
        _here.recorders.append(self)

    def stop(self) -> None:
        """Ends, and waits for the devices."""
        _here.recorders.remove(self)
        self.__exit__()
        _log.leave(self)
        self._give_times()

    def _give_times(self) -> None:
        """Calls have the time of what they handed to devices: of a fused group, the call that could not wait for it."""
        waiting = sorted((k for k in self.kernels if k.device != "cpu"), key=lambda k: k.given, reverse=True)
        stack: list[FunctionEvent] = []
        for event in [*self.events, None]:
            until = event.start if event is not None else float("inf")
            while waiting and waiting[-1].given < until:
                kernel = waiting.pop()
                while stack and stack[-1].end < kernel.given:
                    stack.pop()
                if stack:
                    stack[-1].self_device_time_total += kernel.device_time_total
                for outer in stack:
                    outer.device_time_total += kernel.device_time_total
            if event is not None:
                while stack and stack[-1].end <= event.start:
                    stack.pop()
                stack.append(event)

    def begin(self, name: str, kind: str, shapes: Any) -> None:
        """A call begins."""
        event = FunctionEvent(name, kind, _C._log_time(), shapes, len(self._open))
        self.events.append(event)
        self._open.append(event)

    def end(self) -> None:
        """The call that began last is over."""
        event = self._open.pop()
        event.end = _C._log_time()
        if self._open:
            self._open[-1].children_time += event.end - event.start

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        shapes = [list(a.shape) if isinstance(a, Tensor) else [] for a in args] if self.shapes else None
        self.begin("aten::" + func.__name__, "cpu_op", shapes)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.end()


class EventList(list):
    """Events, or sums of them."""

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any) -> EventList:
        """By name, and sizes if asked for, in the order of the first of each."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = event.key, event.on_device, str(event.input_shapes) if group_by_input_shape else ""
            found.setdefault(key, FunctionEventAvg(event.key, event.input_shapes if group_by_input_shape else None, event.on_device)).add(event)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """All together."""
        whole = FunctionEventAvg("Total", None)
        for event in self:
            whole.count += event.count
            whole.cpu_time_total += event.cpu_time_total
            whole.self_cpu_time_total += event.self_cpu_time_total
            whole.self_device_time_total += event.self_device_time_total
        return whole

    self_cpu_time_total = property(lambda self: sum(e.self_cpu_time_total for e in self))
    # Of what devices did, not of the calls that asked for it: each once.
    self_device_time_total = property(lambda self: sum(e.self_device_time_total for e in self if e.on_device))

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, **options: Any,
    ) -> str:  # fmt: skip
        """The events as a table. sort_by: "cpu_time", "cpu_time_total", "self_cpu_time_total", "count" and kin."""
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        rows = rows[: row_limit if row_limit >= 0 else None]
        total = self.self_cpu_time_total or 1.0
        shapes = any(e.input_shapes for e in rows)
        device_total = self.self_device_time_total
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        columns += (["Self device", "Self device %", "device total"] if device_total else []) + ["# of Calls"] + (["Input Shapes"] if shapes else [])
        cells = [
            [
                e.key if len(e.key) <= max_name_column_width else e.key[: max_name_column_width - 3] + "...",
                f"{e.self_cpu_time_total / total * 100:.2f}%", _time(e.self_cpu_time_total), f"{e.cpu_time_total / total * 100:.2f}%",
                _time(e.cpu_time_total), _time(e.cpu_time), *(_device_cells(e, device_total) if device_total else ()), str(e.count),
                *([str(e.input_shapes)[:max_shapes_column_width]] if shapes else []),
            ]
            for e in rows
        ]  # fmt: skip
        widths = [max(12, len(c), *(len(row[i]) for row in cells)) if cells else max(12, len(c)) for i, c in enumerate(columns)]
        rule = "  ".join("-" * w for w in widths)
        lines = [*([header] if header else []), rule, "  ".join(c.rjust(w) for c, w in zip(columns, widths)), rule]
        lines += ["  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in cells]
        totals = [f"Self CPU time total: {_time(self.self_cpu_time_total)}"]
        if device_total:
            totals.append(f"Self device time total: {_time(device_total)}")
        return "\n".join([*lines, rule, *totals, ""])

    def __str__(self) -> str:
        return self.table()
