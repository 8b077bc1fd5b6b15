"""A timer for statements that waits for devices."""

from __future__ import annotations

import enum
import time
import timeit as _timeit
from typing import TYPE_CHECKING, Any

from ... import _C
from ._measurement import Measurement, TaskSpec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Language", "Timer", "timer"]


class Language(enum.Enum):
    """The programming language of a statement.

    >>> naru.utils.benchmark.Language.PYTHON.name
    'PYTHON'
    """

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """The time in seconds, after all devices have finished their work.

    >>> from naru.utils.benchmark import timer
    >>> begin = timer()
    >>> timer() >= begin
    True
    """
    for device in _C.devices():
        if device["kind"] != "cpu":
            _C.synchronize(device["device"])
    return time.perf_counter()


class Timer:
    """Measures a statement: with a given number of threads, after a warm-up, waiting for devices.

    Args:
        stmt: the statement.
        setup: code that runs once before.
        global_setup: ignored.
        timer: the clock function.
        globals: names that the statement uses.
        label: title of the table.
        sub_label: label of its row.
        description: label of its column.
        env: the environment of the measurement.
        num_threads: how many threads the statement may use.
        language: `Language.PYTHON` (NotImplementedError for others).

    >>> t = Timer("x + 1", setup="x = 1")
    >>> t.timeit(10).number_per_run
    10
    """

    _timer_cls = _timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("torch.utils.benchmark.Timer: statements in C++ are not supported yet; nearest: ./run bench in naru's repository")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        import textwrap

        names = dict(globals or {})
        names.setdefault("torch", __import__("naru"))
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = self._timer_cls(stmt=stmt, setup=setup or "pass", timer=timer, globals=names)

    def _timeit(self, number: int) -> float:
        before = _C.get_num_threads()
        _C.set_num_threads(self._task_spec.num_threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            _C.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Runs the statement `number` times, after a warm-up.

        Args:
            number: the number of runs.

        >>> naru.utils.benchmark.Timer("x + 1", setup="x = 1").timeit(100).number_per_run
        100
        """
        self._timeit(max(int(number // 100), 2))
        return Measurement(number, [self._timeit(number)], self._task_spec)

    def _block_size(self, min_run_time: float) -> int:
        overhead = min(self._timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000 or taken > min_run_time or number * 10 > 2**31:
                return number
            number *= 10

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2) -> Measurement:
        """Measures blocks of runs, each long enough for the clock, for min_run_time seconds in total. callback(runs, seconds) is called after each block."""
        number, times, total = self._block_size(min_run_time), [], 0.0
        while total < min_run_time or not times:
            taken = self._timeit(number)
            if callback is not None:
                callback(number, taken)
            times.append(taken)
            total += taken
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None
    ) -> Measurement:
        """`blocked_autorange` that stops when the interquartile range is within `threshold` of the median, or after max_run_time seconds.

        Args:
            min_run_time: minimum duration in seconds.
            callback: called after each block, as in `blocked_autorange`.

        >>> found = naru.utils.benchmark.Timer("x + 1", setup="x = 1").adaptive_autorange(min_run_time=0.001, max_run_time=0.01)
        >>> found.median > 0
        True
        """
        number, times, total = self._block_size(0.05), [], 0.0
        while total < max_run_time:
            taken = self._timeit(number)
            if callback is not None:
                callback(number, taken)
            times.append(taken)
            total += taken
            if total >= min_run_time and len(times) % 4 == 0 and Measurement(number, times, self._task_spec).meets_confidence(threshold):
                break
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Not implemented: NotImplementedError."""
        raise NotImplementedError("Timer.collect_callgrind is in PyTorch but not in naru yet; nearest: blocked_autorange()")
