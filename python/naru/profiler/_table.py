"""Lists of profiler events or sums of them, with tables and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._serialization.atomic_file import atomic_file
from ._events import FunctionEventAvg, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_device_time_total")


def _memory_text(size: int) -> str:
    """A number of bytes with a suitable unit."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(size) >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"


def _flops_unit(counts: list[int]) -> tuple[float, str]:
    """The unit in which the largest number is between 1 and 1,000."""
    most, unit, names = max(counts, default=0), 1.0, ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"]
    while most / unit >= 1000 and len(names) > 1:
        unit *= 1000.0
        names.pop(0)
    return unit, "Total " + names[0]


def _shortened(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


class EventList(list):
    """A list of events, or sums of them."""

    def __init__(self, events: Iterable[Any] = (), profile_memory: bool = False, with_flops: bool = False) -> None:
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    def _like(self, events: Iterable[Any]) -> EventList:
        return EventList(events, self._profile_memory, self._with_flops)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False, include_python_functions: bool = False
    ) -> EventList:  # fmt: skip
        """Sums by name, and optionally sizes and callers, in order of first occurrence."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes, stack = event.input_shapes if group_by_input_shapes else None, event.stack[:group_by_stack_n]
            key = event.key, event.on_device, str(shapes), tuple(stack)
            found.setdefault(key, FunctionEventAvg(event.key, shapes, event.on_device, stack)).add(event)
        return self._like(found.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        whole = FunctionEventAvg("Total")
        for event in self:
            whole.add(event)
        return whole

    self_cpu_time_total = property(lambda self: sum(e.self_cpu_time_total for e in self))
    # From the devices' events, not the calls that submitted the work, so that each is counted once.
    self_device_time_total = property(lambda self: sum(e.self_device_time_total for e in self if e.on_device))

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75, max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as a table with columns as wide as necessary.

        Args:
            sort_by: a column: "cpu_time", "cpu_time_total", "self_cpu_time_total", "self_cpu_memory_usage", "count" etc.
            row_limit: maximum number of rows; all if negative.
            max_name_column_width, max_src_column_width, max_shapes_column_width: longer text is truncated; None: never.
            header: a line above the table.
            top_level_events_only: exclude nested calls.
            time_unit: ignored: each time is shown in a suitable unit.
        """
        rows = [e for e in self if not top_level_events_only or getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        rows = rows[: row_limit if row_limit >= 0 else None]
        columns = self._columns(rows, max_name_column_width, max_src_column_width, max_shapes_column_width)
        widths = [max(12, len(name), *map(len, cells)) if cells else max(12, len(name)) for name, cells in columns]
        rule = "  ".join("-" * w for w in widths)
        lines = [*([header] if header else []), rule, "  ".join(name.rjust(w) for (name, _), w in zip(columns, widths)), rule]
        lines += ["  ".join(cells[i].rjust(w) for (_, cells), w in zip(columns, widths)) for i in range(len(rows))]
        totals = [f"Self CPU time total: {time_text(self.self_cpu_time_total)}"]
        if self.self_device_time_total:
            totals.append(f"Self device time total: {time_text(self.self_device_time_total)}")
        return "\n".join([*lines, rule, *totals, ""])

    def _columns(self, rows: list[Any], name_width: int | None, src_width: int | None, shapes_width: int | None) -> list[tuple[str, list[str]]]:
        """Column titles, each with the cells of its rows."""
        cpu, device = self.self_cpu_time_total or 1.0, self.self_device_time_total

        def times(what: str) -> list[str]:
            return [time_text(getattr(e, what)) for e in rows]

        def share(what: str, whole: float) -> list[str]:
            return [f"{getattr(e, what) / whole * 100:.2f}%" for e in rows]

        def bytes_of(what: str) -> list[str]:
            return [_memory_text(getattr(e, what)) for e in rows]

        columns = [
            ("Name", [_shortened(e.key, name_width) for e in rows]),
            ("Self CPU %", share("self_cpu_time_total", cpu)), ("Self CPU", times("self_cpu_time_total")),
            ("CPU total %", share("cpu_time_total", cpu)), ("CPU total", times("cpu_time_total")), ("CPU time avg", times("cpu_time")),
        ]  # fmt: skip
        if device:
            columns += [("Self device", times("self_device_time_total")), ("Self device %", share("self_device_time_total", device))]
            columns += [("device total", times("device_time_total"))]
        if self._profile_memory:
            columns += [("CPU Mem", bytes_of("cpu_memory_usage")), ("Self CPU Mem", bytes_of("self_cpu_memory_usage"))]
            if any(e.device_memory_usage for e in self):
                columns += [("device Mem", bytes_of("device_memory_usage")), ("Self device Mem", bytes_of("self_device_memory_usage"))]
        columns += [("# of Calls", [str(e.count) for e in rows])]
        if any(e.input_shapes for e in rows):
            columns += [("Input Shapes", [_shortened(str(e.input_shapes), shapes_width) for e in rows])]
        if any(e.stack for e in rows):
            columns += [("Source Location", [_shortened(e.stack[0] if e.stack else "", src_width) for e in rows])]
        if self._with_flops and any(e.flops for e in self):
            unit, title = _flops_unit([e.flops for e in self])
            columns += [(title, [f"{e.flops / unit:.3f}" if e.flops else "--" for e in rows])]
        return columns

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace of the calls for chrome://tracing and Perfetto."""
        from ._export import chrome_trace

        chrome_trace(path, [e for e in self if not e.on_device], [e for e in self if e.on_device], None, {})

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` accepts."""
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the call stack and a metric of each call, one per line, in the input format of flame graph tools; needs profile(with_stack=True).

        Args:
            path: a file, which is overwritten.
            metric: the metric, in microseconds. ValueError if not in `supported_export_stacks_metrics()`.
        """
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {list(_METRICS)}")
        sums: dict[str, float] = {}
        for event in self:
            value = getattr(event, metric.replace("cuda", "device").replace("xpu", "device"))
            if event.stack and int(value) > 0:
                line = ";".join(frame.translate(_PLAIN) for frame in reversed(event.stack))
                sums[line] = sums.get(line, 0.0) + value
        with atomic_file(path) as file:
            file.write("".join(f"{line} {int(value)}\n" for line, value in sums.items()).encode())


_PLAIN = str.maketrans(" ;\t\n", "____")
