"""Exports a profile as a trace in Chrome's format, and as an HTML page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._device._history_files import counters, write_page, write_trace

if TYPE_CHECKING:
    from .._device.history import memory_history
    from ._events import FunctionEvent


def _track(kernel: FunctionEvent) -> str:
    return "queue of cpu" if kernel.device == "cpu" else f"{kernel.device} stream {kernel.stream}"


def chrome_trace(path: str, events: list[FunctionEvent], kernels: list[FunctionEvent], memory: memory_history | None, more: dict[str, Any]) -> None:
    """Writes a trace: calls by thread, the work on each stream of each device, with an arrow from the call that submitted it, and memory by device."""
    pid = os.getpid()
    out: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python"}}]
    for e in events:
        args = {"Input Dims": e.input_shapes} if e.input_shapes else {}
        out.append({"ph": "X", "cat": e.kind, "name": e.name, "pid": pid, "tid": e.thread, "ts": e.start, "dur": e.end - e.start, "args": args})
    tracks: dict[str, int] = {}
    for i, k in enumerate(kernels):
        track = tracks.setdefault(_track(k), 1 + len(tracks))
        args = {"device": k.device, "stream": k.stream, **({"line": k.line} if k.line else {})}
        out.append({"ph": "X", "cat": k.kind, "name": k.name, "pid": pid, "tid": track, "ts": k.start, "dur": k.end - k.start, "args": args})
        arrow = {"name": "ac2g", "cat": "ac2g", "id": i, "pid": pid}
        out.append({**arrow, "ph": "s", "tid": k.thread, "ts": k.given})
        out.append({**arrow, "ph": "f", "bp": "e", "tid": track, "ts": k.start})
    out += [{"ph": "M", "name": "thread_name", "pid": pid, "tid": number, "args": {"name": name}} for name, number in tracks.items()]
    if memory is not None:
        began = memory._began * 1e6
        for device in memory.devices:
            for us, by_role, cached in counters(memory._of(device)):
                out.append({"ph": "C", "name": f"memory of {device}", "pid": pid, "ts": began + us, "args": {**by_role, "cached": cached}})
    write_trace(out, Path(path), more)


def page(path: str | Path, events: list[FunctionEvent], kernels: list[FunctionEvent], memory: memory_history | None) -> Path:
    """Writes an HTML page that shows the same over time."""
    zero = min([e.start for e in [*events, *kernels]] + ([memory._began * 1e6] if memory is not None else []), default=0.0)
    texts: dict[str, int] = {}
    tracks: dict[str, list[list[Any]]] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts)) if text else -1

    threads = list(dict.fromkeys(e.thread for e in events))
    for e in events:
        name = "python" if len(threads) == 1 else f"python, thread {e.thread}"
        tracks.setdefault(name, []).append([round((e.start - zero) / 1e3, 6), round((e.end - e.start) / 1e3, 6), number(e.name), e.depth, -1])
    for k in kernels:
        tracks.setdefault(_track(k), []).append([round((k.start - zero) / 1e3, 6), round((k.end - k.start) / 1e3, 6), number(k.name), 0, number(k.line)])
    panels: list[dict[str, Any]] = [
        {"kind": "spans", "name": "timeline", "texts": list(texts), "tracks": [{"name": name, "spans": spans} for name, spans in tracks.items()]}
    ]
    if memory is not None:
        shift = memory._began * 1e3 - zero / 1e3
        for panel in memory.run()["panels"]:
            panel["events"] = [[round(row[0] + shift, 6), *row[1:]] for row in panel["events"]]
            panel["steps"] = [[at + shift, text] for at, text in panel["steps"]]
            panels.append(panel)
    return write_page(path, "naru: profile", [{"name": "", "panels": panels}])
