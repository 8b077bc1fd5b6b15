"""`torch.autograd.profiler`: the older profiler, over `torch.profiler`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from .. import _missing
from ..profiler import profile as _profile
from ..profiler import record_function
from ..profiler._events import FunctionEvent as FunctionEvent, FunctionEventAvg as FunctionEventAvg
from ..profiler._recorder import active
from ..profiler._table import EventList as EventList

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["emit_nvtx", "profile", "record_function"]


def _profiler_enabled() -> bool:
    return active() is not None


def _disable_profiler() -> None:
    """Does nothing: a profile ends with its block."""


class profile:
    """Profiles a block, if `enabled`; `record_shapes`, `with_flops`, `profile_memory` and `with_stack` as in `torch.profiler.profile`.
    `use_cuda`, `use_device` and similar options are ignored.

    >>> with profile() as p:
    ...     _ = naru.ones(3).sum()
    >>> p.key_averages()[0].key
    'aten::ones'
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False,
        with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        self._inner = _profile(record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory, with_stack=with_stack)

    def __enter__(self) -> Any:
        if self.enabled:
            self._inner.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._inner.stop()

    @property
    def function_events(self) -> Any:
        """The recorded events."""
        return self._inner.events()

    self_cpu_time_total = property(lambda self: self.function_events.self_cpu_time_total)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any) -> Any:
        """The events, grouped by name."""
        return self._inner.key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """A table of all events."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace for chrome://tracing and Perfetto."""
        self._inner.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes call stacks and times for flame graphs; requires with_stack."""
        self._inner.export_stacks(path, metric)

    def total_average(self) -> Any:
        """The sum of all events."""
        return self.function_events.total_average()

    def __str__(self) -> str:
        return self.table()


@contextlib.contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """Does nothing; `enabled` and `record_shapes` are ignored.

    >>> with naru.autograd.profiler.emit_nvtx():
    ...     naru.ones(2).sum()
    tensor(2.)
    """
    yield


__getattr__ = _missing.module_getattr(__name__)
