"""The `naru bench` command: arguments, table, JSON and picture (bench.py measures)."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from .. import _C
from .._serialization.atomic_file import atomic_file
from ..backends._precision import get_float32_matmul_precision
from ..torch_version import __version__
from .bench import PEERS, Naru, measure, peer
from .screen import progress, table, wrong

# Fused multiply-adds per cycle and multiprocessor, by compute capability: float32, float64, and float16 and bfloat16 on tensor cores.
CUDA_RATES = {
    (7, 0): (64, 32, 512), (7, 5): (64, 2, 512), (8, 0): (64, 64, 1024), (8, 6): (128, 2, 512), (8, 9): (128, 2, 512),
    (9, 0): (128, 128, 2048), (10, 0): (128, 64, 4096), (12, 0): (128, 2, 512),
}  # fmt: skip
# The largest accepted error of a product, relative to its largest element.
TOLERANCE = {"float32": 1e-3, "float64": 1e-9, "float16": 1e-2, "bfloat16": 5e-2}


def _clock(device: dict[str, Any]) -> float:
    """The clock rate in Hz; 0 if neither the driver nor nvidia-smi reports it."""
    if device["clock_rate"]:
        return device["clock_rate"] * 1e3
    command = ["nvidia-smi", f"--id={device['uuid']}", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    try:
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]) * 1e6
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        return 0.0


def peak_of(device: dict[str, Any], dtype: str, processors: float) -> tuple[float | None, str]:
    """The device's theoretical peak in TFLOP/s and the source of that figure; or None and the reason.

    device: as in `naru._C.devices()`. processors: the host's float32 peak, in operations per second.
    """
    if device["on_host"]:
        if dtype not in ("float32", "float64") or not processors:
            return None, f"the processors' rate for {dtype} is not known"
        return processors / (1 if dtype == "float32" else 2) / 1e12, "measured: fused multiply-adds in registers, all threads"
    rates = CUDA_RATES.get((device["major"], device["minor"])) if device["kind"] == "cuda" else None
    clock = _clock(device) if rates else 0.0
    if not rates or not clock:
        return None, f"no figure is known for {device['name']}"
    single, double, half = rates
    rate = {"float32": single, "float64": double}.get(dtype, half)
    tf32 = dtype == "float32" and get_float32_matmul_precision() != "highest" and device["major"] >= 8
    return device["multi_processor_count"] * clock * (half / 2 if tf32 else rate) * 2 / 1e12, "declared: processors × greatest clock × operations a cycle"


def run(size: int, dtype: str, devices: list[str], repeat: int, peers: bool, tell: Callable[[str], None] = lambda name: None) -> dict[str, Any]:
    """Measures everything; returns the dict that --json writes. tell: called with each device and library before it is measured."""
    side = Naru()
    processors = _C._measure_peak()
    known = {d["device"]: d for d in _C.devices()}
    rows, left_out = [], []
    for device in devices:
        tell(device)
        ability = {"float64": "fp64", "float16": "fp16", "bfloat16": "bf16"}.get(dtype)
        if ability and not known[device][ability]:
            left_out.append({"library": "naru", "device": device, "reason": f"it has no {dtype}"})
            continue
        row = measure(side, device, size, dtype, repeat)
        processors = max(processors, _C._measure_peak())  # an earlier measurement may have been slowed by other programs
        row["virtual"] = known[device]["virtual"]
        rows.append(row)
        _progress(row)
    for library in PEERS if peers else ():
        tell(library)
        found, reason = peer(library, size, dtype, repeat, devices)
        rows += found
        for row in found:
            _progress(row)
        if reason:
            left_out.append({"library": library, "device": "", "reason": reason})
    for row in rows:
        # Match the other library's device with naru's by name.
        name = row["device"] if ":" in row["device"] or row["device"] == "cpu" else row["device"] + ":0"
        peak, source = peak_of(known[name], dtype, processors) if name in known else (None, "naru does not have this device")
        tflops = row["product"]["tflops"]
        row["peak"] = {"tflops": peak, "source": source, "share": tflops / peak if peak else None}
        row["right"] = row["product"]["error"] <= TOLERANCE[dtype]
    work = {"size": size, "dtype": dtype, "count": repeat, "operations": 2 * size**3 * repeat}
    machine = {"processor": known["cpu"]["name"], "threads": _C.get_num_threads(), "system": platform.platform(), "python": platform.python_version()}
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {"naru": __version__, "date": date, "machine": machine, "work": work, "results": rows, "left_out": left_out}


def _progress(row: dict[str, Any]) -> None:
    """Prints intermediate results, in case the run does not finish."""
    print(f"naru bench: {row['library']} on {row['device']}: {row['product']['tflops']:.3f} TFLOP/s", file=sys.stderr, flush=True)


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


def text_of(found: dict[str, Any]) -> str:
    """The results as a table."""
    work = found["work"]
    head = ("device", "library", "products", "TFLOP/s", "of peak", "copy", "to pinned", "to pageable", "from pinned", "from pageable", "queued", "waited for")
    units = ("", "", "s", "", "", *["GB/s"] * 5, "µs", "µs")
    rows: list[tuple[str, ...]] = [head, units]
    for r in found["results"]:
        copies = [f"{r['copy'][c]['gb_per_s']:.1f}" if c in r["copy"] else "-" for c in
                  ("within", "to_device_pinned", "to_device_pageable", "to_host_pinned", "to_host_pageable")]  # fmt: skip
        share = "-" if r["peak"]["share"] is None else f"{r['peak']['share']:.0%}"
        launch = r["launch"]
        device = r["device"] + (" (virtual)" if r.get("virtual") else "") + ("" if r["right"] else " WRONG")
        rows.append((device, f"{r['library']} {r['version']}", f"{r['product']['seconds']:.3g}", f"{r['product']['tflops']:.3f}", share, *copies,
                     _micro(launch["queued_seconds"]), _micro(launch["synchronous_seconds"])))  # fmt: skip
    lines = [f"{work['count']} products of ({work['size']}, {work['size']}) matrices of {work['dtype']} on {found['machine']['processor']},"
             f" {found['machine']['threads']} threads", "", table(rows), ""]  # fmt: skip
    for source in dict.fromkeys(f"{r['device']}: {_peak_text(r['peak'])}" for r in found["results"] if r["library"] == "naru"):
        lines.append(f"peak of {source}")
    lines.append("copy: bytes copied a second within the device; to, from: between host memory and the device. queued: an addition of 1,000")
    lines.append("numbers behind others; waited for: the same, each with a synchronisation.")
    lines += [f"without {x['library']}{' on ' + x['device'] if x['device'] else ''}: {x['reason']}" for x in found["left_out"]]
    return "\n".join(lines)


def _peak_text(peak: dict[str, Any]) -> str:
    return peak["source"] if peak["tflops"] is None else f"{peak['tflops']:.3f} TFLOP/s ({peak['source']})"


# Hatches and lightness distinguish the bars in black and white.
_LOOKS = (("#1f4e79", ""), ("#e69f00", "///"), ("#56b4e9", "..."), ("#009e73", "xxx"), ("#f0e442", "---"))
_COPIES = ("within", "to_device_pinned", "to_device_pageable", "to_host_pinned", "to_host_pageable")


def _bars(axes: Any, title: str, names: list[str], series: list[tuple[str, list[float]]], unit: str) -> None:
    """Draws grouped horizontal bars, each with its value at the end. Adds a legend above if there is more than one series."""
    from matplotlib import ticker

    class Plain(ticker.LogFormatter):
        """Formats ticks without exponents, and only where there is room."""

        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    looks = dict(zip((label for label, _ in series), _LOOKS))
    several = len(series) > 1
    series = [(label, numbers) for label, numbers in series if any(v > 0 for v in numbers)]
    thick = 0.8 / max(1, len(series))
    values = [v for _, numbers in series for v in numbers if v > 0]
    axes.set_xscale("log")
    axes.set_xlim(min(values, default=1) / 2, max(values, default=1) * 3)  # room for the values
    for k, (label, numbers) in enumerate(series):
        colour, hatch = looks[label]
        shown = [(i, v) for i, v in enumerate(numbers) if v > 0]
        places = [i + (k - (len(series) - 1) / 2) * thick for i, _ in shown]
        bars = axes.barh(places, [v for _, v in shown], thick, label=label, color=colour, hatch=hatch, edgecolor="black", linewidth=0.5)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axes.bar_label(bars, [f"{v:,.0f}" if v >= 1000 else f"{v:.3g}" for _, v in shown], padding=4, fontsize="small", bbox=box)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(unit)
    axes.xaxis.set_major_formatter(Plain())
    axes.xaxis.set_minor_formatter(Plain(minor_thresholds=(2, 0.5)))
    if several and series:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small", frameon=False)
    axes.set_title(title, fontsize="medium", pad=8 + 15 * -(-len(series) // 3) * several)


def figure_of(found: dict[str, Any]) -> Any:
    """The results as a matplotlib figure: bars on logarithmic axes, so that a cpu and a GPU fit on one scale."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = found["results"]
    names = [f"{r['device']} · {r['library']}" for r in rows]
    heights = [1 + 0.45 * len(rows), 1.6 + 0.9 * len(rows), 1.3 + 0.55 * len(rows)]
    figure, axes = pyplot.subplots(3, 1, figsize=(8, sum(heights)), height_ratios=heights, layout="constrained")
    work = found["work"]
    title = f"products of {work['size']} × {work['size']}, {work['dtype']} (dashed: peak)"
    _bars(axes[0], title, names, [("products", [r["product"]["tflops"] for r in rows])], "TFLOP/s")
    for i, r in enumerate(rows):
        if peak := r["peak"]["tflops"]:
            axes[0].vlines(peak, i - 0.45, i + 0.45, colors="black", linestyles="dashed")
            low, high = axes[0].get_xlim()
            axes[0].set_xlim(low, max(high, peak * 2))
    copies = [(kind.replace("_", " "), [r["copy"].get(kind, {}).get("gb_per_s", 0) for r in rows]) for kind in _COPIES]
    _bars(axes[1], "copies", names, copies, "GB/s")
    launches = (("queued_seconds", "queued"), ("synchronous_seconds", "waited for"))
    _bars(axes[2], "launches", names, [(label, [r["launch"][kind] * 1e6 for r in rows]) for kind, label in launches], "µs")
    return figure


