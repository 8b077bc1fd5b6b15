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
    rows: list[tuple[str, ...]] = [("device", "name", "memory")]
    absent = []
    for kind in KINDS:
        count = _C.device_count(kind) if _C.is_available(kind) else 0
        for i in range(count):
            device = _C.device(kind, i) if kind != "cpu" else _C.device("cpu")
            rows.append((str(device), _C.device_name(device), _size(_C.total_memory(device))))
        if not count:
            absent.append((kind, "not available"))
    text = _table(rows)
    if absent:
        text += "\n\n" + _table(absent) + "\n\n`naru doctor` says why."
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
