"""What `naru devices` and `naru doctor` print."""

from __future__ import annotations

from . import _C

KINDS = ("cpu", "cuda", "rocm", "xpu", "mps")


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB" if count else "-"


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def devices_table() -> str:
    """A line for each device, and one for each kind that has none."""
    rows: list[tuple[str, ...]] = [("device", "name", "memory", "backend", "works with")]
    kinds = set()
    for found in _C.devices():
        kinds.add(found["kind"])
        rows.append(
            (found["device"], found["name"], _size(found["memory"]), found["backend"], found["libraries"] or found["driver"])
        )
    absent = [kind for kind in KINDS if kind not in kinds]
    text = _table(rows)
    if absent:
        text += "\n\nnot available: " + ", ".join(absent) + " (`naru doctor` says why)"
    return text


def doctor_report() -> str:
    """For each kind: how many devices work, or the reason why none does and what to do."""
    rows = []
    for kind in KINDS:
        if _C.is_available(kind):
            count = _C.device_count(kind)
            rows.append((kind, "available", f"{count} device" + ("s" if count != 1 else "")))
        else:
            rows.append((kind, "not available", _C.why_unavailable(kind)))
    return _table(rows)