def draw(found: dict[str, Any], path: str) -> None:
    """Writes the results as a bar chart; needs matplotlib."""
    figure = figure_of(found)
    from matplotlib import pyplot

    with atomic_file(path) as file:
        figure.savefig(file, format=os.path.splitext(path)[1][1:] or "png", dpi=120)
    pyplot.close(figure)


def main(size: int, dtype: str, names: list[str], repeat: int, peers: bool, json_file: str | None, picture: str | None) -> int:
    """Runs `naru bench`. Returns 1 if a product was wrong, 2 for invalid arguments."""
    if picture and importlib.util.find_spec("matplotlib") is None:
        return wrong("bench", "--picture needs matplotlib, which this Python does not have: pip install matplotlib")
    try:
        devices = [_C._describe_device(_C.device(d))["device"] for d in names] or [d["device"] for d in _C.devices()]
    except RuntimeError as error:
        return wrong("bench", str(error))
    devices = list(dict.fromkeys(devices))
    with progress("measuring", len(devices) + len(PEERS if peers else ())) as tell:
        found = run(size, dtype, devices, repeat, peers, tell)
    print(json.dumps(found, indent=2) if json_file == "-" else text_of(found))
    if json_file and json_file != "-":
        with atomic_file(json_file, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)
    if picture:
        draw(found, picture)
    return 0 if all(r["right"] for r in found["results"]) else 1
