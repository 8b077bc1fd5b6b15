"""Memory of devices: figures, a table, limits, and a history that becomes a page."""
from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from .. import _C
from .._serialization.atomic_file import atomic_file
from .kind import current_kind


def as_device(device: Any = None) -> Any:
    """`device` (None: the best kind's current one) as a device."""
    if device is None:
        kind = current_kind()
        return _C.device("cpu") if kind is None else _C.device(kind, _C.current_device(kind))
    return device if isinstance(device, _C.device) else _C.device(device)


def size_text(n: float) -> str:
    """'1.50 GiB' for a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024 or unit == "GiB":
            return f"{int(n)} B" if unit == "B" else f"{n:.2f} {unit}"
        n /= 1024
    raise AssertionError


def reset_accumulated(device: Any = None) -> None:
    """Counts what is allocated and freed on a device, its retries and failures anew from here."""
    _C._reset_accumulated_memory_stats(as_device(device))


def stats(device: Any = None) -> dict[str, int]:
    """The allocator's figures under PyTorch's names ('allocated_bytes.all.current', 'num_ooms', ...), in bytes and counts, and some beside them.

    'driver_used_bytes' is what the driver says is in use; it is allocated + cached ('cached_bytes') + 'other_bytes', which are held by
    the driver itself and by other programs. 'limit_bytes' is 0 where there is no limit.
    """
    return _C._memory_stats(as_device(device))


def summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as PyTorch's table, with lines for what the device's other users hold and for the limit. abbreviated: without the pools."""
    return _C._memory_summary(as_device(device), abbreviated)


def set_fraction(fraction: float, device: Any = None) -> None:
    """Lets this process take no more than that part of a device's memory; ValueError outside [0, 1]."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    target = as_device(device)
    _C.set_memory_limit(target, max(1, int(fraction * _C.total_memory(target))))


class memory_history:
    """Records a device's allocations for a block; `page(path)` writes them as one self-contained HTML page.

    >>> import naru
    >>> with naru.memory_history("cpu") as h:
    ...     x = naru.ones(1 << 20); x = x + 1; _ = x.sum().item()
    >>> max(e["bytes"] for e in h.events) >= 4 << 20
    True
    """

    def __init__(self, device: Any = None) -> None:
        self.device = as_device(device)
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> memory_history:
        _C.synchronize(self.device)
        _C._record_memory_history(self.device, True)
        return self

    def __exit__(self, *exception: object) -> None:
        _C.synchronize(self.device)
        names = ("seconds", "bytes", "number", "allocated", "reserved", "operator", "line")
        self.events = [dict(zip(names, event)) for event in _C._memory_history(self.device)]
        _C._record_memory_history(self.device, False)

    def holders(self) -> list[tuple[str, int, int]]:
        """(line and operator, most bytes held at one time, allocations), the greatest first."""
        held: dict[str, int] = {}
        most: dict[str, int] = {}
        count: dict[str, int] = {}
        made: dict[int, tuple[str, int]] = {}
        for e in self.events:
            if e["bytes"] > 0:
                name = " · ".join(filter(None, (e["line"] or "(small, or made by the library)", e["operator"])))
                made[e["number"]] = (name, e["bytes"])
                held[name] = held.get(name, 0) + e["bytes"]
                most[name] = max(most.get(name, 0), held[name])
                count[name] = count.get(name, 0) + 1
            elif e["number"] in made:
                name, size = made.pop(e["number"])
                held[name] -= size
        return sorted(((n, most[n], count[n]) for n in most), key=lambda row: -row[1])

    def page(self, path: str | Path) -> Path:
        """Writes the page: a timeline of bytes in tensors and bytes taken, and the largest holders by the line that made them."""
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{size_text(most)}</td><td>{count}</td></tr>" for name, most, count in self.holders()[:20]
        )
        points = [[round(e["seconds"] * 1e3, 3), e["allocated"], e["reserved"]] for e in self.events]
        peak = max((e["allocated"] for e in self.events), default=0)
        text = _PAGE.replace("$DEVICE", html.escape(str(self.device))).replace("$ROWS", rows).replace("$PEAK", size_text(peak))
        path = Path(path)
        with atomic_file(path, "w", encoding="utf-8") as file:
            file.write(text.replace("$POINTS", json.dumps(points)))
        return path


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>naru: memory of $DEVICE</title>
<style>body{font:15px system-ui,sans-serif;margin:2rem auto;max-width:60rem;color:#222}svg{width:100%;height:18rem;border:1px solid #ccc}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #ddd}td:nth-child(n+2){white-space:nowrap}
.a{fill:#4a90d9;opacity:.6}.r{fill:none;stroke:#d9534f;stroke-width:1.5}</style>
<h1>Memory of $DEVICE</h1>
<p>Peak in tensors: <b id="peak">$PEAK</b>. Blue: bytes in tensors. Red: bytes taken from the device. <span id="at"></span></p>
<svg id="timeline" viewBox="0 0 1000 300" preserveAspectRatio="none"></svg>
<h2>The largest holders</h2>
<table id="holders"><tr><th>line and operator</th><th>most at one time</th><th>allocations</th></tr>$ROWS</table>
<script>
const points = $POINTS, svg = document.getElementById("timeline");
const end = points.length ? Math.max(points[points.length - 1][0], 0.001) : 1;
const top_ = Math.max(1, ...points.map(p => Math.max(p[1], p[2])));
const x = t => 1000 * t / end, y = b => 295 - 285 * b / top_;
let area = "M0 295", line = "";
points.forEach((p, i) => {
  const to = i + 1 < points.length ? points[i + 1][0] : end;
  area += `L${x(p[0])} ${y(p[1])}L${x(to)} ${y(p[1])}`;
  line += `${i ? "L" : "M"}${x(p[0])} ${y(p[2])}L${x(to)} ${y(p[2])}`;
});
svg.innerHTML = `<path class="a" d="${area}L1000 295Z"/><path class="r" d="${line}"/>`;
svg.onmousemove = e => {
  const t = end * e.offsetX / svg.clientWidth, p = points.filter(q => q[0] <= t).pop();
  if (p) document.getElementById("at").textContent = `At ${t.toFixed(2)} ms: ${(p[1] / 1048576).toFixed(2)} MiB in tensors.`;
};
</script></html>
"""
