"""The recorder of a profiler: records calls on a thread, and the devices' work."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _C
from ..overrides import TorchFunctionMode
from ._events import FunctionEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

Tensor = _C.Tensor


class _Local(threading.local):
    def __init__(self) -> None:
        self.recorders: list[Recorder] = []


_here = _Local()


def active() -> Recorder | None:
    """The active recorder of this thread."""
    return _here.recorders[-1] if _here.recorders else None


class _DeviceLog:
    """The process-wide log of device work, shared by all recorders: profilers may be nested, or on different threads."""

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
        """Ends the log and adds its content to all recorders."""
        for device, stream, name, line, given, begun, ended in _C._end_instruction_log() if self._recorders else ():
            kernel = FunctionEvent(name, "gpu_memcpy" if name.startswith("copy ") else "kernel", begun, None, 0)
            kernel.end, kernel.given, kernel.device, kernel.line, kernel.on_device = ended, given, device, line, True
            kernel.stream = stream
            kernel.device_time_total = kernel.self_device_time_total = ended - begun
            for recorder in self._recorders:
                recorder.kernels.append(kernel)


_log = _DeviceLog()


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in a function's arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


_OURS = str(Path(__file__).parent.parent)


def _callers() -> list[str]:
    """The source lines that led here, innermost first, without naru's own."""
    found = []
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((_OURS, "<frozen")):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return found


_ONE_EACH = {f"{name}{end}" for name in ("add", "sub", "mul", "div") for end in ("", "_")}  # one operation per element


class Recorder(TorchFunctionMode):
    """Records each call on a thread: its time, and optionally its operands' shapes, memory, callers and operations."""

    def __init__(self, shapes: bool = False, memory: bool = False, stack: bool = False, flops: bool = False) -> None:
        self.shapes, self.memory, self.stack, self.flops = shapes, memory, stack, flops
        self._counter: _C._FlopCounter | None = None
        self.events: list[FunctionEvent] = []
        self.kernels: list[FunctionEvent] = []  # the work of devices, including the cpu's queue
        self._open: list[tuple[FunctionEvent, set[int]]] = []  # with the storages allocated by nested calls
        self.paused = False

    def start(self) -> None:
        """Starts recording."""
        _log.join(self)
        if self.flops:
            self._counter = _C._FlopCounter()
        self.__enter__()
        _here.recorders.append(self)

    def stop(self) -> None:
        """Stops recording, and waits for the devices."""
        _here.recorders.remove(self)
        self.__exit__()
        if self._counter is not None:
            self._counter.stop()
        _log.leave(self)
        self._give_times()

    def _give_times(self) -> None:
        """Attributes device time to the calls that submitted the work; a fused group belongs to the call that forced its submission."""
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

    def begin(self, name: str, kind: str, shapes: Any) -> FunctionEvent:
        """Records the start of a call."""
        event = FunctionEvent(name, kind, _C._log_time(), shapes, len(self._open), len(self.events), _callers() if self.stack else None)
        if self._open:
            event.cpu_parent = self._open[-1][0]
            event.cpu_parent.cpu_children.append(event)
        self.events.append(event)
        self._open.append((event, set()))
        return event

    def end(self, result: Any = None, given: Any = ()) -> None:
        """Records the end of the innermost open call, with its result and arguments (`given`)."""
        event, made = self._open.pop()
        event.end = _C._log_time()
        if not self.memory:
            return
        old = {t._storage_id for t in _tensors(given)}
        for t in _tensors(result):
            if t._storage_id not in old and t._storage_id not in made:
                made.add(t._storage_id)
                if t.device.type == "cpu":
                    event.self_cpu_memory_usage += t.nbytes
                else:
                    event.self_device_memory_usage += t.nbytes
        if self._open:
            self._open[-1][1].update(made)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        shapes = [list(a.shape) if isinstance(a, Tensor) else [] for a in args] if self.shapes else None
        event = self.begin("aten::" + func.__name__, "cpu_op", shapes)
        result, before = None, self._counter.total if self._counter is not None else 0
        try:
            result = func(*args, **kwargs)
            if self._counter is not None:
                elements = result.numel() if func.__name__ in _ONE_EACH and isinstance(result, Tensor) else 0
                event.flops = self._counter.total - before + elements
            return result
        finally:
            self.end(result, (args, kwargs))
