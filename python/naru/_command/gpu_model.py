"""Estimates of how long a kernel takes on a GPU, from what the interpreter counted (docs/kernelcheck.md says what they are worth)."""

from __future__ import annotations

from typing import NamedTuple


class Gpu(NamedTuple):
    """Figures of NVIDIA's data sheets and architecture papers. lanes: results per cycle of one multiprocessor."""

    name: str
    processors: int
    clock: float  # Hz, boosted
    memory: float  # bytes per second, of which `reached` can be had
    cache: float  # bytes per second of the second-level cache
    float_lanes: int
    integer_lanes: int
    double_lanes: int
    special_lanes: int
    convert_lanes: int
    warps: int  # that a multiprocessor holds


GPUS = {
    "t4": Gpu("T4", 40, 1.59e9, 320e9, 1.3e12, 64, 64, 2, 16, 16, 32),
    "a100": Gpu("A100", 108, 1.41e9, 2039e9, 4.8e12, 64, 64, 32, 16, 16, 64),
    "h100": Gpu("H100", 132, 1.98e9, 3350e9, 5.5e12, 128, 64, 64, 16, 64, 64),
    "h200": Gpu("H200", 132, 1.98e9, 4800e9, 5.5e12, 128, 64, 64, 16, 64, 64),
}
LAUNCH = 2e-6  # seconds between the starts of two short kernels
REACHED = 0.9  # of the memory's bandwidth
LATENCY = {"memory": 500, "shared": 30, "other": 6, "barrier": 30}  # cycles until a warp goes on


def seconds(figures: dict[str, float], gpu: Gpu) -> float:
    """Estimated seconds of all launches of a kernel: the longest of what memory, cache, the units of each kind and the latency of one warp's own
    instructions take, and the launches themselves.

    Args:
        figures: what _C._kernel_figures() gives of the kernel.
    """
    launches, warps, blocks = figures["launches"], max(figures["warps"], 1), figures["blocks"]
    busy = min(blocks / launches, gpu.processors)  # multiprocessors that have a block
    cycle = 1 / (gpu.clock * busy)
    shared = figures["shared_accesses"] + figures["bank_conflicts"]
    units = {
        "float": 32 / gpu.float_lanes, "integer": 32 / gpu.integer_lanes, "double": 32 / gpu.double_lanes, "special": 32 / gpu.special_lanes,
        "convert": 32 / gpu.convert_lanes,
    }  # fmt: skip
    work = [figures[unit] * cycles * cycle for unit, cycles in units.items()]
    work.append(figures["instructions"] / 4 * cycle)  # four schedulers
    work.append((shared + figures["global_accesses"]) * cycle)
    work.append(figures["touched_bytes"] / (gpu.memory * REACHED))
    work.append(32 * figures["global_sectors"] / gpu.cache)
    # One warp after another where there are more than fit; within a warp, instructions wait for one another.
    rounds = max(1.0, warps / launches / (busy * gpu.warps))
    per_warp = (
        LATENCY["memory"] * min(figures["global_accesses"] / warps, 4 + figures["global_accesses"] / warps / 8)  # several are under way at once
        + LATENCY["shared"] * shared / warps
        + LATENCY["other"] * figures["instructions"] / warps
        + LATENCY["barrier"] * figures["barriers"] / max(blocks, 1)
    )
    work.append(launches * per_warp / gpu.clock * min(rounds, 1.0))
    return max(work) + launches * LAUNCH
