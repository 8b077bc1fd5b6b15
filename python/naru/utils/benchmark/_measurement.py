"""The measurements of a timer."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNITS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_ENOUGH_RUNS = 4
_WARNED_IQR, _DOUBTED_IQR = 0.1, 0.25


def unit_to_english(u: str) -> str:
    """The unit's full name.

    Args:
        u: "ns", "us", "ms" or "s" (KeyError for others).

    >>> naru.utils.benchmark.unit_to_english("us")
    'microsecond'
    """
    return _UNITS[u]


def select_unit(t: float) -> tuple[str, float]:
    """The most readable unit for a time in seconds, and its length in seconds.

    Args:
        t: seconds.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    place = min(max(-3, math.floor(math.log10(t)) // 3), 0) if t > 0 else -3
    return {-3: "ns", -2: "us", -1: "ms", 0: "s"}[place], 10.0 ** (3 * place)


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` significant digits.

    >>> trim_sigfig(3.14159, 3)
    3.14
    """
    if x == 0:
        return 0.0
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10.0 ** (magnitude - n)
    return float(round(x / scale) * scale) if scale >= 1 else float(round(x, n - magnitude))


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """The measured statement, and its names in a table.

    Args:
        stmt: the statement. setup, global_setup: code that runs before it.
        label, sub_label, description: title, row and column in the table.
        env: the environment of the measurement.
        num_threads: how many threads the statement may use.

    >>> naru.utils.benchmark.TaskSpec("x + y", setup="pass", label="sum", sub_label="small").title
    'sum: small'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and the sub-label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{(': ' + self.sub_label) if self.sub_label else ''}\n" + "\n".join("  " + line for line in self.stmt.splitlines())

    def setup_str(self) -> str:
        """The setup code, as printed in a report."""
        return "" if self.setup == "pass" or not self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The title, the description and the setup code."""
        return "\n".join(part for part in (self.title, self.description or "", self.setup_str()) if part)


def _quantile(values: list[float], q: float) -> float:
    at = q * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Measured times: each of `raw_times` is the time of `number_per_run` runs, in seconds.

    Args:
        number_per_run: number of runs of the statement per raw time.
        raw_times: times in seconds.
        task_spec: what was measured.
        metadata: arbitrary, stored.

    >>> from naru.utils.benchmark import Measurement, TaskSpec
    >>> found = Measurement(10, [0.5, 0.25, 0.75], TaskSpec("x + y", setup="pass"))
    >>> found.times, found.median
    ([0.05, 0.025, 0.075], 0.05)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """The time per run, in seconds, for each raw time."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def _sorted(self) -> list[float]:
        return sorted(self.times)

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return _quantile(self._sorted, 0.5)

    @property
    def mean(self) -> float:
        """The mean, in seconds."""
        return sum(self.times) / len(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range, in seconds."""
        return _quantile(self._sorted, 0.75) - _quantile(self._sorted, 0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant digits of the median, from the interquartile range under a normal distribution."""
        n_total = len(self._sorted)
        lower, upper = n_total // 4, math.ceil(3 * n_total / 4)
        points = self._sorted[lower:upper]
        std = math.sqrt(sum((x - sum(points) / len(points)) ** 2 for x in points) / (len(points) - 1)) if len(points) > 1 else 0.0
        relative = max(1.645 * std / math.sqrt(max(n_total, 1)) / self.median if self.median > 0 else 0.0, 1e-4)
        return max(1, min(5, -math.floor(math.log10(relative))))

    @property
    def has_warnings(self) -> bool:
        """Whether the spread of the times is too large."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WARNED_IQR) -> bool:
        """Whether there are enough runs, and their interquartile range is within `threshold` of the median."""
        return len(self.times) >= _ENOUGH_RUNS and self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The title of the measured statement."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment of the measurement."""
        return "Unspecified env" if self.task_spec.env is None else str(self.task_spec.env)

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        spec = self.task_spec
        lines = ["<torch.utils.benchmark.utils.common.Measurement object at 0x%x>" % id(self), spec.summarize()]
        n = len(self.times)
        per = f" per measurement, {spec.num_threads} thread{'s' if spec.num_threads > 1 else ''}"
        runs = f"{self.number_per_run} runs"
        if n == 1:
            lines += [f"  {self.median / scale:.2f} {unit}", f"  1 measurement, {runs} , {spec.num_threads} thread{'s' if spec.num_threads > 1 else ''}"]
        else:
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
            if n >= _ENOUGH_RUNS:
                lines.append(
                    f"  IQR:    {self.iqr / scale:.2f} {unit} ({_quantile(self._sorted, 0.25) / scale:.2f} to {_quantile(self._sorted, 0.75) / scale:.2f})"
                )
            lines.append(f"  {n} measurements, {runs}{per}")
            if n >= _ENOUGH_RUNS and not self.meets_confidence(_WARNED_IQR):
                percent = self.iqr / self.median * 100
                word = "could indicate system fluctuation" if self.meets_confidence(_DOUBTED_IQR) else "suggests significant environmental influence"
                lines.append(f"  WARNING: Interquartile range is {percent:.1f}% of the median measurement.\n           This {word}.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merges the measurements of each task into one.

        Args:
            measurements: any measurements.

        >>> from naru.utils.benchmark import Measurement, TaskSpec
        >>> task = TaskSpec("x + y", setup="pass")
        >>> [m.raw_times for m in Measurement.merge([Measurement(1, [0.5], task), Measurement(1, [0.25], task)])]
        [[0.5, 0.25]]
        """
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            grouped.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, [t for m in group for t in m.times], spec) for spec, group in grouped.items()]
