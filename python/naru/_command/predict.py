"""`naru memory --predict`: predicts the peak memory of a run.

The script runs on virtual devices whose tensors have no elements: nothing is computed and no memory is allocated. Everything else is as in a run
(fusion, the order of releases, the caching allocator), so the figures equal those of a virtual device with memory. Values that the script reads
from a device are 0.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import defaultdict
from typing import Any

from .. import _C
from .._device.history import memory_history
from . import screen
from .program import run_program

_LINES = 20


def _without_elements(spec: str) -> str:
    """The same virtual devices, without elements."""
    return ",".join(f"{entry.removesuffix(')')}{';' if '(' in entry else '('}without=elements)" for entry in spec.split(","))


class without_elements:
    """Context manager: the machine's virtual devices (or, if there are none, one of `kind`) have no elements. Records their memory histories.

    Args:
        kind: kind of the device if NARU_VIRTUAL names none.
        memory: memory size of each device, as in naru.virtual; None: as in NARU_VIRTUAL, or 1T. Exceeding it is an out-of-memory error, as in a run.
    """

    def __init__(self, kind: str = "cuda", memory: str | None = None) -> None:
        self._before = _C._virtual_devices()
        spec = self._before or f"{kind}:1(memory={memory or '1T'})"
        if self._before and memory:
            spec = ",".join(f"{entry.removesuffix(')')};memory={memory})" for entry in spec.split(","))
        self._spec = _without_elements(spec)
        self.histories: list[memory_history] = []

    def __enter__(self) -> without_elements:
        _C._set_virtual_devices(self._spec)
        kinds = [entry.partition(":")[0] for entry in self._spec.split(",")]
        self.histories = [memory_history(f"{kind}:{i}") for kind in kinds for i in range(_C.device_count(kind))]
        for history in self.histories:
            history.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        for history in self.histories:
            history.__exit__()
        _C._set_virtual_devices(self._before)


def at_peak(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The peak of a history: bytes in tensors, bytes reserved on the device, the line at which the peak was reached, and the holders, largest
    first."""
    if not events:
        return {"allocated": 0, "reserved": 0, "line": "", "holders": []}
    last = max(range(len(events)), key=lambda i: events[i]["allocated"])
    held: dict[int, dict[str, Any]] = {}
    for event in events[: last + 1]:
        if event["bytes"] > 0:
            held[event["number"]] = event
        else:
            held.pop(event["number"], None)
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for event in held.values():
        group = groups[event.get("role") or "other", event["line"], event["operator"]]
        group[0] += event["bytes"]
        group[1] += 1
    holders = [
        {"role": role, "line": line, "operator": operator, "bytes": size, "tensors": count}
        for (role, line, operator), (size, count) in sorted(groups.items(), key=lambda item: -item[1][0])
    ]
    return {
        "allocated": events[last]["allocated"],
        "reserved": max(event["reserved"] for event in events),
        "line": events[last]["line"],
        "holders": holders,
    }


def _size(n: int) -> str:
    value, unit = float(n), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{n} bytes" if unit == "bytes" else f"{value:.2f} {unit}"


def report(device: str, peak: dict[str, Any]) -> str:
    """The result of `at_peak` for a device, as text."""
    if not peak["holders"]:
        return f"{device}: nothing was put there"
    at = f", at {peak['line']}" if peak["line"] else ""
    lines = [f"{device}: peak {_size(peak['allocated'])} in tensors, {_size(peak['reserved'])} taken from the device{at}"]
    roles: dict[str, int] = defaultdict(int)
    for holder in peak["holders"]:
        roles[holder["role"]] += holder["bytes"]
    lines += [f"  {size:>12}  {role}" for role, size in ((role, _size(n)) for role, n in sorted(roles.items(), key=lambda item: -item[1]))]
    lines.append("  held by:")
    for holder in peak["holders"][:_LINES]:
        made = " · ".join(part for part in (holder["line"], holder["operator"]) if part) or "unknown"
        lines.append(f"  {_size(holder['bytes']):>12}  {holder['role']:<16} {holder['tensors']:>5} × {made}")
    rest = peak["holders"][_LINES:]
    if rest:
        lines.append(f"  {_size(sum(holder['bytes'] for holder in rest)):>12}  {'':<16} {sum(holder['tensors'] for holder in rest):>5} × others")
    return "\n".join(lines)


def predicted(program: list[str], device: str | None, size: str | None, as_json: bool) -> int:
    """Runs a program (see program.py) on devices without elements, and prints the holders at the peak of each device; returns the program's exit
    status.

    Args:
        device: gives the kind of the virtual device if NARU_VIRTUAL names none; default cuda.
        size: memory of each device; see `without_elements`.
        as_json: print one object, by device, on the last line.
    """
    try:
        devices = without_elements((device or "cuda").partition(":")[0], size)
        devices.__enter__()
    except RuntimeError as error:
        return screen.wrong("memory", str(error))
    with contextlib.ExitStack() as stack:
        stack.push(devices.__exit__)
        try:
            status = run_program("memory", program)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    peaks = {str(history.device): at_peak(history.events) for history in devices.histories}
    sys.stdout.flush()
    if as_json:
        print(json.dumps(peaks))
        return status
    print("\n".join(report(name, peak) for name, peak in peaks.items()))
    if not any(peak["holders"] for peak in peaks.values()):
        print("The program kept to the cpu: let it use a device that is there.")
    if status:
        print(f"The program ended with status {status}; the peak is that of what it did until then.")
    return status
