"""The output of `naru devices` and `naru doctor`."""

from __future__ import annotations

import json
from typing import Any

from .. import _C
from .screen import say, show_table, table

KINDS = _C._KINDS


def size_text(count: int) -> str:
    """A size in bytes for display; "-" for none."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB" if count else "-"


def _rows(devices: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("device", "kind", "index", "name", "memory", "free", "driver", "libraries", "on hardware")]
    for d in devices:
        tested = "tested" if d["tested_on_hardware"] else "virtual" if d["virtual"] else "not tested"
        rows.append(
            (d["device"], d["kind"], str(d["index"]), d["name"], size_text(d["memory"]), size_text(d["free"]), d["driver"] or "-", d["libraries"] or "-", tested)
        )
    return rows


def _absent(devices: list[dict[str, Any]]) -> str:
    absent = [kind for kind in KINDS if kind not in {d["kind"] for d in devices}]
    return "not available: " + ", ".join(absent) + " (`naru doctor` says why)" if absent else ""


def devices_table() -> str:
    """One line per device, and one line for all kinds without a device."""
    found = _C.devices()
    return "\n\n".join(filter(None, (table(_rows(found)), _absent(found))))


def show_devices(devices: list[dict[str, Any]]) -> None:
    """Prints `devices_table`, in color on a terminal."""
    show_table(_rows(devices), lambda cell: {"tested": "green", "virtual": "cyan", "not tested": "yellow"}.get(cell, ""))
    if text := _absent(devices):
        say("\n" + text)


def devices_json() -> str:
    """All information about each device, and why the other kinds have none."""
    absent = {kind: _C._availability(kind) for kind in KINDS if not _C.is_available(kind)}
    return json.dumps({"devices": _C.devices(), "not_available": absent}, indent=2)


def not_opened(libraries: str) -> str | None:
    """The reason why oneDNN is installed but was not loaded; None if it was loaded or is disabled."""
    import ctypes
    import importlib.metadata
    import os

    if "oneDNN" in libraries or os.environ.get("NARU_MATMUL"):
        return None
    try:
        files = importlib.metadata.files("onednn-cpu-gomp") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "libdnnl.so.3":
            try:
                ctypes.CDLL(str(file.locate()))
            except OSError as error:
                return f"oneDNN of the package onednn-cpu-gomp: {error}" + (" (Debian, Ubuntu: apt install libgomp1)" if "libgomp" in str(error) else "")
    return None


def arithmetic_differences(kind: str, count: int) -> str:
    """How the arithmetic of the devices of a kind differs from the cpu's; "" where it does not."""
    parts = []
    for one in (_C._describe_device(_C.device(kind, i)) for i in range(count)):
        if not one["denormals"]:
            parts.append(f"{one['device']} may take denormal float32 numbers for zero (all other bits are the cpu's)")
        if one["float64_in_integers"]:
            parts.append(f"{one['device']} has no float64 (operators on other dtypes that need it compute it in integers)")
    return "; ".join(parts)


def diagnosis(kind: str) -> dict[str, Any]:
    """Whether a kind of device is usable and how many devices there are; otherwise the state, the reason, the remedy, and how to continue without
    the device."""
    found = {"kind": kind, "devices": _C.device_count(kind), **_C._availability(kind)}
    if found["available"]:
        found["libraries"] = _C._describe_device(_C.device(kind, 0))["libraries"]
        if arithmetic := arithmetic_differences(kind, found["devices"]):
            found["arithmetic"] = arithmetic
        if kind == "cpu" and (reason := not_opened(found["libraries"])):
            found["not opened"] = reason
    elif kind != "cpu" and "NARU_VIRTUAL" not in found["remedy"]:
        found["meanwhile"] = f"NARU_VIRTUAL={kind}:1 gives a virtual one, to develop and to test with"
    return found


def show_diagnosis(found: dict[str, Any]) -> None:
    """Prints a diagnosis: the number of working devices and their libraries, or the one reason why there is none and its remedy."""
    kind, count = (found["kind"], "bold"), found["devices"]
    if found["available"]:
        say(kind, ": ", ("available", "green"), f", {count} device" + ("s" if count != 1 else ""))
        for part in ("libraries", "arithmetic", "not opened"):
            if found.get(part):
                say((f"  {part}: ", "dim"), found[part])
        return
    say(kind, ": ", ("not available", "red"), f" ({found['state']})")
    for part in ("reason", "remedy", "meanwhile"):
        if part in found:
            say((f"  {part}: ", "dim"), found[part])
