"""A table of measurements: rows by sub-label, columns by description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._measurement import Measurement, select_unit, trim_sigfig, unit_to_english

if TYPE_CHECKING:
    from collections.abc import Iterable


class Compare:
    """Prints measurements as a table.

    Args:
        results: measurements.

    >>> from naru.utils.benchmark import TaskSpec
    >>> spec = TaskSpec("f()", "", label="f", sub_label="small", description="first")
    >>> Compare([Measurement(1, [0.002], spec)]).print()
    [-------- f --------]
                 |  first
    1 threads: ----------
          small  |      2
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._color = False
        self._highlight = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements. ValueError for anything else."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Limits output to significant digits."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted without effect: the table has no colors."""
        self._color = True

    def highlight_warnings(self) -> None:
        """Marks measurements with a large spread with (!)."""
        self._highlight = True

    def print(self) -> None:
        """Prints the table."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(m.task_spec.label or m.task_spec.stmt for m in merged))
        return "\n".join(self._table(label, [m for m in merged if (m.task_spec.label or m.task_spec.stmt) == label]) for label in labels)

    def _cell(self, m: Measurement | None, scale: float) -> str:
        if m is None:
            return ""
        value = m.median / scale
        if self._trim:
            value = trim_sigfig(value, m.significant_figures)
        text = f"{value:.1f}"
        text = text.removesuffix(".0") if value == round(value) else text
        return text + (" (!)" if self._highlight and m.has_warnings else "")

    def _table(self, label: str, group: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in group))
        columns = list(dict.fromkeys(m.task_spec.description or "" for m in group))
        rows = list(dict.fromkeys((m.task_spec.num_threads, m.task_spec.env or "", m.as_row_name) for m in group))
        by_key = {((m.task_spec.num_threads, m.task_spec.env or "", m.as_row_name), m.task_spec.description or ""): m for m in group}
        cells = {(r, c): self._cell(by_key.get((r, c)), scale) for r in rows for c in columns}
        widths = {c: max(len(c), *(len(cells[r, c]) for r in rows)) for c in columns}
        name_width = max(11, *(6 + len(f"({r[1]}) {r[2]}" if r[1] else r[2]) for r in rows))
        head = " " * name_width + "".join(f"  |  {c:^{widths[c]}}" for c in columns)
        lines = ["[" + f" {label} ".center(len(head) - 2, "-") + "]", head.rstrip()]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            name = f"({row[1]}) {row[2]}" if row[1] else row[2]
            lines.append((f"      {name}".ljust(name_width) + "".join(f"  |  {cells[row, c]:>{widths[c]}}" for c in columns)).rstrip())
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", ""])
