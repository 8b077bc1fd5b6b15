"""`naru kernelcheck`: runs a program on virtual cuda devices that interpret PTX, and reports what its kernels did wrong."""

from __future__ import annotations

import json
import sys
from typing import Any

from .. import _C
from . import screen
from .gpu_model import GPUS, seconds
from .program import run_program


def with_ptx(spec: str) -> str:
    """The same virtual devices, of which those of cuda interpret PTX; there is one if there is none."""
    entries = [entry for entry in spec.split(",") if entry]
    if not any(entry.partition(":")[0] == "cuda" for entry in entries):
        entries.append("cuda:1")
    return ",".join(
        f"{entry.removesuffix(')')}{';' if '(' in entry else '('}execute=ptx)" if entry.partition(":")[0] == "cuda" else entry for entry in entries
    )


def fault_text(fault: dict[str, Any]) -> str:
    """A fault as two lines: where it is, and what was wrong."""
    line = f", line {fault['line']}" if fault["line"] else ""
    source = f": {fault['source']}" if fault["source"] else ""
    times = f" ({fault['times']:,} times)" if fault["times"] > 1 else ""
    made = f"\n  The kernel computes {fault['made']}." if fault["made"] else ""
    return f"{fault['kind']}: kernel '{fault['kernel']}'{line}{source}\n  {fault['thread']}: {fault['text']}{times}{made}"


def rows_of(figures: dict[str, dict[str, float]], model: str | None) -> list[tuple[str, ...]]:
    """A table of kernels, those with the most instructions first; with estimated times on a model of a GPU."""
    rows = [("kernel", "launches", "threads", "warp instructions", "active", "sectors", "ideal", "bank conflicts", "atomics")]
    if model:
        rows[0] += (f"estimate {GPUS[model].name}",)
    for name, f in sorted(figures.items(), key=lambda item: -item[1]["instructions"]):
        active = f["thread_instructions"] / (32 * f["instructions"]) if f["instructions"] else 0
        ideal = f"{f['ideal_sectors'] / f['global_sectors']:.0%}" if f["global_sectors"] else "-"
        rows.append((name, f"{f['launches']:,.0f}", f"{f['threads']:,.0f}", f"{f['instructions']:,.0f}", f"{active:.0%}", f"{f['global_sectors']:,.0f}", ideal,
                     f"{f['bank_conflicts']:,.0f}", f"{f['atomics']:,.0f}"))  # fmt: skip
        if model:
            rows[-1] += (f"{1e6 * seconds(f, GPUS[model]):,.1f} µs",)
    return rows


def checked(program: list[str], counts: bool, model: str | None, as_json: bool) -> int:
    """Runs a program (see program.py); returns 1 if a kernel had a fault, else the program's exit status.

    Args:
        counts: print the table of kernels.
        model: with a column of estimated times on this GPU, a name of `gpu_model.GPUS`.
        as_json: print one object on the last line.
    """
    before = _C._virtual_devices()
    _C._set_virtual_devices(with_ptx(before))
    _C._collect_kernel_faults(True)
    try:
        try:
            _C.synchronize("cuda:0")  # opens the compiler
        except RuntimeError as error:
            return screen.wrong("kernelcheck", str(error))
        try:
            status = run_program("kernelcheck", program)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        for number in range(_C.device_count("cuda")):
            try:
                _C.synchronize(f"cuda:{number}")
            except Exception as error:  # what the program has not waited for
                print(f"naru kernelcheck: {error}", file=sys.stderr)
                status = status or 1
        faults, figures = _C._kernel_faults(), _C._kernel_figures()
    finally:
        _C._collect_kernel_faults(False)
        _C._set_virtual_devices(before)
    sys.stdout.flush()
    if as_json:
        print(json.dumps({"faults": faults, "kernels": figures}))
        return 1 if faults else status
    for fault in faults:
        print(fault_text(fault))
    if (counts or model) and figures:
        screen.show_table(rows_of(figures, model))
    launches = sum(row["launches"] for row in figures.values())
    kernels = len({fault["kernel"] for fault in faults})
    if not figures:
        print("naru kernelcheck: no kernel ran: let the program use the device cuda")
    elif faults:
        print(f"naru kernelcheck: {len(faults)} fault{'s' * (len(faults) > 1)} in {kernels} kernel{'s' * (kernels > 1)}, of {len(figures)} that ran")
    else:
        print(f"naru kernelcheck: no fault in {len(figures)} kernel{'s' * (len(figures) > 1)}, {launches:,.0f} launches")
    if status and not faults:
        print(f"naru kernelcheck: the program ended with status {status}", file=sys.stderr)
    return 1 if faults else status
