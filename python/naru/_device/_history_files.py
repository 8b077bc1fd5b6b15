"""A memory history in external formats: Chrome's trace events, and PyTorch's snapshots."""

from __future__ import annotations

import gzip
import json
import os
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _C
from .._serialization.atomic_file import atomic_file

if TYPE_CHECKING:
    from collections.abc import Iterable

ROLES = ("parameter", "optimizer state", "gradient", "activation", "other")
# PyTorch's addresses are driver addresses, ours may be any 64 bits; a snapshot packs them without gaps, starting here.
_BASE = 0x7F0000000000


def counters(events: list[dict[str, Any]]) -> Any:
    """Yields (microseconds, bytes by category, bytes cached) for each event."""
    now = dict.fromkeys(ROLES, 0)
    for e in events:
        now[e["role"]] += e["bytes"]
        yield e["seconds"] * 1e6, dict(now), max(0, e["reserved"] - e["allocated"])


def write_trace(events: list[dict[str, Any]], path: Path, more: dict[str, Any] | None = None) -> None:
    """Writes trace events as Chrome's JSON; gzipped if the name ends with .gz."""
    data = json.dumps({"schemaVersion": 1, "traceEvents": events, "displayTimeUnit": "ms", **(more or {})}).encode()
    with atomic_file(path) as file:
        file.write(gzip.compress(data) if os.fspath(path).endswith(".gz") else data)


def chrome_trace(history: Any, path: Path) -> Path:
    """Implements memory_history.export_chrome_trace."""
    pid = os.getpid()
    out: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": history.name or "python"}}]
    for device in history.devices:
        for us, by_role, cached in counters(history._of(device)):
            out.append({"ph": "C", "name": f"memory of {device}", "pid": pid, "ts": us, "args": {**by_role, "cached": cached}})
    out += [{"ph": "i", "s": "g", "name": text, "pid": pid, "tid": 0, "ts": at * 1e6} for at, text in history.steps]
    write_trace(out, path)
    return path


def _frames(event: dict[str, Any]) -> list[dict[str, Any]]:
    frames = []
    for place, function in event["stack"]:
        file, _, line = place.rpartition(":")
        frames.append({"filename": file, "line": int(line), "name": function})
    what = " · ".join(filter(None, (event["role"], event["name"], event["within"] and "in " + event["within"], "backward" if event["backward"] else "")))
    # The site shows the first frames: put the memory's category on top, as a frame without a file.
    return [{"filename": "", "line": 0, "name": f"{event['operator'] or 'naru'} ({what})"}, *frames]


def snapshot(history: Any) -> dict[str, Any]:
    """Implements memory_history.snapshot."""
    traces: list[list[dict[str, Any]]] = []
    segments = []
    for device in history.devices:
        events, slabs = history._of(device), history._slabs[str(device)]
        offsets, index = Offsets(events, slabs), device.index or 0
        while len(traces) <= index:
            traces.append([])

        def entry(action: str, seconds: float, address: int, size: int, frames: Any) -> dict[str, Any]:
            us = int((history._wall + seconds) * 1e6)
            return {"action": action, "addr": _BASE + offsets(address), "size": size, "stream": 0, "time_us": us, "frames": frames}

        trace = [entry("segment_alloc" if size > 0 else "segment_free", at, address, abs(size), []) for at, size, address in slabs]
        live: dict[int, dict[str, Any]] = {}
        for e in events:
            frames = _frames(e)
            if e["bytes"] > 0:
                live[e["number"]] = e
                trace.append(entry("alloc", e["seconds"], e["address"], e["bytes"], frames))
            else:
                live.pop(e["number"], None)
                trace += [entry(action, e["seconds"], e["address"], -e["bytes"], frames) for action in ("free_requested", "free_completed")]
        # A stable sort keeps the order of events in the same microsecond: allocation before free.
        trace.sort(key=lambda t: t["time_us"])
        traces[index] += trace
        segments += _segments(index, offsets, slabs, list(live.values()))
    return {"segments": segments, "device_traces": traces, "allocator_settings": {}, "external_annotations": []}


def _segments(index: int, offsets: Any, slabs: list[tuple[float, int, int]], live: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slabs that exist at the end, with their blocks and the gaps between them."""
    there: dict[int, int] = {}
    for _, size, address in slabs:
        if size > 0:
            there[address] = size
        else:
            there.pop(address, None)
    out = []
    for address, total in sorted(there.items()):
        inside = sorted((e for e in live if address <= e["address"] < address + total), key=lambda e: e["address"])
        blocks, at = [], address
        for e in [*inside, None]:
            begin = address + total if e is None else e["address"]
            if begin > at:
                blocks.append({"address": _BASE + offsets(at), "size": begin - at, "requested_size": 0, "state": "inactive", "frames": []})
            if e is not None:
                block = {"address": _BASE + offsets(begin), "size": e["bytes"], "requested_size": e["bytes"], "state": "active_allocated"}
                blocks.append({**block, "frames": _frames(e)})
                at = begin + e["bytes"]
        held = sum(e["bytes"] for e in inside)
        out.append({
            "device": index, "address": _BASE + offsets(address), "total_size": total, "allocated_size": held, "active_size": held,
            "requested_size": held, "stream": 0, "segment_type": "small" if total <= 2 << 20 else "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": blocks,
        })  # fmt: skip
    return out


class Offsets:
    """Maps an address to its offset when all memory ever allocated on a device is packed without gaps."""

    def __init__(self, events: Iterable[dict[str, Any]], slabs: Iterable[tuple[float, int, int]]) -> None:
        sizes: dict[int, int] = {}
        for address, size in [*((a, abs(b)) for _, b, a in slabs), *((e["address"], abs(e["bytes"])) for e in events)]:
            sizes[address] = max(sizes.get(address, 0), size)
        self.regions: list[list[int]] = []  # first address, end address, offset of the first
        for address, size in sorted(sizes.items()):
            if self.regions and address < self.regions[-1][1]:
                self.regions[-1][1] = max(self.regions[-1][1], address + size)
            else:
                offset = self.regions[-1][2] + self.regions[-1][1] - self.regions[-1][0] if self.regions else 0
                self.regions.append([address, address + size, offset])
        self._firsts = [region[0] for region in self.regions]

    def __call__(self, address: int) -> int:
        first, _, offset = self.regions[bisect_right(self._firsts, address) - 1]
        return offset + address - first


def write_page(path: str | os.PathLike[str], title: str, runs: list[dict[str, Any]]) -> Path:
    """Writes an HTML page of memory histories and profiles."""
    text = json.dumps({"title": title, "runs": runs}, separators=(",", ":")).replace("<", "\\u003c")
    with atomic_file(path, "w", encoding="utf-8") as file:
        file.write(_C._page(title, text))
    return Path(path)
