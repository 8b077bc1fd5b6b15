"""What `naru devices` and `naru doctor` print."""

from __future__ import annotations

import json
from typing import Any

from .. import _C

KINDS = _C._KINDS


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB" if count else "-"


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows of cells as aligned text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def devices_table() -> str:
    """A line for each device, and one for all kinds that have none."""
    rows: list[tuple[str, ...]] = [("device", "kind", "index", "name", "memory", "free", "driver", "libraries", "on hardware")]
    kinds = set()
    for d in _C.devices():
        kinds.add(d["kind"])
        tested = "tested" if d["tested_on_hardware"] else "virtual" if d["virtual"] else "not tested"
        rows.append(
            (d["device"], d["kind"], str(d["index"]), d["name"], _size(d["memory"]), _size(d["free"]), d["driver"] or "-", d["libraries"] or "-", tested)
        )
    absent = [kind for kind in KINDS if kind not in kinds]
    text = table(rows)
    if absent:
        text += "\n\nnot available: " + ", ".join(absent) + " (`naru doctor` says why)"
    return text


def devices_json() -> str:
    """All that is known of each device, and why the other kinds have none."""
    absent = {kind: _C._availability(kind) for kind in KINDS if not _C.is_available(kind)}
    return json.dumps({"devices": _C.devices(), "not_available": absent}, indent=2)


def diagnosis(kind: str) -> dict[str, Any]:
    """Whether devices of a kind can be used, how many there are, and else the state, the reason and the remedy."""
    return {"kind": kind, "devices": _C.device_count(kind), **_C._availability(kind)}


def doctor_report(kinds: tuple[str, ...] = KINDS) -> str:
    """For each kind: how many devices work and with which libraries, or the one reason why none does and the one remedy."""
    lines = []
    for kind in kinds:
        found = diagnosis(kind)
        count = found["devices"]
        if found["available"]:
            lines.append(f"{kind}: available, {count} device" + ("s" if count != 1 else ""))
            if names := _C._describe_device(_C.device(kind, 0))["libraries"]:
                lines.append(f"  libraries: {names}")
        else:
            lines.append(f"{kind}: not available ({found['state']})\n  reason: {found['reason']}\n  remedy: {found['remedy']}")
    return "\n".join(lines)
