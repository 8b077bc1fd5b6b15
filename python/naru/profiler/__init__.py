"""`torch.profiler`: how long function calls take, and where.

It measures each call of a naru function on the profiled thread, on the host, and the work that queues submit to devices, with the
devices' clocks: fused groups with their operators, products, copies. Small work on the cpu runs within the call. A call's device time is that of
the work it submitted; a fused group is submitted by the call that needs its result.
"""

from __future__ import annotations

import enum
import functools
import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from ._events import DeviceType, FunctionEvent
from ._recorder import Recorder, active
from ._table import EventList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._device.history import memory_history

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """The activities to profile.

    >>> naru.profiler.ProfilerActivity.CPU in naru.profiler.supported_activities()
    True
    """

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What the profiler does in a step.

    >>> naru.profiler.schedule(wait=1, warmup=1, active=1)(1)
    <ProfilerAction.WARMUP: 1>
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The supported activities.

    >>> with naru.virtual("cuda", count=1):
    ...     naru.profiler.ProfilerActivity.CUDA in naru.profiler.supported_activities()
    True
    """
    kinds = {ProfilerActivity.CUDA: "cuda", ProfilerActivity.XPU: "xpu"}
    return {ProfilerActivity.CPU, *(activity for activity, kind in kinds.items() if _C.is_available(kind))}


def kineto_available() -> bool:
    """Whether traces can be recorded: True.

    >>> kineto_available()
    True
    """
    return True


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """The action for each step: `skip_first` steps are skipped; then, `repeat` times (0: forever), `wait` steps do nothing, `warmup` steps run without
    recording, and `active` steps are recorded.

    Args:
        skip_first_wait: nonzero skips the first `wait` steps.

    >>> actions = schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [actions(i).name for i in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    assert wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0, "Invalid profiler schedule arguments"

    def action(step: int) -> ProfilerAction:
        assert step >= 0
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        size = wait + warmup + active
        if repeat and step // size >= repeat:
            return ProfilerAction.NONE
        at = step % size
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < size - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[Any], None]:
    """For on_trace_ready: writes a trace to a folder, in the layout of TensorBoard's plugin.

    Args:
        dir_name: the folder, created if missing.
        worker_name: prefix of the file name; the host name and process id if None.
        use_gzip: whether to compress the file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with naru.profiler.profile(on_trace_ready=naru.profiler.tensorboard_trace_handler(folder, "me")):
    ...         _ = naru.ones(2) + 1
    ...     [name.startswith("me.") and name.endswith(".pt.trace.json") for name in os.listdir(folder)]
    [True]
    """

    def handler(profiler: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        profiler.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")))

    return handler


class record_function:
    """A labeled range in the profile, for a block or function; does nothing unless profiling.

    Args:
        name: its name.
        args: ignored.

    >>> with naru.profiler.profile() as profiled:
    ...     with naru.profiler.record_function("a part"):
    ...         _ = naru.ones(2)
    >>> "a part" in [event.name for event in profiled.events()]
    True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        self._recorder = active()
        if self._recorder is not None:
            self._recorder.begin(self.name, "user_annotation", None)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recorder is not None:
            self._recorder.end()

    def __call__(self, func: Any) -> Any:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return func(*args, **kwargs)

        return wrapped


class profile:
    """Profiles the calls within it.

    Args:
        schedule: a function from step number to action (see `schedule`); by default everything is recorded. `step()` ends a step.
        on_trace_ready: called with the profiler when the recorded steps are complete.
        record_shapes: record the sizes of tensor arguments.
        profile_memory: record the memory of all devices over time (see `naru.memory_history`), for traces and pages; and for tables
            the bytes of each call's results, excluding temporaries and backward.
        with_stack: record the source lines that led to each call.
        with_flops: count the operations of products, convolutions, attention (including backward), elementwise sums and products.
        activities, with_modules: accepted.
        use_cuda: ignored.

    >>> import naru
    >>> with profile() as p, record_function("sums"):
    ...     _ = naru.ones(3).sum()
    >>> [e.key for e in p.key_averages()]
    ['sums', 'aten::ones', 'aten::sum']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        use_cuda: bool | None = None,
        **options: Any,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _default_schedule_fn
        self._scheduled = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack, self.with_flops = record_shapes, profile_memory, with_stack, with_flops
        self._memory: memory_history | None = None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._recorder: Recorder | None = None
        self._events: list[FunctionEvent] = []
        self._kernels: list[FunctionEvent] = []
        self._metadata: dict[str, str] = {}
        self._step_record: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts profiling."""
        self._apply(self.current_action)

    def stop(self) -> None:
        """Stops profiling; the results are then available."""
        recorded = self._recorder is not None
        self._finish()
        if recorded and self.on_trace_ready:
            self.on_trace_ready(self)

    def _apply(self, action: ProfilerAction) -> None:
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and self._recorder is None:
            if self.profile_memory:
                from .._device.history import memory_history

                self._memory = memory_history([d["device"] for d in _C.devices()]).__enter__()
            self._recorder = Recorder(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
            self._recorder.start()
        if self._recorder is not None and self._scheduled:
            self._step_record = record_function(f"ProfilerStep#{self.step_num}")
            self._step_record.__enter__()

    def _finish(self) -> None:
        if self._step_record is not None:
            self._step_record.__exit__()
            self._step_record = None
        if self._recorder is not None:
            self._recorder.stop()
            self._events, self._kernels = self._recorder.events, self._recorder.kernels
            self._recorder = None
            if self._memory is not None:
                self._memory.__exit__()

    def step(self) -> None:
        """Begins the next step."""
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if self._step_record is not None:
            self._step_record.__exit__()
            self._step_record = None
        if before == ProfilerAction.RECORD_AND_SAVE:
            self._finish()
            if self.on_trace_ready:
                self.on_trace_ready(self)
        self._apply(self.current_action)

    def events(self) -> EventList:
        """The recorded calls, in order, followed by the work of devices other than the cpu.

        >>> with naru.profiler.profile() as profiled:
        ...     _ = naru.ones(2)
        >>> "aten::ones" in [event.name for event in profiled.events()]
        True
        """
        found = self._recorder.events if self._recorder is not None else [*self._events, *(k for k in self._kernels if k.device != "cpu")]
        return EventList(found, self.profile_memory, self.with_flops)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """The recorded calls, summed by name (and sizes).

        Args:
            group_by_input_shape: whether calls with different sizes are separate.
            group_by_stack_n: number of innermost callers that distinguish calls, if recorded with with_stack.
            group_by_overload_name: ignored.

        >>> with naru.profiler.profile() as profiled:
        ...     _ = naru.ones(2) + naru.ones(2)
        >>> [(row.key, row.count) for row in profiled.key_averages() if "ones" in row.key]
        [('aten::ones', 2)]
        """
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a metadata entry to traces.

        Args:
            key: its name. value: its text.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "trace.json")
        ...     with naru.profiler.profile() as profiled:
        ...         profiled.add_metadata("run", "seven")
        ...     profiled.export_chrome_trace(str(path))
        ...     "seven" in path.read_text()
        True
        """
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a metadata entry to traces, with a JSON value."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Same as add_metadata_json, before profiling starts."""
        self.add_metadata_json(key, value)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace for chrome://tracing and Perfetto: calls, the work on each stream of each device, and, with profile_memory, memory by
        device; gzipped if the name ends with .gz."""
        from ._export import chrome_trace

        chrome_trace(path, self._events, self._kernels, self._memory, self._metadata)

    def export_page(self, path: str | os.PathLike[str]) -> None:
        """Writes one self-contained HTML page that shows the same over time."""
        from ._export import page

        page(os.fspath(path), self._events, self._kernels, self._memory)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the call stack and time of each call, one per line, in the input format of flame graph tools.

        Args:
            path: a file, which is overwritten.
            metric: "self_cpu_time_total" or "self_device_time_total" ("self_cuda_time_total").

        AssertionError without with_stack=True; ValueError for another metric.
        """
        assert self.with_stack, "export_stacks() requires with_stack=True"
        self.events().export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pauses or resumes recording.

        Args:
            enable: whether calls are recorded from here on.
            activities: ignored: recording of calls is what pauses.

        RuntimeError if the profiler is not recording.
        """
        if self._recorder is None:
            raise RuntimeError("toggle_collection_dynamic() of a profiler that records nothing: call it between start() and stop()")
        self._recorder.paused = not enable


__getattr__ = _missing.module_getattr(__name__)
